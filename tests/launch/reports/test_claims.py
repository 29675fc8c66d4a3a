"""A claim is put to numbers by hand: it holds, it fails, or its numbers are missing."""

import pytest

from launch.reports.claims import FAILS, HOLDS, UNKNOWN, Cell, Claim, Condition, decide, format_value

OURS = Cell("mnist", "0.1", "ours", 5, "test_accuracy")
OTHER = OURS._replace(algo="other")
LEAD = Condition(((1, OURS), (-1, OTHER)), "ours {0}, other {1}", above=0)
NEAR = Condition(((1, OURS),), "ours {0}", above=0.7, below=0.8)


def claim_of(*conditions):
    return Claim("V", "we lead", "we lead", conditions)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [({OURS: 0.75, OTHER: 0.6}, HOLDS), ({OURS: 0.75, OTHER: 0.9}, FAILS), ({OURS: 0.75, OTHER: 0.75}, FAILS)],
)
def test_a_lead_is_strict(values, verdict):
    assert decide(claim_of(LEAD), values.get).verdict == verdict


def test_the_margin_is_the_distance_to_the_nearer_bound():
    assert NEAR.compute_margin({OURS: 0.72}.get) == pytest.approx(0.02)
    assert NEAR.compute_margin({OURS: 0.83}.get) == pytest.approx(-0.03)
    assert LEAD.compute_margin({OURS: 0.75}.get) is None


def test_missing_numbers_leave_a_claim_open_unless_one_at_hand_fails():
    assert decide(claim_of(LEAD), {OURS: 0.75}.get) == (UNKNOWN, "")
    assert decide(claim_of(LEAD, NEAR), {OURS: 0.75}.get) == (UNKNOWN, "1 of 2 comparisons have their numbers")
    assert decide(claim_of(LEAD, NEAR), {OURS: 0.5}.get) == (FAILS, "ours 50.00 %")


def test_the_numbers_name_the_failing_comparisons_or_the_closest_one():
    outcome = decide(claim_of(NEAR, LEAD), {OURS: 0.75, OTHER: 0.9}.get)
    assert outcome.numbers == "1 of 2 comparisons fail: ours 75.00 %, other 90.00 %"
    outcome = decide(claim_of(*[LEAD] * 4, NEAR), {OURS: 0.79, OTHER: 0.1}.get)
    assert outcome.numbers == "all 5 comparisons hold, the closest: ours 79.00 %"
    outcome = decide(claim_of(*[LEAD] * 6), {OURS: 0.1, OTHER: 0.2}.get)
    assert outcome.numbers.endswith("; and 2 more")


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("test_accuracy", 0.7483, "74.83 %"),
        ("test_loss", 1.452, "1.45"),
        ("total_drift", 0.00123, "0.00123"),
        ("test_loss", None, "not run"),
    ],
)
def test_values_are_shown_in_their_unit(metric, value, text):
    assert format_value(metric, value) == text
