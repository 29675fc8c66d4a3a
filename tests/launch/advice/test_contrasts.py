"""Comparisons by hand: Student's t has closed forms at 2 and 4 degrees of freedom."""

import math

import pytest
from made_contests import make_results

from launch.advice.contrasts import CLIENTS, EXAMPLES, SEEDS, Sample, contrast, level_by_holm
from launch.pages.comparison.seed_statistics import correct_by_holm

OFFSETS = (-0.02, -0.01, 0.0, 0.01, 0.02)


def test_a_gain_is_doubted_over_seeds_and_over_clients():
    """Over seeds 0.02, 0.04, 0.06: mean 0.04, error 0.02 / sqrt(3), t = sqrt(12), p = 1 - t / sqrt(2 + t^2) = 0.0742.

    Over clients 0.02 to 0.06: error 0.0158114 / sqrt(5) = 0.00707107, t^2 = 32, and with sin^2 = 32 / 36 of the angle
    p = 1 - sin (1 + cos^2 / 2) = 0.004813.
    """
    found = contrast(make_results((0.52, 0.54, 0.56), OFFSETS), make_results((0.5, 0.5, 0.5), (0.0,) * 5), 1)
    assert found.gain == pytest.approx(0.04)
    seeds, clients = found.samples
    assert (seeds.unit, seeds.count, clients.unit, clients.count) == (SEEDS, 3, CLIENTS, 5)
    assert seeds.compute_p_value() == pytest.approx(1 - math.sqrt(12 / 14))
    assert clients.compute_p_value() == pytest.approx(0.004813, abs=1e-6)
    assert found.p_value == seeds.compute_p_value() and found.doubted is seeds
    # 4.302653 errors either way over seeds, 2.776445 over clients, which are inside.
    assert found.find_ends(0.05) == pytest.approx((-0.0096828, 0.0896828), abs=1e-6)
    assert clients.find_ends(0.05) == pytest.approx((0.0203676, 0.0596324), abs=1e-6)
    assert found.by_client["site 0"] == pytest.approx(0.02)
    assert not found.is_better(0.05) and found.is_better(0.08) and not found.is_worse(0.08)


def test_where_lower_is_better_a_gain_is_a_smaller_error():
    found = contrast(make_results((2.0, 2.1, 2.0), OFFSETS), make_results((3.0, 3.0, 3.1), OFFSETS[::-1]), -1)
    assert found.gain == pytest.approx(1.0) and found.is_better(0.05)


def test_an_interval_is_without_0_exactly_if_the_p_value_is_below_its_rate():
    found = contrast(make_results((0.52, 0.54, 0.56), OFFSETS), make_results((0.5, 0.5, 0.5), (0.0,) * 5), 1)
    for rate in (found.p_value * 0.999, found.p_value * 1.001):
        low, high = found.find_ends(rate)
        assert (low > 0 or high < 0) == (found.p_value < rate)


def test_fewer_than_three_seeds_decide_nothing():
    found = contrast(make_results((0.9, 0.9), OFFSETS), make_results((0.1, 0.2), OFFSETS), 1)
    assert (found.samples, found.p_value, found.find_ends(0.05)) == ((), 1.0, None)
    assert found.gain == pytest.approx(0.75)


def test_methods_without_a_seed_in_common_have_no_gain():
    first, second = {0: {"a": 0.5}}, {1: {"a": 0.5}}
    assert contrast(first, second, 1).gain is None and not contrast(first, second, 1).is_better(0.05)


def test_a_client_without_a_result_is_left_out_of_both():
    first = make_results((0.6, 0.7, 0.8), (0.0,) * 6)
    second = make_results((0.5, 0.5, 0.5), (0.0,) * 6)
    first[0]["site 5"] = float("nan")
    del second[1]["site 4"]
    assert contrast(first, second, 1).gain == pytest.approx(0.2)


