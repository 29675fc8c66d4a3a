"""Fashion-MNIST from its four idx files, plain or gzipped: ten kinds of clothes in the form of MNIST.

Source: Xiao, Rasul and Vollgraf, Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning Algorithms,
2017. 60,000 + 10,000 images, 6,000 and 1,000 of each class. The files have the names of MNIST's, so they are looked for
in a folder of their own alone, and MNIST's are told by their counts and refused.
"""

import os

import numpy as np

from datasets.arrays import ArrayDataset, make_array_dataset
from datasets.cache_folder import search_dirs
from datasets.dataset import DatasetLocation, DatasetOptions
from datasets.download import RemoteFile, fetch_missing
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat, Preprocessing
from datasets.mnist import IDX_FILES, find_idx_files, locate_files, read_idx_file

FASHION_MNIST_FORMAT = ExampleFormat(
    (28, 28, 1),
    "uint8",
    ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    Preprocessing(1 / 255, feature_range=(0.0, 1.0)),
)
_GZIP_SHA256 = {
    "x_train": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    "y_train": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    "x_test": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    "y_test": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
}
_ADDRESSES = (
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
)
REMOTE_FILES = tuple(
    RemoteFile(f"{name}.gz", tuple(f"{address}{name}.gz" for address in _ADDRESSES), _GZIP_SHA256[key])
    for key, name in IDX_FILES.items()
)
IMAGES_PER_CLASS = {"train": 6000, "test": 1000}
FOLDER = "fashion_mnist"
_WANTED = ", ".join(remote.name for remote in REMOTE_FILES)


def load_fashion_mnist(options: DatasetOptions) -> ArrayDataset:
    """The catalog's loader: uint8, shape (28, 28, 1).

    Raises:
      DatasetError: a file is missing and cannot be downloaded, or is damaged, truncated or not Fashion-MNIST.
    """
    paths = find_fashion_mnist(options.data_dir)
    paths = paths or [fetch_missing(remote, FOLDER, options, _WANTED) for remote in REMOTE_FILES]
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
    return locate_files(find_fashion_mnist(data_dir), FOLDER, _WANTED, data_dir)


def find_fashion_mnist(data_dir: str | None) -> list[str]:
    """Paths of the four files, from the first folder `fashion_mnist` that has them; [] if none has."""
    folders = [folder for folder in search_dirs(data_dir, FOLDER) if os.path.basename(folder) == FOLDER]
    return next(filter(None, map(find_idx_files, folders)), [])
