"""What a scaling of features leaves as it is, by hand."""

import numpy as np
import pytest
from small_formats import make_format

from datasets.data_notes import note_numbers
from datasets.example_format import Padding, read_example_format
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


def test_steps_of_zeros_at_the_ends_and_anywhere():
    assert find_padding(ONE, ENDS).astype(int).tolist() == [[1, 1, 0, 0, 0, 1], [1] * 6, [0] * 6]
    assert find_padding(ONE, ANYWHERE).astype(int).tolist() == [[1, 1, 0, 1, 0, 1], [1] * 6, [0] * 6]
    assert find_padding(TWO, ANYWHERE).astype(int).tolist() == [[1, 0, 1, 0, 1]]
    assert find_padding(TWO, ENDS).astype(int).tolist() == [[1, 0, 0, 0, 1]]
    assert find_padding(ONE, Padding(5.0, True)).astype(int).tolist() == [
        [0, 0, 1, 0, 0, 0],
        [0] * 6,
        [0, 0, 0, 0, 1, 0],
    ]
    assert count_steps(ONE, 0.0) == StepCounts(9, 1, 18) and count_steps(TWO, 0.0) == StepCounts(2, 1, 5)


@pytest.mark.parametrize(
    ("unscaled", "form", "masked", "expected"),
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
def test_which_steps_may_be_padding(unscaled, form, masked, expected):
    assert choose_padding(unscaled, form, masked) == expected


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
    kept, counts = find_unscaled("-1", make_format((3, 2)), lambda: [x, x])
    assert kept == Unscaled((1,), Padding(-1.0, True)) and counts == StepCounts(2, 0, 6)
    assert find_unscaled("auto", make_format((3, 2)), lambda: [x])[0] == Unscaled()
    # Where nothing is scaled, there is nothing to keep.
    assert find_unscaled("auto", make_format((2, 1)), lambda: [np.array([[[1], [0]]])])[0] == Unscaled((0, 1))


def test_reasons_are_told():
    form = make_format((4, 1), feature_names=("age", "city", "a", "b"), are_features=True, categories=(1,))
    assert describe_places(form, (1, 2, 3), (3,)) == "city (category), a (0 or 1), b (looked up)"
    assert read_example_format(form.to_json()) == form
    old = {name: value for name, value in form.to_json().items() if name not in ("categories", "has_whole_steps")}
    assert read_example_format(old).categories == ()


def test_what_the_flag_can_be():
    assert all(map(is_unscaled, ("auto", "categories", "nothing", "-1", "0", "1e3")))
    assert not any(map(is_unscaled, ("none", "nan", "inf", "1e39", "")))


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
