"""Border checks of `ArrayDataset` and `ExampleFormat`, the digest, the held-out part."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from refusals import assert_refused
from small_formats import format_of, make_format

from datasets.arrays import hold_out_test_part, make_array_dataset
from datasets.example_format import ExampleFormat, LabelFormat


def make(x=None, y=None, test_x=None, test_y=None, names=("a", "b"), clients=None):
    x = np.zeros((4, 3, 1), np.float32) if x is None else x
    y = np.array([0, 1, 0, 1]) if y is None else y
    test = (x if test_x is None else test_x, y if test_y is None else test_y)
    return make_array_dataset("toy", (x, y), test, format_of(x, names), clients)


def test_labels_become_int32_and_clients_become_positions():
    arrays = make(y=np.array([0, 1, 0, 1], np.uint8), clients=np.array([7, 3, 7, 9]))
    assert arrays.train_y.dtype == np.int32
    assert arrays.train_clients.tolist() == [1, 0, 1, 2]
    assert arrays.client_names == ("client_3", "client_7", "client_9")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"x": np.zeros((4, 3), np.uint8)}, "channel axis"),
        ({"x": np.zeros(4, np.float32)}, "input_shape="),
        ({"x": np.zeros((4, 3, 1))}, "float64"),
        ({"y": np.array([0, 1, 0])}, "a label for each example"),
        ({"y": np.array([0, 1, 0, 2])}, r"labels 0\.\.2, expected 0\.\.1"),
        ({"y": np.array([0, 1, 0, -1])}, r"labels -1\.\.1"),
        ({"x": np.zeros((0, 3, 1), np.float32), "y": np.zeros(0, int)}, "empty"),
        ({"test_x": np.zeros((4, 2, 1), np.float32)}, "expected the same"),
        ({"names": ("a",), "y": np.zeros(4, int)}, "at least 2"),
        ({"clients": np.array([1, 2])}, "client for each train example"),
    ],
)
def test_what_does_not_fit_is_reported_in_one_line(fields, message):
    assert_refused(message, make, **fields)


def test_arrays_are_what_their_format_says():
    part = np.zeros((4, 3, 1), np.float32), np.arange(4) % 2
    for shape, dtype in (((2, 1), "float32"), ((3, 1), "uint8"), ((3,), "float32")):
        assert_refused(
            rf"^toy, train part: x is float32 \(4, 3, 1\), .* says {dtype} and",
            make_array_dataset,
            "toy",
            part,
            part,
            make_format(shape, dtype, 2),
        )


def test_the_first_example_that_is_not_finite_is_named():
    x = np.zeros((4, 3, 1), np.float32)
    x[2, 1] = np.nan
    x[3, 0] = np.inf
    assert_refused(r"2 examples .* first is example 2", make, x=x)


def test_digest_is_that_of_the_content():
    changed = np.zeros((4, 3, 1), np.float32)
    changed[3, 2] = 1e-30
    assert make().source_digest == make().source_digest
    digests = {make().source_digest, make(x=changed).source_digest, make(names=("a", "c")).source_digest}
    digests.add(make(clients=np.array([0, 0, 1, 1])).source_digest)
    assert len(digests) == 4


@hypothesis_settings(deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=80), st.integers(0, 9))
def test_held_out_part_is_stratified_and_disjoint(labels, seed):
    labels = np.array(labels)
    train, test = hold_out_test_part(labels, 0.2, seed)
    assert sorted([*train, *test]) == list(range(len(labels)))
    for label in np.unique(labels):
        size = np.count_nonzero(labels == label)
        assert np.count_nonzero(labels[test] == label) == int(size * 0.2 + 0.5) < size


def test_dropped_examples_are_no_part_of_the_identity():
    x, y = np.zeros((4, 3), np.float32), np.array([0, 1, 0, 1])
    whole, rest = (make_array_dataset("toy", (x, y), (x, y), format_of(x, ("a", "b")), num_dropped=n) for n in (0, 5))
    assert (whole.num_dropped, rest.num_dropped) == (0, 5)
    assert whole.source_digest == rest.source_digest


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"input_dtype": "float64"}, "input_dtype=float64"),
        ({"input_shape": ()}, "input_shape="),
        ({"input_shape": (3, 0)}, "input_shape="),
        ({"class_names": ("a",)}, "at least 2"),
    ],
)
def test_a_format_that_no_data_set_has_is_refused(fields, message):
    values = {"input_shape": (3,), "input_dtype": "float32", "class_names": ("a", "b")}
    ExampleFormat(**values)
    assert_refused(message, ExampleFormat, **{**values, **fields})


@hypothesis_settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), min_size=1, max_size=60), st.integers(0, 3))
def test_clients_keep_an_example_of_those_held_out(examples, seed):
    labels, clients = np.array(examples).T
    drawn_train, drawn_test = hold_out_test_part(labels, 0.2, seed)
    train, test = hold_out_test_part(labels, 0.2, seed, clients)
    assert sorted([*train, *test]) == list(range(len(labels)))
    sizes, drawn_sizes = (np.bincount(labels[part], minlength=4) for part in (test, drawn_test))
    assert np.all(sizes <= drawn_sizes) and np.all((sizes > 0) == (drawn_sizes > 0))
    lost = np.setdiff1d(clients, clients[drawn_train])
    if not len(lost):  # the draw is that without clients, so that files are divided as ever
        np.testing.assert_array_equal(test, drawn_test)
    still_lost = np.setdiff1d(clients, clients[train])
    assert set(still_lost) <= set(lost)
    num_train = np.bincount(clients[train], minlength=13)
    for label in np.unique(labels[np.isin(clients, still_lost)]):  # of which nobody has another example to give
        assert sizes[label] == 1 and num_train[clients[train][labels[train] == label]].max(initial=0) <= 1


@pytest.mark.parametrize("labels", [np.linspace(0, 1, 40), np.tile(np.arange(40) % 2, (3, 1)).T])
def test_labels_that_are_no_classes_are_held_out_at_random(labels):
    """Stratified by their values, single numbers would all stay; rows have no order to stratify by."""
    train, test = hold_out_test_part(labels, 0.2, seed=1)
    assert len(test) == 8 and sorted([*train, *test]) == list(range(40))
    same, _ = hold_out_test_part(np.zeros(40, int), 0.2, seed=1)
    np.testing.assert_array_equal(train, same)


@pytest.mark.parametrize(
    ("labels", "y", "class_names", "message"),
    [
        (LabelFormat("regression", (), 1), [0.5, np.nan], (), "a label is NaN or infinite"),
        (LabelFormat("multi_label", (2,), 2), [[0, 1], [1, 2]], (), r"labels 0\.\.2, expected 0\.\.1"),
        (LabelFormat("multi_label", (2,), 2), [[0, 1], [1, 0]], ("a",), "1 class names, expected 2, one an output, or"),
        (LabelFormat("next_token", (2,), 3), [[0, 1], [3, 2]], (), r"labels 0\.\.3, expected 0\.\.2"),
        (LabelFormat("binary"), [0, 1], ("a", "b", "c"), "3 classes, expected 2 for --task=binary"),
        (
            LabelFormat("regression", (2,), 2),
            [0.5, 1],
            (),
            r"y is float32 .*, expected float32 \(2, 2\), a label for each",
        ),
    ],
)
def test_labels_must_be_those_of_the_task(labels, y, class_names, message):
    part = np.zeros((2, 3), np.float32), np.array(y)
    make = lambda: make_array_dataset("toy", part, part, format_of(part[0], class_names, labels=labels))
    assert_refused(message, make)  # some are refused by the format already


@pytest.mark.parametrize(
    "arguments", [("ranking",), ("multi_label", (), 2), ("classification", (2,)), ("regression", (), 1, (1.0, 2.0))]
)
def test_a_format_of_labels_must_fit_its_task(arguments):
    assert_refused(r"expected one of|do not fit|expected 1 numbers", LabelFormat, *arguments)


def test_tokens_are_whole_numbers_from_0_on():
    tokens = np.arange(6, dtype=np.int32).reshape(2, 3)
    part, names = (tokens, np.arange(2)), ("a", "b")
    arrays = make_array_dataset("toy", part, part, format_of(part[0], names, takes_tokens=True))
    assert arrays.train_x.dtype == np.int32
    assert_refused("input_dtype=int32: expected uint8 or float32", format_of, part[0], names)
    assert_refused(
        "expected tokens, uint8 or int32, of at least 0",
        make_array_dataset,
        "toy",
        (tokens - 1, part[1]),
        part,
        format_of(tokens - 1, names, takes_tokens=True),
    )
