"""CIFAR-10 from its official batches, as a folder or as the archive, or from an npz file; whole or a subset of it.

Source: Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009. 50,000 train and 10,000 test images of
32x32 pixels in colour, 5,000 and 1,000 of each of ten classes.

A batch file is a pickled dictionary: `data`, uint8 (images, 3072), a row the red, then the green, then the blue values
of an image, row by row; lists of labels.

An npz file has `x_train`, `x_test`, uint8 (images, 32, 32, 3), and
`y_train`, `y_test`. A source with fewer images is taken as a subset, and the data set's name then says so wherever it
is reported.
"""

import os
import tarfile
import zlib
from collections.abc import Iterable

import numpy as np

from datasets.arrays import ArrayDataset, make_array_dataset
from datasets.dataset import DatasetLocation, DatasetOptions
from datasets.download import RemoteFile, fetch_missing, locate_downloaded, search_dirs
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat, Preprocessing
from datasets.npz_file import read_npz_file
from files.reading import explain_errors, read_regular
from files.unpickling import read_pickled_dictionary

_VALUES_PER_IMAGE = 3 * 32 * 32


def read_batch_files(source: str, folder_name: str, names: Iterable[str]) -> dict[str, bytes]:
    """The contents of the batches of these names, from the official folder, or the archive of it.

    Raises:
      DatasetError: one is missing or cannot be read, or the archive is damaged or truncated.
    """
    contents = {}
    if os.path.isdir(source):
        for name in names:
            with explain_errors(source, DatasetError, f"{name} cannot be read", "unpack it again"):
                contents[name] = read_regular(os.path.join(source, name))
        return contents
    wanted = {f"{folder_name}/{name}": name for name in names}
    try:
        # In one pass: to go back in the archive would mean to decompress it again.
        with tarfile.open(source, "r:gz") as archive:
            for member in archive:
                if member.name in wanted and member.isfile():
                    contents[wanted[member.name]] = archive.extractfile(member).read()
            while archive.fileobj.read(2**20):  # only at its end gzip compares its sum
                pass
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise DatasetError(
            f"{source}: damaged or truncated archive ({error}); delete it to have it downloaded"
        ) from None
    missing = [name for name in wanted.values() if name not in contents]
    if missing:
        raise DatasetError(f"{source}: {missing[0]} is missing; expected the official archive, download it again")
    return contents


def read_batch(
    where: str, content: bytes, title: str = "CIFAR-10", label_keys: tuple[str, ...] = ("labels",)
) -> tuple[np.ndarray, ...]:
    """The images, uint8 (n, 32, 32, 3), and labels, int64 (n,) for each key, of an official batch file.

    Args:
      where: what errors call the file.
      content: its bytes.
      title: of the data set.
      label_keys: of the labels in it.

    Raises:
      DatasetError: damaged, truncated or no such batch.
    """
    try:
        batch = read_pickled_dictionary(content, "bytes")
        data, labels = batch[b"data"], [np.array(batch[key.encode()]) for key in label_keys]
    except Exception as error:  # a damaged pickle can raise almost anything
        reason = f"no {error} in it" if isinstance(error, KeyError) else error
        raise DatasetError(f"{where}: damaged, truncated or not a batch of {title} ({reason})") from None
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape != (len(data), _VALUES_PER_IMAGE):
        found = f"{data.dtype} {data.shape}" if isinstance(data, np.ndarray) else type(data).__name__
        raise DatasetError(f"{where}: data is {found}, expected uint8 (images, {_VALUES_PER_IMAGE})")
    for each in labels:
        if each.shape != data.shape[:1] or each.dtype.kind not in "iu":
            raise DatasetError(f"{where}: labels are {each.dtype} {each.shape}, expected {len(data)} integers")
    return data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), *labels


