"""scikit-learn's digits: shapes, ranges and splits."""

import subprocess
import sys

import numpy as np

from datasets.dataset import DatasetOptions
from datasets.digits import _read_rows, load_digits


def test_the_rows_are_those_of_scikit_learn():
    import sklearn.datasets

    bunch = sklearn.datasets.load_digits()
    np.testing.assert_array_equal(_read_rows(), np.column_stack([bunch.data, bunch.target]))


def test_the_import_that_takes_half_a_second_is_left_out():
    program = (
        "import sys; from datasets.catalog import DATASETS, DatasetOptions; DATASETS['digits'].load(DatasetOptions()); "
        "print('sklearn' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"


def test_digits_are_split_four_to_one_by_class():
    arrays = load_digits(DatasetOptions(seed=0))
    assert len(arrays.train_x) + len(arrays.test_x) == 1797
    assert arrays.train_x.shape[1:] == (8, 8, 1) and arrays.train_x.dtype == np.uint8 and arrays.train_x.max() == 16
    train_counts, test_counts = np.bincount(arrays.train_y), np.bincount(arrays.test_y)
    np.testing.assert_allclose(test_counts / (train_counts + test_counts), 0.2, atol=0.004)
    assert arrays.format.preprocessing.scale * 16 == 1


def test_the_seed_decides_the_split():
    first, again, other = (load_digits(DatasetOptions(seed=seed)).source_digest for seed in (0, 0, 1))
    assert first == again != other
