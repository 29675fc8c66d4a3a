"""Class weights: scikit-learn's balance by hand, files as they are read, and one line for each that cannot be."""

import numpy as np
import pytest
from refusals import assert_refused

from datasets.class_weights import (
    compute_balanced_weights,
    describe_class_weights,
    digest_class_weights,
    load_class_weights,
)

NAMES = ("cat", "dog", "cow")


def test_balanced_by_hand():
    # 12 examples of 3 classes: 12 / (3 * 6), 12 / (3 * 4), 12 / (3 * 2).
    assert compute_balanced_weights(np.array([6, 4, 2])) == pytest.approx((2 / 3, 1.0, 2.0))
    # A class without examples is none: 10 / (2 * 8) and 10 / (2 * 2), so that all examples together weigh 10.
    counts = np.array([8, 0, 2])
    assert compute_balanced_weights(counts) == pytest.approx((0.625, 1.0, 2.5))
    assert counts @ compute_balanced_weights(counts) == 10


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("w.json", '{"cow": 3, "cat": 0, "dog": 1.5}'),
        ("w.csv", "class,weight\ncow,3\ncat,0\ndog,1.5\n"),
        ("w.csv", "\ufeffweight,class\r\n3,cow\r\n\r\n0, cat \r\n1.5e0,dog\r\n"),
    ],
)
def test_a_file_is_read_in_the_order_of_the_classes(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    weights = load_class_weights(str(path), NAMES)
    assert weights == (0.0, 1.5, 3.0)
    assert digest_class_weights(weights) == digest_class_weights((0, 1.5, 3))
    assert describe_class_weights(NAMES, weights) == "cat: 0, dog: 1.5, cow: 3"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("w.json", '{"cat": 1, "dog": 1, "horse": 1}', "unknown class 'horse', expected cat, dog, cow"),
        ("w.json", '{"cat": 1, "dog": 1}', "no weight of cow; expected one for each class"),
        ("w.json", '{"cat": 1, "cat": 2, "dog": 1, "cow": 1}', "class 'cat' is there twice"),
        ("w.json", '{"cat": -1, "dog": 1, "cow": 1}', "class 'cat' has the weight -1, expected a number from 0"),
        ("w.json", '{"cat": NaN, "dog": 1, "cow": 1}', "has the weight nan, expected a number from 0 to 1,000,000"),
        ("w.json", '{"cat": true, "dog": 1, "cow": 1}', "has the weight True"),
        ("w.json", '{"cat": {"a": 1}, "dog": 1, "cow": 1}', "has the weight "),
        ("w.json", '{"cat": 0, "dog": 0.0, "cow": 0}', "all weights are 0, so that nothing would be learned"),
        ("w.json", "[1, 2, 3]", "no object; expected .json such as"),
        ("w.json", "{", "not JSON; expected .json such as"),
        ("w.csv", "cat,1\ndog,1\ncow,1\n", "its first line is 'cat,1'; expected .json such as"),
        ("w.csv", "class;weight\ncat;1\n", "its first line is 'class;weight'; expected"),
        ("w.csv", "class,weight\ncat,1,5\n", "'cat,1,5' has 3 cells, expected 2"),
        ("w.csv", "class,weight\ncat,much\n", "class 'cat' has the weight 'much'"),
        ("w.csv", "class,weight\ncat,inf\n", "class 'cat' has the weight inf"),
        ("w.csv", "", "its first line is ''"),
        ("", "", "Is a directory; expected balanced, none, or a file"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path, name, text, message):
    path = tmp_path / name
    if name:
        path.write_text(text)
    error = assert_refused("", load_class_weights, str(path), NAMES)
    assert error.startswith(f"class_weights={path}: ") and message in error


def test_what_is_no_text_or_not_there_is_one_line(tmp_path):
    (tmp_path / "w.csv").write_bytes(b"\xff\xfe\x00")
    assert_refused("not a text in UTF-8", load_class_weights, str(tmp_path / "w.csv"), NAMES)
    assert_refused("class_weights=balance: No such file or directory", load_class_weights, "balance", NAMES)