CIFAR10_FORMAT = ExampleFormat(
    (32, 32, 3),
    "uint8",
    ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    Preprocessing(1 / 255, feature_range=(0.0, 1.0)),
)
FOLDER_NAME = "cifar-10-batches-py"
BATCHES = {"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)}
NPZ_FILES = ("cifar10.npz", "cifar10_subset.npz")
REMOTE_FILE = RemoteFile(
    "cifar-10-python.tar.gz",
    ("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",),
    "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
)
_WANTED = f"{REMOTE_FILE.name} or {NPZ_FILES[0]}"
PARTS = ("train", "test")
IMAGES_PER_CLASS = {"train": 5000, "test": 1000}


def locate_cifar10(data_dir: str | None) -> DatasetLocation:
    """Where the files lie, for the doctor."""
    return locate_downloaded(find_cifar10_source(data_dir), "cifar10", _WANTED, data_dir)


def find_cifar10_source(data_dir: str | None) -> str | None:
    """Path of the official folder, the official archive or an npz file, from the first folder that has one, or None.

    Looked for in `<data_dir>/cifar10`, `<data_dir>` and the cache folder, in this order in each.
    """
    for folder in search_dirs(data_dir, "cifar10"):
        if os.path.isdir(os.path.join(folder, FOLDER_NAME)):
            return os.path.join(folder, FOLDER_NAME)
        for name in (REMOTE_FILE.name, *NPZ_FILES):
            if os.path.isfile(os.path.join(folder, name)):
                return os.path.join(folder, name)
    return None


def load_cifar10(options: DatasetOptions) -> ArrayDataset:
    """CIFAR-10 with its official parts, uint8, shape (32, 32, 3), named "cifar10", or after its sizes if a subset.

    Raises:
      DatasetError: a source is missing and cannot be downloaded, or is damaged, truncated or not CIFAR-10.
    """
    source = find_cifar10_source(options.data_dir) or fetch_missing(REMOTE_FILE, "cifar10", options, _WANTED)
    parts = _read_source(source)
    for part in PARTS:
        _check_part(source, part, *parts[part])
    return make_array_dataset(
        name_images(*(len(parts[part][0]) for part in PARTS)),
        *((x, y.reshape(-1)) for x, y in (parts[part] for part in PARTS)),
        CIFAR10_FORMAT,
    )


def name_images(num_train: int, num_test: int) -> str:
    """ "cifar10", or for fewer images than there are a name that says how many."""
    num_classes = CIFAR10_FORMAT.num_classes
    if (num_train, num_test) == tuple(num_classes * IMAGES_PER_CLASS[part] for part in PARTS):
        return "cifar10"
    return f"cifar10 subset ({num_train:,} + {num_test:,} images)"


def _read_source(source: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Part -> (images (n, 32, 32, 3), labels), still unchecked where they come from an npz file."""
    if source.endswith(".npz"):
        arrays = read_npz_file(source, [f"{kind}_{part}" for kind in "xy" for part in PARTS])
        return {part: (arrays[f"x_{part}"], arrays[f"y_{part}"]) for part in PARTS}
    contents = read_batch_files(source, FOLDER_NAME, (*BATCHES["train"], *BATCHES["test"]))
    parts = {}
    for part in PARTS:
        batches = [read_batch(f"{source}: {name}", contents[name]) for name in BATCHES[part]]
        parts[part] = tuple(np.concatenate(arrays) for arrays in zip(*batches, strict=True))
    return parts


def _check_part(source: str, part: str, x: np.ndarray, y: np.ndarray) -> None:
    """Raises DatasetError unless these are images and labels of CIFAR-10, all of them or fewer."""
    shape, num_classes = CIFAR10_FORMAT.input_shape, CIFAR10_FORMAT.num_classes
    if x.dtype != np.uint8 or x.shape[1:] != shape:
        raise DatasetError(f"{source}: x_{part} is {x.dtype} {x.shape}, expected uint8 (images, 32, 32, 3)")
    if y.dtype.kind not in "iu" or y.size != len(x) or y.shape not in ((len(x),), (len(x), 1)):
        raise DatasetError(
            f"{source}: y_{part} is {y.dtype} {y.shape}, expected an integer for each of {len(x)} images"
        )
    most = IMAGES_PER_CLASS[part]
    if not 1 <= len(x) <= num_classes * most:
        raise DatasetError(f"{source}: {len(x):,} {part} images, expected 1 to {num_classes * most:,}")
    if y.min() < 0 or y.max() >= num_classes:
        raise DatasetError(f"{source}: labels {y.min()}..{y.max()} in y_{part}, expected 0..{num_classes - 1}")
    counts = np.bincount(y.reshape(-1), minlength=num_classes)
    if counts.max() > most:
        raise DatasetError(
            f"{source}: {counts.max():,} {part} images of label {counts.argmax()}, CIFAR-10 has {most:,} of each: "
            f"another data set?"
        )
