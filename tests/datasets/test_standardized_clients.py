"""Features that each client scales by its own numbers, by hand."""

import numpy as np
import pytest
from refusals import assert_refused
from small_formats import format_of

from datasets.arrays import make_array_dataset
from datasets.client_source import ClientSource
from datasets.example_format import ExampleFormat, Padding, Preprocessing
from datasets.standardized_clients import measure_features, standardize_clients

# Client 2 has 1 and 3, so a mean of 2 and a deviation of 1, and the constant 5; client 10 has 10 and 30, and 1e6 and 2.
X = np.array([[1, 5], [10, 1e6 - 1], [3, 5], [30, 1e6 + 1]], np.float32)
WHOSE = np.array([2, 10, 2, 10])
TEST_X, TEST_WHOSE = np.array([[4, 5], [20, 1e6 + 2]], np.float32), np.array([2, 10])
SCALED, TEST_SCALED = [[-1, 0], [-1, -1], [1, 0], [1, 1]], [[2, 0], [0, 2]]


def make_arrays(**fields):
    fields = {"clients": WHOSE, "test_clients": TEST_WHOSE, **fields}
    return make_array_dataset(
        "mine",
        (X, np.array([0, 1, 0, 1])),
        (TEST_X, np.array([0, 1])),
        format_of(X, "ab", Preprocessing(2.0)),
        **fields,
    )


def make_source(has_clients=True, has_tests=True):
    rows = {"train": [WHOSE == 2, WHOSE == 10], "test": [TEST_WHOSE == 2, TEST_WHOSE == 10]}
    counts = {"train": np.array([2, 2]), **({"test": np.array([1, 1])} if has_tests else {})}

    def read(client, split):
        x = {"train": X, "test": TEST_X}[split][rows[split][client]]
        return x, np.zeros(len(x), np.int32)

    example_format = ExampleFormat((2,), "float32", ("a", "b"))
    return ClientSource("mine", example_format, ("c2", "c10"), counts, read, "d" * 64, has_clients=has_clients)


def test_arrays_by_hand():
    before, scaled = make_arrays(), standardize_clients(make_arrays())
    assert scaled.train_x.tolist() == SCALED and scaled.test_x.tolist() == TEST_SCALED
    assert scaled.train_x.dtype == np.float32 and scaled.format.preprocessing == Preprocessing()
    assert scaled.client_names == ("client_2", "client_10") and scaled.source_digest != before.source_digest
    assert "own means" in scaled.reading and before.train_x.tolist() == X.tolist()


def test_a_source_by_hand():
    scaled = standardize_clients(make_source())
    assert [scaled.read(client, "train")[0].tolist() for client in (0, 1)] == [SCALED[::2], SCALED[1::2]]
    assert [scaled.read(client, "test")[0].tolist() for client in (0, 1)] == [TEST_SCALED[:1], TEST_SCALED[1:]]
    assert scaled.read(0, "test")[0].dtype == np.float32 and scaled.digest != make_source().digest


def test_channels_are_measured_over_steps_and_pixels():
    means, deviations = measure_features(np.array([[[1, 7], [3, 7]], [[5, 7], [7, 7]]], np.float32))
    assert means.tolist() == [4, 7] and deviations.tolist() == [5**0.5, 1]
    assert measure_features(np.zeros((2, 3, 1)))[0].shape == (3, 1)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: make_arrays(clients=None, test_clients=None), "names no clients"),
        (lambda: make_arrays(test_clients=None), "which test examples are whose"),
        (lambda: make_source(has_clients=False), "names no clients"),
        (lambda: make_source(has_tests=False), "which test examples are whose"),
    ],
)
def test_where_it_makes_no_sense(make, said):
    assert_refused(said, standardize_clients, make())


def make_clients(parts, **fields):
    """A source of clients with the same train and test examples."""
    x = [np.asarray(part, np.float32) for part in parts]
    counts = np.array([len(part) for part in x])
    return ClientSource(
        "mine",
        ExampleFormat(x[0].shape[1:], "float32", ("a", "b"), **fields),
        tuple(f"c{i}" for i in range(len(x))),
        {"train": counts, "test": counts},
        lambda client, split: (x[client], np.zeros(len(x[client]), np.int32)),
        "d" * 64,
    )


def test_padding_stays_and_is_in_no_mean():
    """Client 0 measures 4 and 8, before and after zeros: mean 6, deviation 2. Client 1 has nothing but padding."""
    two = make_clients([[[[0, 0], [4, 1], [0, 0]], [[8, 3], [0, 0], [0, 0]]], [[[0, 0]] * 3]])
    scaled = standardize_clients(two)
    assert scaled.read(0, "test")[0].tolist() == [[[0, 0], [-1, -1], [0, 0]], [[1, 1], [0, 0], [0, 0]]]
    assert scaled.read(1, "train")[0].tolist() == [[[0, 0]] * 3]
    assert "77.8 % of the steps hold nothing but 0" in scaled.reading
    assert scaled.digest != standardize_clients(two, "nothing").digest


def test_steps_of_another_number_are_scaled_and_told():
    parts = [[[[4, 5], [-9, -9]], [[8, 7], [-9, -9]]], [[[4, 5], [6, 7]]]]  # 2 of 6 steps
    said = "33.3 % of the steps hold nothing but -9 at the ends of sequences and are scaled as measurements"
    assert standardize_clients(make_clients(parts)).reading.endswith(f"{said}; if they are padding, give --unscaled=-9")
    for unscaled in ("-9", "categories"):
        assert said not in standardize_clients(make_clients(parts), unscaled).reading


def test_a_step_that_becomes_0_beside_padding_moves_aside():
    scaled = standardize_clients(make_clients([[[[5, 5], [0, 0]], [[5, 5], [0, 0]]]]))
    assert scaled.read(0, "train")[0].tolist() == [[[2**-6] * 2, [0, 0]]] * 2


def test_all_clients_leave_the_same_features():
    """Client 0 has only 0 and 1 in feature 0, which others measure; feature 1 is a switch of all, 2 a category."""
    parts = [[[0, 1, 7], [1, 0, 9]], [[4, 1, 7], [8, 1, 3]]]
    scaled = standardize_clients(make_clients(parts, categories=(2,)))
    assert scaled.read(0, "train")[0].tolist() == [[-1, 1, 7], [1, 0, 9]]
    assert scaled.read(1, "train")[0].tolist() == [[-1, 1, 7], [1, 1, 3]]
    assert scaled.reading.endswith("but not feature 1 (0 or 1), feature 2 (category)")
    everything = standardize_clients(make_clients(parts, categories=(2,)), "nothing")
    assert everything.read(0, "train")[0].tolist() == [[-1, 1, -1], [1, -1, 1]]


def test_padding_is_not_measured():
    x = np.array([[[4.0], [-1.0]], [[8.0], [6.0]]])
    means, deviations = measure_features(x, Padding(-1.0, True))
    assert means[:, 0].tolist() == [6, 6] and deviations[:, 0].tolist() == [2, 1]