def test_few_clients_are_doubted_by_their_test_examples():
    """0.9 against 0.6: a pair of answers differs at most by the wrong ones, 0.1 + 0.4; of 2 clients with 50 examples
    each the variance is 2 (0.5 / 50) / 4, so the error is 0.0707107 and z = 4.2426.
    """
    first, second = make_results((0.9, 0.91, 0.89), (0, 0)), make_results((0.6, 0.6, 0.6), (0, 0))
    found = contrast(first, second, 1, {"site 0": 50, "site 1": 50})
    _, examples = found.samples
    assert (examples.unit, examples.count, examples.degrees) == (EXAMPLES, 100, math.inf)
    assert examples.error == pytest.approx(0.0707107, abs=1e-6)
    assert examples.compute_p_value() == pytest.approx(math.erfc(0.3 / 0.0707107 / math.sqrt(2)), rel=1e-4)


@pytest.mark.parametrize("number", [2, 4, 5])
def test_errors_of_fewer_than_five_clients_decide_nothing(number):
    """An error has no spread that its test examples show, and seeds may all be tested on the same ones."""
    offsets = (0.0, 0.1, 0.2, 0.3, 0.4)[:number]
    found = contrast(make_results((2.0, 2.01, 2.02), offsets), make_results((4.0, 4.1, 4.0), offsets[::-1]), -1)
    assert found.gain == pytest.approx(2.0233, abs=1e-4) and found.is_better(0.05) == (number == 5)
    if number < 5:
        assert (found.samples, found.p_value, found.find_ends(0.05)) == ((), 1.0, None)


def test_the_same_gain_of_all_clients_is_as_sure_as_a_sign_test():
    """Of 5 clients that all gain the same, 2 in 2^5 would by chance: 0.0625."""
    found = contrast(make_results((0.7, 0.7, 0.7), OFFSETS), make_results((0.5, 0.5, 0.5), OFFSETS), 1)
    seeds, clients = found.samples
    assert seeds.compute_p_value() == 0 and clients.compute_p_value() == pytest.approx(0.0625)
    low, high = found.find_ends(0.05)
    assert low < 0 < high, "which the interval says, too"


def test_a_method_against_itself_is_no_better_and_no_worse():
    results = make_results((0.5, 0.6, 0.7), OFFSETS)
    found = contrast(results, results, 1)
    assert (found.gain, found.p_value, found.find_ends(0.05)) == (0.0, 1.0, (0.0, 0.0))


def test_samples_of_different_sides_decide_nothing():
    """Clients that are in one seed alone can make the mean over clients differ from that over seeds."""
    sample = Sample(SEEDS, 0.1, 0.001, 2, 3)
    found = contrast({}, {}, 1)._replace(gain=0.1, samples=(sample, sample._replace(unit=CLIENTS, mean=-0.1)))
    assert found.p_value == 1.0


def test_rates_by_holm():
    """Of 0.01, 0.04, 0.03 the first is below 0.05 / 3; the next, 0.03, is not below 0.05 / 2, where it ends."""
    assert level_by_holm([0.01, 0.04, 0.03]) == pytest.approx([0.05 / 3, 0.025, 0.025])
    assert level_by_holm([0.01, 0.02, 0.03]) == pytest.approx([0.05 / 3, 0.025, 0.05])
    assert level_by_holm([0.5]) == [0.05] and level_by_holm([]) == []


def test_rates_by_holm_of_questions_that_count_as_one_together():
    """Two halves beside one whole make 2. 0.01 of a half counts as 0.02, is first, and has (0.05 / 2) / 2 = 0.0125.

    What is left makes 1.5. 0.03 of the whole has 0.05 / 1.5 = 0.0333; the last half, 0.03, has (0.05 / 0.5) / 2 = 0.05.
    """
    assert level_by_holm([0.03, 0.01, 0.03], 0.05, [1, 0.5, 0.5]) == pytest.approx([0.05 / 1.5, 0.0125, 0.05])
    # 0.02 of a half counts as 0.04, not below 0.025, where it ends.
    assert level_by_holm([0.06, 0.02, 0.03], 0.05, [1, 0.5, 0.5]) == pytest.approx([0.025, 0.0125, 0.0125])


@pytest.mark.parametrize("p_values", [(0.01, 0.02, 0.03), (0.02, 0.01, 0.2), (0.04, 0.04), (0.016, 0.024, 0.049)])
def test_a_p_value_is_below_its_rate_exactly_if_the_corrected_one_is_below_the_familys(p_values):
    corrected = correct_by_holm(p_values)
    for value, rate, adjusted in zip(p_values, level_by_holm(p_values), corrected, strict=True):
        assert (value < rate) == (adjusted < 0.05)
