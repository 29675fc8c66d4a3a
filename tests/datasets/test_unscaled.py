"""What a scaling of features leaves as it is, by hand.

Features that each client scales by its own numbers, by hand.
"""

import numpy as np
import pytest
from refusals import assert_refused
from small_formats import format_of, make_format

from datasets.arrays import make_array_dataset
from datasets.client_source import ClientSource
from datasets.data_notes import note_numbers
from datasets.example_format import ExampleFormat, Padding, Preprocessing, read_example_format
from datasets.standardized_clients import measure_features, standardize_clients
from datasets.unscaled import (
    StepCounts,
    Unscaled,
    choose_padding,
    count_no_switches,
    count_steps,
    describe_other_fill,
    describe_places,
    find_padding,
    find_switches,
    find_unscaled,
    is_padding,
)
from datasets.unscaled_flag import is_unscaled

ENDS, ANYWHERE = Padding(0.0, False), Padding(0.0, True)
# Zeros before, within and after; a 0 in one of two channels is a measurement.
ONE = np.array([[0, 0, 5, 0, 6, 0], [0, 0, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6]], np.float32)[..., np.newaxis]
TWO = np.array([[[0, 0], [0, 5], [0, 0], [3, 0], [0, 0]]], np.float32)
SERIES, PAIRS = make_format((6, 1)), make_format((5, 2))


@pytest.mark.parametrize(
    ("x", "padding", "steps"),
    [
        (ONE, ENDS, ["110001", "111111", "000000"]),
        (ONE, ANYWHERE, ["110101", "111111", "000000"]),
        (ONE, Padding(5.0, True), ["001000", "000000", "000010"]),
        (TWO, ANYWHERE, ["10101"]),
        (TWO, ENDS, ["10001"]),
    ],
)
def test_steps_of_a_number_at_the_ends_and_anywhere(x, padding, steps):
    found = find_padding(x, padding).astype(int)
    assert ["".join(map(str, row)) for row in found] == steps


def test_steps_are_counted():
    assert count_steps(ONE, 0.0) == StepCounts(9, 1, 18) and count_steps(TWO, 0.0) == StepCounts(2, 1, 5)


@pytest.mark.parametrize(
    ("unscaled", "example_format", "masked", "expected"),
    [
        ("auto", SERIES, None, ENDS),
        ("auto", PAIRS, None, ANYWHERE),
        ("auto", SERIES, 0.0, ANYWHERE),  # the model masks zeros within, too
        ("auto", PAIRS, -1.0, Padding(-1.0, True)),
        ("-1", SERIES, None, Padding(-1.0, True)),
        ("auto", make_format((5, 2), has_whole_steps=True), None, None),  # windows of rows are full
        ("auto", make_format((5, 2), has_whole_steps=True), 0.0, ANYWHERE),
        ("auto", make_format((6, 1), are_features=True), None, None),
        ("auto", make_format((6, 1), feature_names=tuple("abcdef")), None, None),
        ("auto", make_format((6,)), 0.0, None),
        ("auto", make_format((4, 4, 3)), 0.0, None),
        ("categories", PAIRS, 0.0, None),
        ("nothing", PAIRS, 0.0, None),
    ],
)
def test_which_steps_may_be_padding(unscaled, example_format, masked, expected):
    assert choose_padding(unscaled, example_format, masked) == expected


def test_zeros_within_a_series_of_one_channel_are_measurements():
    assert is_padding(ENDS, StepCounts(22, 2, 100)) and not is_padding(ENDS, StepCounts(20, 2, 100))
    assert not is_padding(ENDS, StepCounts(0, 0, 100)) and is_padding(ANYWHERE, StepCounts(0, 1, 100))
    rain = np.array([[0, 3, 0, 1], [2, 0, 5, 1]], np.float32)[..., np.newaxis]
    assert find_unscaled("auto", make_format((4, 1)), lambda: [rain]) == (Unscaled(), StepCounts(1, 2, 8))


def test_columns_of_0_and_1_are_switches_but_few_whole_numbers_are_measurements():
    x = np.array([[0, 1, 0.5, 1, 0], [1, 5, 0, 1, 0], [0, 2, 1, 1, 0]], np.float32)
    assert count_no_switches(x).tolist() == [0, 2, 1, 0, 0]
    assert find_switches(make_format((5,)), [0, 2, 1, 0, 0]) == (0, 3, 4)
    assert find_switches(make_format((4, 4, 2)), [0, 7]) == ()  # a picture of two colours is none
    assert find_switches(make_format((3, 1)), [0, 0, 4]) == ()  # steps of one channel
    assert find_switches(make_format((3, 1)), [0, 0, 0]) == (0, 1, 2)


