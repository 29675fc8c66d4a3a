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
import pathlib
import struct
import zlib
from collections.abc import Callable, Mapping

import numpy as np

from datasets.arrays import ArrayDataset, make_array_dataset
from datasets.dataset import DatasetOptions
from datasets.download import KnownFiles, RemoteFile
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


def find_idx_files(folder: str) -> list[str]:
    """Paths of the four files of a folder, in the order of `IDX_FILES`; [] unless all are there."""
    candidates = ([os.path.join(folder, name + suffix) for suffix in ("", ".gz")] for name in IDX_FILES.values())
    paths = [next(filter(os.path.isfile, each), None) for each in candidates]
    return paths if all(paths) else []


def _name_files(
    name: str, look: Callable[[str], list[str]], addresses: tuple[str, ...], sums: Mapping[str, str]
) -> KnownFiles:
    """The four idx files as they are downloaded, by key of `IDX_FILES` with these sums, from one of the addresses."""
    files = ((f"{IDX_FILES[key]}.gz", sum_of_file) for key, sum_of_file in sums.items())
    remotes = (RemoteFile(file, tuple(address + file for address in addresses), each) for file, each in files)
    return KnownFiles(name, look, tuple(remotes))


def _look(folder: str) -> list[str]:
    """The four idx files, or mnist.npz alone."""
    keras_file = os.path.join(folder, KERAS_FILE)
    return find_idx_files(folder) or [keras_file] * os.path.isfile(keras_file)


MNIST_FILES = _name_files(
    "mnist",
    _look,
    # The original host no longer serves the files; these two public copies are byte for byte the same.
    ("https://storage.googleapis.com/cvdf-datasets/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"),
    {
        "x_train": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "y_train": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "x_test": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "y_test": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    },
)


def load_mnist(options: DatasetOptions) -> ArrayDataset:
    """The catalog's loader: 60,000 train and 10,000 test images, uint8, shape (28, 28, 1).

    Raises:
      DatasetError: a file is missing and cannot be downloaded, or is damaged, truncated or not MNIST.
    """
    paths = MNIST_FILES.find_or_fetch(options)
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
    content = pathlib.Path(path).read_bytes()
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
FASHION_MNIST_FILES = _name_files(
    "fashion_mnist",
    # MNIST's files have the same names, so that a folder of another name does not count.
    lambda folder: find_idx_files(folder) if os.path.basename(folder) == "fashion_mnist" else [],
    (
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    ),
    {
        "x_train": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "y_train": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "x_test": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "y_test": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    },
)
IMAGES_PER_CLASS = {"train": 6000, "test": 1000}


def load_fashion_mnist(options: DatasetOptions) -> ArrayDataset:
    """The catalog's loader: uint8, shape (28, 28, 1).

    Raises:
      DatasetError: a file is missing and cannot be downloaded, or is damaged, truncated or not Fashion-MNIST.
    """
    paths = FASHION_MNIST_FILES.find_or_fetch(options)
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
