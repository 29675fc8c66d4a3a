"""The data sets by name. Loaders are imported when they are asked for, so that listing the names costs nothing."""

import dataclasses
import os
import typing

if typing.TYPE_CHECKING:
    from datasets.arrays import ArrayDataset

DATASET_NAMES = ("digits", "mnist", "cifar10", "har", "building", "occupancy", "npz")
HAR_FEATURES = ("statistics", "inertial")
BUILDING_HETEROGENEITY = ("low", "medium", "high")
OCCUPANCY_FEATURES = ("temperature_humidity", "all")


@dataclasses.dataclass(frozen=True)
class DatasetOptions:
    """What a loader may be told; each one reads what concerns it.

    Attributes:
      data_dir: a folder to look in first and to download to; None is the cache folder.
      download: False to fail instead of going to the network.
      seed: draws the held-out test part of a data set that comes without one (digits, npz), and the building.
      har_features: one of `HAR_FEATURES`.
      npz: path of the user's file, for "npz".
      building_num_sensors: at least 1.
      building_heterogeneity: one of `BUILDING_HETEROGENEITY`.
      building_csv: where to save the building's readings; None for nowhere.
      occupancy_client_hours: length of the block of time that is a client, at least 1.
      occupancy_features: one of `OCCUPANCY_FEATURES`.
    """

    data_dir: str | None = None
    download: bool = True
    seed: int = 0
    har_features: str = "statistics"
    npz: str | None = None
    building_num_sensors: int = 100
    building_heterogeneity: str = "medium"
    building_csv: str | None = None
    occupancy_client_hours: int = 12
    occupancy_features: str = "temperature_humidity"


def load_arrays(name: str, options: DatasetOptions = DatasetOptions()) -> "ArrayDataset":
    """Loads a data set, downloading it if it is nowhere on this machine and there is an address for it.

    Args:
      name: one of `DATASET_NAMES`.
      options: where to find it and which variant of it.

    Raises:
      DatasetError: one line that says what is missing or wrong and how to mend it.
    """
    from datasets import arrays, cifar10, digits, har, mnist, npz, occupancy
    from datasets.building import readings as building

    if name == "digits":
        return digits.load_digits_arrays(options.seed)
    if name == "mnist":
        return mnist.load_mnist_arrays(options.data_dir, options.download)
    if name == "cifar10":
        return cifar10.load_cifar10_arrays(options.data_dir, options.download)
    if name == "har":
        return har.load_har_arrays(options.data_dir, options.har_features, options.download)
    if name == "building":
        return building.load_building_arrays(
            options.building_num_sensors, options.building_heterogeneity, options.seed, options.building_csv
        )
    if name == "occupancy":
        return occupancy.load_occupancy_arrays(
            options.data_dir, options.occupancy_features, options.occupancy_client_hours
        )
    if name != "npz":
        raise arrays.DatasetError(f"dataset={name}: expected one of {', '.join(DATASET_NAMES)}")
    if not options.npz:
        raise arrays.DatasetError("dataset npz: name your file with --npz (arrays x and y, see the README)")
    return npz.load_npz_arrays(os.path.expanduser(options.npz), options.seed)


@dataclasses.dataclass(frozen=True)
class DatasetLocation:
    """Where a data set is. `found` is False if a run would have to download it; `description` is one line."""

    name: str
    found: bool
    description: str


def locate(name: str, data_dir: str | None = None) -> DatasetLocation:
    """Says where a data set lies, or what is missing, without reading the files.

    Raises:
      DatasetError: an unknown name.
    """
    from datasets import arrays, cache_folder, cifar10, har, mnist, occupancy

    if name == "digits":
        return DatasetLocation(name, True, "comes with scikit-learn")
    if name == "npz":
        return DatasetLocation(name, True, "your own file, named by --npz")
    if name == "building":
        return DatasetLocation(name, True, "simulated, needs no file")
    if name == "occupancy":
        folder = occupancy.find_occupancy_folder(data_dir)
        wanted = ", ".join((occupancy.TRAIN_FILE, *occupancy.TEST_FILES))
        missing = f"not found; put {wanted} into {cache_folder.search_dirs(data_dir, name)[0]}"
        return DatasetLocation(name, folder is not None, folder or missing)
    if name == "mnist":
        paths = mnist.find_mnist_files(data_dir)
        if paths:
            names = ", ".join(os.path.basename(path) for path in paths)
            return DatasetLocation(name, True, f"{os.path.dirname(paths[0])} ({names})")
        wanted = ", ".join(remote.name for remote in mnist.REMOTE_FILES)
    elif name == "cifar10":
        source = cifar10.find_cifar10_source(data_dir)
        if source:
            return DatasetLocation(name, True, source)
        wanted = f"{cifar10.REMOTE_FILE.name} or {cifar10.NPZ_FILES[0]}"
    elif name == "har":
        sources = {features: har.find_har_source(data_dir, features) for features in HAR_FEATURES}
        if all(sources.values()):
            return DatasetLocation(name, True, ", ".join(dict.fromkeys(sources.values())))
        if sources["statistics"]:
            text = f"{sources['statistics']}; for the raw windows put {har.NPZ_FILES['inertial']} beside it"
            return DatasetLocation(name, True, text)
        wanted = f"{har.NPZ_FILES['statistics']} or '{har.ZIP_FILES[0]}'"
    else:
        raise arrays.DatasetError(f"dataset={name}: expected one of {', '.join(DATASET_NAMES)}")
    folder = cache_folder.search_dirs(data_dir, name)[0]
    return DatasetLocation(name, False, f"not found; downloaded by the first run, or put {wanted} into {folder}")