def test_padding_makes_no_channel_a_measurement():
    x = np.array([[[7, 1], [9, 0], [-1, -1]]], np.float32)
    assert count_no_switches(x, Padding(-1.0, True)).tolist() == [2, 0] and count_no_switches(x).tolist() == [3, 1]
    exempt, counts = find_unscaled("-1", make_format((3, 2)), lambda: [x, x])
    assert exempt == Unscaled((1,), Padding(-1.0, True)) and counts == StepCounts(2, 0, 6)
    assert find_unscaled("auto", make_format((3, 2)), lambda: [x])[0] == Unscaled()
    # Where nothing is scaled, there is nothing to keep.
    assert find_unscaled("auto", make_format((2, 1)), lambda: [np.array([[[1], [0]]])])[0] == Unscaled((0, 1))


def test_reasons_are_told():
    example_format = make_format((4, 1), feature_names=("age", "city", "a", "b"), are_features=True, categories=(1,))
    assert describe_places(example_format, (1, 2, 3), (3,)) == "city (category), a (0 or 1), b (looked up)"
    assert read_example_format(example_format.to_json()) == example_format
    old = {
        name: value for name, value in example_format.to_json().items() if name not in ("categories", "has_whole_steps")
    }
    assert read_example_format(old).categories == ()


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        *((text, True) for text in ("auto", "categories", "nothing", "-1", "0", "1e3")),
        *((text, False) for text in ("none", "nan", "inf", "1e39", "")),
    ],
)
def test_what_the_flag_can_be(text, is_right):
    assert is_unscaled(text) == is_right


def test_no_scaling_is_advised_for_indices_switches_and_padding():
    def note(x, **fields):
        x = np.asarray(x, np.float32)
        return note_numbers(x, make_format(x.shape[1:], **fields), "auto")

    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(0, 5000, 99), rng.normal(size=99)])
    assert "--standardize" in note(table)[0]
    [line] = note(table, categories=(0,))
    assert "indices of categories up to 4," in line and "--standardize" not in line
    assert "feature 1 (counted" in note(table * [1, 1e4], categories=(0,))[1]
    assert not note(np.eye(3).repeat(9, 0)[:, :2] / [1, 1], categories=(0, 1))
    # Of a series filled up to three quarters, the steps themselves have a size of 1000 and the deviation 10.
    series = np.zeros((40, 8, 2))
    series[:, :2] = rng.normal(1000, 10, (40, 2, 2))
    assert "mean of 1e+03 and a deviation of" in note(series)[0] and "433" not in note(series)[0]


def test_another_number_at_the_ends_is_told_unless_it_stands_within():
    few, many = StepCounts(1, 0, 40), StepCounts(11, 1, 40)
    line = describe_other_fill({-1.0: few, -999.0: many})
    assert line.startswith("27.5 % of the steps hold nothing but -999 at the ends") and "give --unscaled=-999" in line
    assert not describe_other_fill({-1.0: StepCounts(10, 1, 40), -9.0: StepCounts(0, 0, 40)})


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
    found = [[scaled.read(client, split)[0].tolist() for client in (0, 1)] for split in ("train", "test")]
    assert found == [[SCALED[::2], SCALED[1::2]], [TEST_SCALED[:1], TEST_SCALED[1:]]]
    assert scaled.read(0, "test")[0].dtype == np.float32 and scaled.digest != make_source().digest


def test_channels_are_measured_over_steps_and_pixels_without_padding():
    means, deviations = measure_features(np.array([[[1, 7], [3, 7]], [[5, 7], [7, 7]]], np.float32))
    assert means.tolist() == [4, 7] and deviations.tolist() == [5**0.5, 1]
    assert measure_features(np.zeros((2, 3, 1)))[0].shape == (3, 1)
    means, deviations = measure_features(np.array([[[4.0], [-1.0]], [[8.0], [6.0]]]), Padding(-1.0, True))
    assert means[:, 0].tolist() == [6, 6] and deviations[:, 0].tolist() == [2, 1]


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
