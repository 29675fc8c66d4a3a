"""Which task the labels of a user's npz file are for, and what a data set of it is like from file to client files."""

import re

import numpy as np
import pytest

from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat
from datasets.federate import PartitionSettings, build_federated_data
from datasets.federated_data import SPLITS
from datasets.label_format import LabelFormat
from datasets.npz import choose_partition, load_npz_arrays, read_examples
from datasets.npz_labels import guess_task
from datasets.partition_settings import PARTITION_NAMES

X = np.arange(120, dtype=float).reshape(40, 3)
NUMBERS = np.linspace(0, 10, 40)
SWITCHES = (np.arange(160).reshape(40, 4) * 7 % 3 == 0).astype(int)
TOKENS = np.arange(200).reshape(40, 5) % 9


def save(tmp_path, **arrays):
    path = tmp_path / "mine.npz"
    np.savez(path, **arrays)
    return str(path)


def load(tmp_path, task="", layout="auto", scale="auto", **arrays):
    return load_npz_arrays(save(tmp_path, **{"x": X, **arrays}), layout=layout, scale=scale, task=task)


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (np.arange(40) % 3, "classification"),
        (np.arange(40) % 2, "classification"),
        (np.arange(40) % 2 == 0, "classification"),
        (np.array(["a", "b"] * 20), "classification"),
        (np.arange(40.0), "classification"),
        (np.arange(40.0)[:, np.newaxis], "classification"),
        (np.eye(4)[np.arange(40) % 4], "classification"),
        (np.arange(200.0) * 2, "regression"),  # with gaps, and more than classes are
        (np.arange(40.0) * 2, "classification"),  # which is then an error
        (np.arange(200) * 2, "classification"),
        (NUMBERS, "regression"),
        (NUMBERS[:, np.newaxis], "regression"),
        (np.stack([NUMBERS, -NUMBERS], axis=1), "regression"),
        (SWITCHES, "multi_label"),
        (SWITCHES.astype(bool), "multi_label"),
        (SWITCHES * 1.0, "multi_label"),
        (np.zeros((40, 3)), "classification"),
        (TOKENS, "classification"),  # without x of tokens
        (np.array([0.5, np.nan]), "regression"),
        (np.array([1.0, np.nan]), "classification"),
    ],
)
def test_the_form_of_the_labels_tells_the_task(y, task):
    assert guess_task(y)[0] == task


def test_whole_numbers_beside_tokens_of_their_shape_are_next_tokens():
    assert guess_task(TOKENS, TOKENS)[0] == "next_token"
    assert guess_task(TOKENS, TOKENS * 0.5)[0] == guess_task(TOKENS, TOKENS[:, :4])[0] == "classification"
    assert guess_task(SWITCHES, TOKENS[:, :4])[0] == "multi_label"


def test_named_classes_are_no_measurements():
    assert (
        guess_task(NUMBERS, has_names=True)[0]
        == guess_task(np.arange(200.0) * 2, has_names=True)[0]
        == "classification"
    )


def test_a_regression(tmp_path):
    arrays = load(tmp_path, y=NUMBERS)
    assert arrays.train_y.dtype == np.float32 and arrays.train_y.shape == (32,) and arrays.test_y.shape == (8,)
    assert sorted([*arrays.train_y, *arrays.test_y]) == pytest.approx(list(NUMBERS))
    labels = arrays.format.labels
    assert (labels.task, labels.shape, labels.num_outputs, arrays.format.class_names) == ("regression", (), 1, ())
    assert labels.offset == pytest.approx([arrays.train_y.mean()])
    assert labels.scale == pytest.approx([arrays.train_y.std()])
    assert arrays.format.are_features and not arrays.format.takes_tokens
    assert arrays.reading == "3 features, as they are; task regression, since y has numbers that are not whole"


def test_a_regression_of_several_numbers_of_which_one_is_constant(tmp_path):
    y = np.stack([NUMBERS, np.ones(40)], axis=1)
    labels = load(tmp_path, y=y).format.labels
    assert (labels.shape, labels.num_outputs, labels.scale[1], labels.offset[1]) == ((2,), 2, 1.0, 1.0)


