"""A claim is put to the numbers that a paper prints: they agree with it, contradict it, or are missing."""

import dataclasses
import math

import pytest

from reproductions.engine.claims import AGREE, CONTRADICT, NOT_PRINTED, Claim, ask_printed_tables
from reproductions.engine.collection import Cell
from reproductions.engine.conditions import Condition

OURS = Cell("mnist", "0.1", "ours", 5, "test_accuracy")
OTHER = OURS._replace(algo="other")
LEAD = Condition(((1, OURS), (-1, OTHER)), "ours {0}, other {1}", above=0)
BETWEEN = Condition(((1, OURS),), "ours {0}", above=0.7, below=0.8)


def ask(values, *conditions):
    return ask_printed_tables(Claim("V", "we lead", "we lead", conditions), values.get)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({OURS: 0.75, OTHER: 0.6}, AGREE),
        ({OURS: 0.75, OTHER: 0.9}, CONTRADICT),
        ({OURS: 0.75, OTHER: 0.75}, CONTRADICT),
        ({OURS: 0.75}, NOT_PRINTED),
    ],
)
def test_a_lead_is_strict(values, verdict):
    assert ask(values, LEAD).verdict == verdict


def test_missing_numbers_leave_a_claim_open_unless_one_at_hand_fails():
    assert ask({}, LEAD, BETWEEN) == (NOT_PRINTED, "")
    assert ask({OURS: 0.75}, LEAD, BETWEEN) == (NOT_PRINTED, "1 of 2 comparisons have their numbers")
    assert ask({OURS: 0.5}, LEAD, BETWEEN) == (CONTRADICT, "ours 50.00 %")


def test_the_numbers_name_the_failing_comparisons_or_the_closest_one():
    assert ask({OURS: 0.75, OTHER: 0.6}, LEAD, BETWEEN).numbers == "ours 75.00 %, other 60.00 %; ours 75.00 %"
    failing = ask({OURS: 0.75, OTHER: 0.9}, BETWEEN, LEAD).numbers
    assert failing == "1 of 2 comparisons fail: ours 75.00 %, other 90.00 %"
    closest = ask({OURS: 0.79, OTHER: 0.1}, *[LEAD] * 4, BETWEEN).numbers
    assert closest == "all 5 comparisons hold, the closest: ours 79.00 %"
    assert ask({OURS: 0.1, OTHER: 0.2}, *[LEAD] * 6).numbers.endswith("; and 2 more")


def test_a_claim_follows_from_the_settings_of_the_presets_that_it_names():
    everywhere = Claim("3", "few", "few", (LEAD,), by_construction="why")
    at_cpu = Claim("3", "few", "few", (LEAD,), by_construction="why", constructed_in=frozenset({"cpu"}))
    nowhere = Claim("3", "few", "few", (LEAD,), constructed_in=frozenset({"cpu"}))
    assert [claim.follows_in("cpu") for claim in (everywhere, at_cpu, nowhere)] == [True, True, False]
    assert [claim.follows_in("paper") for claim in (everywhere, at_cpu, nowhere)] == [True, False, False]


def test_runs_of_the_presets_that_it_names_cannot_decide_a_claim():
    nowhere = Claim("3", "few", "few", (LEAD,), not_comparable="why")
    elsewhere = Claim("3", "few", "few", (LEAD,), not_comparable="why", not_comparable_in=frozenset({"cpu"}))
    everywhere = Claim("3", "few", "few", (LEAD,), not_comparable_in=frozenset({"cpu"}))
    assert [claim.is_comparable_in("cpu") for claim in (nowhere, elsewhere, everywhere)] == [False, False, True]
    assert [claim.is_comparable_in("paper") for claim in (nowhere, elsewhere, everywhere)] == [False, True, True]


def test_a_claim_contains_what_follows_from_it():
    lead, both, far, low = (
        Claim("V", "", "", conditions)
        for conditions in (
            (LEAD,),
            (BETWEEN, LEAD),
            (dataclasses.replace(LEAD, above=0.1),),
            (dataclasses.replace(BETWEEN, above=-math.inf),),
        )
    )
    assert both.contains(lead) and both.contains(low) and far.contains(lead) and lead.contains(lead)
    assert not lead.contains(both) and not lead.contains(far) and not low.contains(both)
    assert not lead.contains(Claim("V", "", "", ())), "what compares nothing is no part of anything"
    assert far.compared == lead.compared != both.compared
