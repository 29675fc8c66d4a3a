"""Border checks of `ArrayDataset` and `ExampleFormat`, the digest, the held-out part."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from datasets.arrays import ExampleFormat, hold_out_test_part, make_array_dataset
from datasets.errors import DatasetError
from datasets.federated_data import Preprocessing


def make(x=None, y=None, test_x=None, test_y=None, names=("a", "b"), clients=None):
    x = np.zeros((4, 3, 1), np.float32) if x is None else x
    y = np.array([0, 1, 0, 1]) if y is None else y
    test = (x if test_x is None else test_x, y if test_y is None else test_y)
    return make_array_dataset("toy", (x, y), test, names, Preprocessing(), clients)


def test_labels_become_int32_and_clients_become_positions():
    arrays = make(y=np.array([0, 1, 0, 1], np.uint8), clients=np.array([7, 3, 7, 9]))
    assert arrays.train_y.dtype == np.int32
    assert arrays.train_clients.tolist() == [1, 0, 1, 2]
    assert arrays.client_names == ("client_3", "client_7", "client_9")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"x": np.zeros((4, 3), np.uint8)}, "channel axis"),
        ({"x": np.zeros(4, np.float32)}, "channel axis"),
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
    with pytest.raises(DatasetError, match=message) as caught:
        make(**fields)
    assert "\n" not in str(caught.value)


def test_the_first_example_that_is_not_finite_is_named():
    x = np.zeros((4, 3, 1), np.float32)
    x[2, 1] = np.nan
    x[3, 0] = np.inf
    with pytest.raises(DatasetError, match=r"2 examples .* first is example 2"):
        make(x=x)


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
    whole, rest = (
        make_array_dataset("toy", (x, y), (x, y), ("a", "b"), Preprocessing(), num_dropped=n) for n in (0, 5)
    )
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
    with pytest.raises(DatasetError, match=message):
        ExampleFormat(**{**values, **fields})


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