def test_whole_numbers_are_a_regression_when_told_so(tmp_path):
    arrays = load(tmp_path, "regression", y=np.arange(40) * 3)
    assert arrays.train_y.dtype == np.float32 and arrays.reading.endswith("; task regression")
    with pytest.raises(DatasetError, match="or give --task=regression for measurements"):
        load(tmp_path, y=np.arange(40) * 3)


def test_several_labels(tmp_path):
    arrays = load(tmp_path, y=SWITCHES, x_test=X[:2], y_test=SWITCHES[:2])
    assert arrays.train_y.dtype == np.uint8 and arrays.format.labels == LabelFormat("multi_label", (4,), 4)
    assert arrays.format.class_names == ("0", "1", "2", "3")
    np.testing.assert_array_equal(arrays.train_y, SWITCHES)
    assert load(tmp_path, y=SWITCHES, class_names=list("abcd")).format.class_names == tuple("abcd")


def test_two_classes_are_binary_when_told_so(tmp_path):
    y = np.array(["no", "yes"] * 20)
    arrays = load(tmp_path, "binary", y=y)
    assert (arrays.format.labels.task, arrays.format.class_names) == ("binary", ("no", "yes"))
    assert arrays.format.labels.count_outputs(2) == 1 and load(tmp_path, y=y).format.labels == LabelFormat()
    with pytest.raises(DatasetError, match="3 classes, expected 2 for --task=binary; take --task=classification"):
        load(tmp_path, "binary", y=np.arange(40) % 3)


@pytest.mark.parametrize(("dtype", "stored"), [(np.int64, np.int32), (np.uint8, np.uint8)])
def test_next_tokens_keep_their_whole_numbers(tmp_path, dtype, stored):
    x, y = TOKENS.astype(dtype), np.roll(TOKENS, -1, axis=1).astype(dtype)
    arrays = load(tmp_path, x=x, y=y)
    assert arrays.train_x.dtype == stored and arrays.train_y.dtype == np.int32 and arrays.format.takes_tokens
    assert arrays.format.labels == LabelFormat("next_token", (5,), 9) and not arrays.format.are_features
    assert arrays.format.preprocessing.scale == 1
    assert arrays.reading.endswith("since x and y are whole numbers of one shape; padding is label 0")


def test_a_negative_label_says_how_padding_is_marked(tmp_path):
    labels = load(tmp_path, x=TOKENS, y=np.where(TOKENS == 4, -1, TOKENS)).format.labels
    assert (labels.padding, labels.num_outputs) == (-1, 9)


def test_tokens_can_have_classes(tmp_path):
    arrays = load(tmp_path, layout="tokens", x=TOKENS, y=np.arange(40) % 2)
    assert arrays.format.takes_tokens and arrays.train_x.dtype == np.int32 and arrays.train_x.shape == (32, 5)
    assert arrays.format.labels == LabelFormat() and arrays.reading == "sequences of 5 tokens"


@pytest.mark.parametrize(
    ("task", "arrays", "message"),
    [
        ("ranking", {"y": NUMBERS}, "task=ranking: expected one of classification, binary, multi_label, regression"),
        ("regression", {"y": ["a"] * 40}, r"y is <U1 of shape \(40,\), expected finite numbers \(N,\), or rows"),
        ("", {"y": np.where(NUMBERS > 9, np.nan, NUMBERS)}, r"y is float64 .*; row 36 \(counted from 0\) has nan"),
        ("regression", {"y": np.where(NUMBERS > 9, 1e300, 0)}, "row 36 .* has 1e[+]300"),
        ("multi_label", {"y": SWITCHES * 2}, "expected 0 and 1 in rows .*; row 0 .* has 2"),
        ("multi_label", {"y": NUMBERS}, r"y is float64 of shape \(40,\), expected 0 and 1 in rows"),
        ("next_token", {"x": TOKENS, "y": TOKENS * 1.0}, r"y is float64 .*, expected whole numbers \(N, positions\)"),
        ("next_token", {"x": TOKENS - 1, "y": TOKENS}, r"x\[0, 0\] is -1 .*expected tokens, whole numbers from 0 on"),
        ("next_token", {"x": TOKENS[..., np.newaxis], "y": TOKENS}, "expected .N, positions. with --layout=tokens"),
        ("", {"y": SWITCHES, "x_test": X[:2], "y_test": SWITCHES[:2, :3]}, "y_test .2, 3.; expected the same but for"),
        ("", {"y": SWITCHES, "class_names": ["a", "b"]}, "2 class names, expected 4, one an output"),
    ],
)
def test_each_mistake_is_one_line(tmp_path, task, arrays, message):
    with pytest.raises(DatasetError, match=message) as error:
        load(tmp_path, task, **arrays)
    assert "\n" not in str(error.value)


