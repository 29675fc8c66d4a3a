"""CIFAR-10 from its official batches, as a folder or as the archive, or from an npz file; whole or a subset of it.

Source: Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009. 50,000 train and 10,000 test images of
32x32 pixels in colour, 5,000 and 1,000 of each of ten classes.

A batch file is a pickled dictionary: `data`, uint8 (images, 3072), a row the red, then the green, then the blue values
of an image, row by row; `labels`, a list. It is read by an unpickler that makes arrays and nothing else. An npz file
has `x_train`, `x_test`, uint8 (images, 32, 32, 3), and `y_train`, `y_test`. A source with fewer images is taken as a
subset, and the data set's name then says so wherever it is reported.
"""

import io
import os
import pickle
import tarfile
import zlib
from collections.abc import Iterable

import numpy as np

from datasets.arrays import ArrayDataset, ExampleFormat, make_array_dataset
from datasets.cache_folder import describe_missing, search_dirs
from datasets.dataset import DatasetLocation, DatasetOptions
from datasets.download import RemoteFile, fetch_file
from datasets.errors import DatasetError
from datasets.federated_data import Preprocessing
from datasets.npz_file import read_npz_file

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
_VALUES_PER_IMAGE = 3 * 32 * 32
# What a pickled array consists of: the names are those of old and new NumPy, and of bytes from Python 2.
_ARRAY_PARTS = {
    ("numpy.core.multiarray", "_reconstruct"): np.core.multiarray._reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): np.core.multiarray._reconstruct,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): lambda text, encoding: text.encode(encoding),
}


def load_cifar10(options: DatasetOptions) -> ArrayDataset:
    """The catalog's loader; see `load_cifar10_arrays`."""
    return load_cifar10_arrays(options.data_dir, options.download)


def locate_cifar10(data_dir: str | None) -> DatasetLocation:
    """Where the files lie, for the doctor."""
    source = find_cifar10_source(data_dir)
    missing = describe_missing("cifar10", _WANTED, data_dir, is_downloaded=True)
    return DatasetLocation(source is not None, source or missing)


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


def load_cifar10_arrays(data_dir: str | None = None, download: bool = True) -> ArrayDataset:
    """CIFAR-10 with its official parts, uint8, shape (32, 32, 3), named "cifar10", or after its sizes if a subset.

    Raises:
      DatasetError: a source is missing and cannot be downloaded, or is damaged, truncated or not CIFAR-10.
    """
    source = find_cifar10_source(data_dir)
    if source is None:
        if not download:
            raise DatasetError(f"cifar10: {describe_missing('cifar10', _WANTED, data_dir)}")
        source = fetch_file(REMOTE_FILE, search_dirs(data_dir, "cifar10")[0])
    parts = _read_source(source)
    for part in PARTS:
        _check_part(source, part, *parts[part])
    return make_array_dataset(
        name_images(*(len(parts[part][0]) for part in PARTS)),
        *((x, y.reshape(-1)) for x, y in (parts[part] for part in PARTS)),
        CIFAR10_FORMAT.class_names,
        CIFAR10_FORMAT.preprocessing,
    )


def name_images(num_train: int, num_test: int) -> str:
    """ "cifar10", or for fewer images than there are a name that says how many."""
    num_classes = len(CIFAR10_FORMAT.class_names)
    if (num_train, num_test) == tuple(num_classes * IMAGES_PER_CLASS[part] for part in PARTS):
        return "cifar10"
    return f"cifar10 subset ({num_train:,} + {num_test:,} images)"


def _read_source(source: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Part -> (images (n, 32, 32, 3), labels), still unchecked where they come from an npz file."""
    if source.endswith(".npz"):
        arrays = read_npz_file(source, [f"{kind}_{part}" for kind in "xy" for part in PARTS])
        return {part: (arrays[f"x_{part}"], arrays[f"y_{part}"]) for part in PARTS}
    contents = _read_folder(source) if os.path.isdir(source) else _read_archive(source)
    parts = {}
    for part in PARTS:
        batches = [read_batch(f"{source}: {name}", contents[name]) for name in BATCHES[part]]
        parts[part] = tuple(np.concatenate(arrays) for arrays in zip(*batches, strict=True))
    return parts


def _read_folder(source: str) -> dict[str, bytes]:
    contents = {}
    for name in (*BATCHES["train"], *BATCHES["test"]):
        try:
            with open(os.path.join(source, name), "rb") as file:
                contents[name] = file.read()
        except OSError as error:
            raise DatasetError(f"{source}: {name} cannot be read ({error.strerror}); unpack the archive anew") from None
    return contents


def _read_archive(source: str) -> dict[str, bytes]:
    """The batch files of the official archive, in one pass: to go back in it would mean to decompress it again."""
    wanted = {f"{FOLDER_NAME}/{name}": name for names in BATCHES.values() for name in names}
    contents = {}
    try:
        with tarfile.open(source, "r:gz") as archive:
            for member in archive:
                if member.name in wanted and member.isfile():
                    contents[wanted[member.name]] = archive.extractfile(member).read()
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise DatasetError(
            f"{source}: damaged or truncated archive ({error}); delete it to have it downloaded"
        ) from None
    _check_complete(source, contents, wanted.values())
    return contents


def _check_complete(source: str, contents: dict[str, bytes], names: Iterable[str]) -> None:
    missing = [name for name in names if name not in contents]
    if missing:
        raise DatasetError(f"{source}: {missing[0]} is missing; expected the official archive, download it anew")


class _ArrayUnpickler(pickle.Unpickler):
    """Makes dictionaries, lists, numbers, strings and arrays; a file that asks for anything else is refused."""

    def find_class(self, module: str, name: str):
        try:
            return _ARRAY_PARTS[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it holds a {module}.{name}") from None


def read_batch(where: str, content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """The images, uint8 (n, 32, 32, 3), and labels, int64 (n,), of an official batch file.

    Args:
      where: what errors call the file.
      content: its bytes.

    Raises:
      DatasetError: damaged, truncated or not a batch of CIFAR-10.
    """
    try:
        batch = _ArrayUnpickler(io.BytesIO(content), encoding="bytes").load()
        data, labels = batch[b"data"], np.array(batch[b"labels"])
    except Exception as error:  # a damaged pickle can raise almost anything
        reason = f"no {error} in it" if isinstance(error, KeyError) else error
        raise DatasetError(f"{where}: damaged, truncated or not a batch of CIFAR-10 ({reason})") from None
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape != (len(data), _VALUES_PER_IMAGE):
        found = f"{data.dtype} {data.shape}" if isinstance(data, np.ndarray) else type(data).__name__
        raise DatasetError(f"{where}: data is {found}, expected uint8 (images, {_VALUES_PER_IMAGE})")
    if labels.shape != data.shape[:1] or labels.dtype.kind not in "iu":
        raise DatasetError(f"{where}: labels are {labels.dtype} {labels.shape}, expected {len(data)} integers")
    return data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), labels


def _check_part(source: str, part: str, x: np.ndarray, y: np.ndarray) -> None:
    """Raises DatasetError unless these are images and labels of CIFAR-10, all of them or fewer."""
    shape, num_classes = CIFAR10_FORMAT.input_shape, len(CIFAR10_FORMAT.class_names)
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
