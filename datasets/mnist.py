"""MNIST and Fashion-MNIST from their idx files, plain or gzipped, wherever they lie; MNIST from Keras's npz, too.

Source: LeCun, Cortes and Burges, The MNIST database of handwritten digits, 1998. Whatever the container, the decoded
bytes are compared with the digests of the canonical arrays. So neither a damaged file nor a look-alike is ever taken
for MNIST (Fashion-MNIST has the same file names and shapes).

Source: Xiao, Rasul and Vollgraf, Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning Algorithms,
2017. 60,000 + 10,000 images, 6,000 and 1,000 of each class. The files have the names of MNIST's, so they are looked for
in a folder of their own alone, and MNIST's are told by their counts and refused.
"""

import gzip
import hashlib
import math
import os
import struct
import zlib

import numpy as np

from datasets.arrays import ArrayDataset, make_array_dataset
from datasets.dataset import DatasetLocation, DatasetOptions
from datasets.download import RemoteFile, fetch_missing, locate_downloaded, search_dirs
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat, Preprocessing
from datasets.formats.npz import read_npz_file

MNIST_FORMAT = ExampleFormat(
    (28, 28, 1), "uint8", tuple("0123456789"), Preprocessing(1 / 255, feature_range=(0.0, 1.0))
)
KERAS_FILE = "mnist.npz"
IDX_FILES = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
# Of the bytes after the idx header, which are also the bytes of the arrays in mnist.npz.
CONTENT_SHA256 = {
    "x_train": "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
    "y_train": "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
    "x_test": "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
    "y_test": "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
}
_GZIP_SHA256 = {
    "x_train": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "y_train": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "x_test": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "y_test": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
# The original host no longer serves the files; these two public copies are byte for byte the same.
_ADDRESSES = ("https://storage.googleapis.com/cvdf-datasets/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/")
REMOTE_FILES = tuple(
    RemoteFile(f"{name}.gz", tuple(f"{address}{name}.gz" for address in _ADDRESSES), _GZIP_SHA256[key])
    for key, name in IDX_FILES.items()
)
_WANTED = ", ".join(remote.name for remote in REMOTE_FILES)


def locate_mnist(data_dir: str | None) -> DatasetLocation:
    """Where the files lie, for the doctor."""
    return locate_files(find_mnist_files(data_dir), "mnist", _WANTED, data_dir)


def locate_files(paths: list[str], subfolder: str, wanted: str, data_dir: str | None) -> DatasetLocation:
    """Where files of one folder lie, for the doctor; `paths` is empty if they lie nowhere yet."""
    found = f"{os.path.dirname(paths[0])} ({', '.join(map(os.path.basename, paths))})" if paths else None
    return locate_downloaded(found, subfolder, wanted, data_dir)


def find_mnist_files(data_dir: str | None) -> list[str]:
    """Paths of the four idx files, or of mnist.npz alone, from the first folder that has them; [] if none has.

    Looked for in `<data_dir>/mnist`, `<data_dir>` and the cache folder.
    """
    for folder in search_dirs(data_dir, "mnist"):
        if idx_paths := find_idx_files(folder):
            return idx_paths
        if os.path.isfile(os.path.join(folder, KERAS_FILE)):
            return [os.path.join(folder, KERAS_FILE)]
    return []


def find_idx_files(folder: str) -> list[str]:
    """Paths of the four files of a folder, in the order of `IDX_FILES`; [] unless all are there."""
    candidates = ([os.path.join(folder, name + suffix) for suffix in ("", ".gz")] for name in IDX_FILES.values())
    paths = [next(filter(os.path.isfile, each), None) for each in candidates]
    return paths if all(paths) else []


def load_mnist(options: DatasetOptions) -> ArrayDataset:
    """The catalog's loader: 60,000 train and 10,000 test images, uint8, shape (28, 28, 1).

    Raises:
      DatasetError: a file is missing and cannot be downloaded, or is damaged, truncated or not MNIST.
    """
    paths = find_mnist_files(options.data_dir)
    paths = paths or [fetch_missing(remote, "mnist", options, _WANTED) for remote in REMOTE_FILES]
    sources = dict(zip(IDX_FILES, paths if len(paths) > 1 else paths * len(IDX_FILES), strict=True))
    arrays = (
        read_npz_file(paths[0], tuple(IDX_FILES))
        if len(paths) == 1
        else {key: read_idx_file(sources[key]) for key in IDX_FILES}
    )
    for key, array in arrays.items():
        if hashlib.sha256(np.ascontiguousarray(array)).hexdigest() != CONTENT_SHA256[key]:
            raise DatasetError(
                f"{sources[key]}: {key} {array.shape} is not MNIST's (the content's digest differs): a foreign or "
                f"damaged file; delete it to have it downloaded"
            )
    return make_array_dataset(
        "mnist",
        (arrays["x_train"][..., np.newaxis], arrays["y_train"]),
        (arrays["x_test"][..., np.newaxis], arrays["y_test"]),
        MNIST_FORMAT,
    )


def read_idx_file(path: str) -> np.ndarray:
    """The uint8 array of an idx file, plain or gzipped (told by its first bytes, not by its name).

    The format: two zero bytes, the type (8 = uint8), the rank, the dimensions as big-endian int32, the bytes.

    Raises:
      DatasetError: damaged, truncated or not idx.
    """
    with open(path, "rb") as file:
        content = file.read()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise DatasetError(
                f"{path}: damaged or truncated gzip file ({error}); delete it to download it again"
            ) from None
    if len(content) < 4 or content[:3] != b"\0\0\x08" or len(content) < 4 + 4 * content[3]:
        raise DatasetError(f"{path}: not an idx file of bytes (it starts with {content[:4].hex(' ') or 'nothing'})")
    rank = content[3]
    shape = struct.unpack_from(f">{rank}i", content, offset=4)
    header_bytes = 4 + 4 * rank
    if len(content) - header_bytes != math.prod(shape):
        raise DatasetError(
            f"{path}: {len(content) - header_bytes} bytes of data, expected {math.prod(shape)} for shape {shape}: "
            f"damaged or truncated"
        )
    return np.frombuffer(content, np.uint8, offset=header_bytes).reshape(shape)


FASHION_MNIST_FORMAT = ExampleFormat(
    (28, 28, 1),
    "uint8",
    ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    Preprocessing(1 / 255, feature_range=(0.0, 1.0)),
)
_FASHION_GZIP_SHA256 = {
    "x_train": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    "y_train": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    "x_test": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    "y_test": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
}
_FASHION_ADDRESSES = (
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
)
FASHION_REMOTE_FILES = tuple(
    RemoteFile(f"{name}.gz", tuple(f"{address}{name}.gz" for address in _FASHION_ADDRESSES), _FASHION_GZIP_SHA256[key])
    for key, name in IDX_FILES.items()
)
IMAGES_PER_CLASS = {"train": 6000, "test": 1000}
FASHION_FOLDER = "fashion_mnist"
_FASHION_WANTED = ", ".join(remote.name for remote in FASHION_REMOTE_FILES)


def load_fashion_mnist(options: DatasetOptions) -> ArrayDataset:
    """The catalog's loader: uint8, shape (28, 28, 1).

    Raises:
      DatasetError: a file is missing and cannot be downloaded, or is damaged, truncated or not Fashion-MNIST.
    """
    paths = find_fashion_mnist(options.data_dir)
    paths = paths or [
        fetch_missing(remote, FASHION_FOLDER, options, _FASHION_WANTED) for remote in FASHION_REMOTE_FILES
    ]
    arrays = {key: read_idx_file(path) for key, path in zip(IDX_FILES, paths, strict=True)}
    num_classes = FASHION_MNIST_FORMAT.num_classes
    for part, each in IMAGES_PER_CLASS.items():
        x, y = arrays[f"x_{part}"], arrays[f"y_{part}"]
        counts = np.bincount(y.reshape(-1), minlength=num_classes)
        if x.shape != (each * num_classes, 28, 28) or counts.tolist() != [each] * num_classes:
            raise DatasetError(
                f"{os.path.dirname(paths[0])}: the {part} part has {len(x):,} images, {counts.min():,} to "
                f"{counts.max():,} of a class, Fashion-MNIST has {each:,} of each: a foreign file, such as MNIST's?"
            )
    return make_array_dataset(
        "fashion_mnist",
        (arrays["x_train"][..., np.newaxis], arrays["y_train"]),
        (arrays["x_test"][..., np.newaxis], arrays["y_test"]),
        FASHION_MNIST_FORMAT,
    )


def locate_fashion_mnist(data_dir: str | None) -> DatasetLocation:
    """Where the files lie, for the doctor."""
    return locate_files(find_fashion_mnist(data_dir), FASHION_FOLDER, _FASHION_WANTED, data_dir)


def find_fashion_mnist(data_dir: str | None) -> list[str]:
    """Paths of the four files, from the first folder `fashion_mnist` that has them; [] if none has."""
    folders = [folder for folder in search_dirs(data_dir, FASHION_FOLDER) if os.path.basename(folder) == FASHION_FOLDER]
    return next(filter(None, map(find_idx_files, folders)), [])