def test_tokens_are_not_scaled(tmp_path):
    with pytest.raises(DatasetError, match=r"scale=0\.1: tokens are looked up, not scaled; leave it out"):
        load(tmp_path, scale="0.1", x=TOKENS, y=TOKENS)


@pytest.mark.parametrize(
    ("y", "task", "expected"),
    [(NUMBERS, "", "iid"), (TOKENS, "", "iid"), (np.arange(40) % 2, "", ""), (np.arange(40) % 2, "regression", "iid")],
)
def test_labels_that_are_no_classes_are_dealt_out_at_random_unless_told_otherwise(tmp_path, y, task, expected):
    path = save(tmp_path, x=TOKENS, y=y)
    assert choose_partition(DatasetOptions(npz=path, task=task)) == expected


def sort_pairs(x, y):
    return sorted((tuple(map(float, a.ravel())), tuple(map(float, b.ravel()))) for a, b in zip(x, y, strict=True))


@pytest.mark.parametrize(
    "arrays", [{"y": NUMBERS}, {"y": SWITCHES}, {"x": TOKENS, "y": TOKENS}], ids=["numbers", "switches", "tokens"]
)
def test_client_files_hold_labels_in_their_dtype_and_shape(tmp_path, arrays):
    whole = load(tmp_path, **arrays, client=np.arange(40) % 4)
    settings = PartitionSettings("natural", validation_fraction=0.2)
    for _ in range(2):  # written, and found again
        data = build_federated_data(whole, settings, str(tmp_path / "shards"))
    parts = [data.read_pooled(data.clients, split) for split in SPLITS]
    assert all(y.dtype == whole.train_y.dtype and y.shape == (len(x), *whole.format.labels.shape) for x, y in parts)
    assert [len(x) for x, _ in parts] == [sum(getattr(c, f"num_{split}") for c in data.clients) for split in SPLITS]
    assert sort_pairs(*map(np.concatenate, zip(*parts, strict=True))) == sort_pairs(whole.train_x, whole.train_y)
    assert data.format.labels == whole.format.labels and data.format.num_outputs == whole.format.labels.num_outputs
    assert data.label_counts.shape == (4, 0) and data.format.takes_tokens == whole.format.takes_tokens


@pytest.mark.parametrize("partition", PARTITION_NAMES)
def test_partitions_by_class_need_classes(tmp_path, partition):
    whole = load(tmp_path, y=NUMBERS, client=np.arange(40) % 4)
    settings = PartitionSettings(partition, num_clients=4)
    if partition in ("iid", "natural"):
        assert len(build_federated_data(whole, settings, str(tmp_path / "shards")).clients) == 4
        return
    message = (
        f"partition={partition}: it deals out examples by their class, which regression does not have; expected iid"
    )
    with pytest.raises(DatasetError, match=re.escape(message)):
        build_federated_data(whole, settings, str(tmp_path / "shards"))


def test_examples_in_the_form_of_a_data_set_that_is_there(tmp_path):
    text = ExampleFormat((5,), "int32", (), labels=LabelFormat("next_token", (5,), 9), takes_tokens=True)
    found = read_examples(save(tmp_path, x=TOKENS, y=TOKENS), text, "tokens")
    np.testing.assert_array_equal(found.x, TOKENS)
    assert found.y.dtype == found.x.dtype == np.int32
    with pytest.raises(DatasetError, match=r"labels 0\.\.9, expected 0\.\.8"):
        read_examples(save(tmp_path, x=TOKENS, y=TOKENS + TOKENS // 7), text, "tokens")
    table = ExampleFormat((3, 1), "float32", (), labels=LabelFormat("regression", (), 1))
    numbers = read_examples(save(tmp_path, x=X, y=NUMBERS), table, "features")
    assert numbers.y.dtype == np.float32 and numbers.x.shape == (40, 3, 1)
