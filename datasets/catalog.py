"""The data sets by name. Loaders are imported when they are asked for, so that listing the names costs nothing."""

import dataclasses
import os
import typing

if typing.TYPE_CHECKING:
    from datasets.arrays import ArrayDataset

DATASET_NAMES = ("digits", "mnist", "har", "npz")
HAR_FEATURES = ("statistics", "inertial")


def load_arrays(
    name: str,
    data_dir: str | None = None,
    har_features: str = "statistics",
    npz_path: str | None = None,
    seed: int = 0,
    download: bool = True,
) -> "ArrayDataset":
    """Loads a data set, downloading it if it is nowhere on this machine.

    Args:
      name: one of `DATASET_NAMES`.
      data_dir: a folder to look in first and to download to; None is the cache folder.
      har_features: one of `HAR_FEATURES`.
      npz_path: the user's file, for "npz".
      seed: draws the held-out test part of a data set that comes without one (digits, npz).
      download: False to fail instead of going to the network.

    Raises:
      DatasetError: one line that says what is missing or wrong and how to mend it.
    """
    from datasets import arrays, digits, har, mnist, npz

    if name == "digits":
        return digits.load_digits_arrays(seed)
    if name == "mnist":
        return mnist.load_mnist_arrays(data_dir, download)
    if name == "har":
        return har.load_har_arrays(data_dir, har_features, download)
    if name != "npz":
        raise arrays.DatasetError(f"dataset={name}: expected one of {', '.join(DATASET_NAMES)}")
    if not npz_path:
        raise arrays.DatasetError("dataset npz: name your file with --npz (arrays x and y, see the README)")
    return npz.load_npz_arrays(os.path.expanduser(npz_path), seed)


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
    from datasets import arrays, cache_folder, har, mnist

    if name == "digits":
        return DatasetLocation(name, True, "comes with scikit-learn")
    if name == "npz":
        return DatasetLocation(name, True, "your own file, named by --npz")
    if name == "mnist":
        paths = mnist.find_mnist_files(data_dir)
        if paths:
            names = ", ".join(os.path.basename(path) for path in paths)
            return DatasetLocation(name, True, f"{os.path.dirname(paths[0])} ({names})")
        wanted = ", ".join(remote.name for remote in mnist.REMOTE_FILES)
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
