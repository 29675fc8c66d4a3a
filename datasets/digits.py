"""The handwritten digits that come with scikit-learn: 1,797 real images of 8x8 pixels, no download.

Source: Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998.
"""

import gzip
import importlib.util
import pathlib

import numpy as np

from datasets.arrays import ArrayDataset, hold_out_test_part, make_array_dataset
from datasets.dataset import DatasetOptions
from datasets.example_format import ExampleFormat, Preprocessing

DIGIT_NAMES = tuple("0123456789")
DIGITS_FORMAT = ExampleFormat((8, 8, 1), "uint8", DIGIT_NAMES, Preprocessing(1 / 16, feature_range=(0.0, 1.0)))


def load_digits(options: DatasetOptions) -> ArrayDataset:
    """Grey values 0..16 as uint8, shape (8, 8, 1); a stratified fifth, drawn from the seed, is the test set."""
    rows = _read_rows()
    images, labels = rows[:, :64].reshape(-1, *DIGITS_FORMAT.input_shape).astype(np.uint8), rows[:, 64]
    train, test = hold_out_test_part(labels, 0.2, options.seed)
    return make_array_dataset(
        "digits",
        (images[train], labels[train]),
        (images[test], labels[test]),
        DIGITS_FORMAT,
    )


def _read_rows() -> np.ndarray:
    """The 64 grey values of each image and its label, int64, shape (images, 65).

    They are what `sklearn.datasets.load_digits` reads, whose import takes half a second.
    """
    package = pathlib.Path(importlib.util.find_spec("sklearn").origin).parent
    with gzip.open(package / "datasets" / "data" / "digits.csv.gz", "rt", encoding="utf-8") as file:
        return np.loadtxt(file, dtype=np.int64, delimiter=",")
