"""A claim is put to numbers by hand: it holds, it fails, or its numbers are missing."""

import pytest

from launch.reports.claims import FAILS, HOLDS, UNKNOWN, Claim, decide, judge, say_ours, say_printed
from launch.reports.collection import Cell, Measured, PrintedValue
from launch.reports.conditions import Condition

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


FIFTH = Cell("mnist", "0.1", "fedsikd", 5, "test_accuracy")
RIVAL = FIFTH._replace(algo="fedavg")
PRINTED = [PrintedValue("VI", FIFTH, 0.7483), PrintedValue("VI", RIVAL, 0.3779)]
LEADS = Claim("V-C", "FedSiKD leads", "round 5", (Condition(((1, FIFTH), (-1, RIVAL)), "{0} against {1}", above=0),))


def results_of(printed=(), tuned=()):
    return {"printed": dict(printed), "tuned": dict(tuned)}


def test_a_claim_is_put_to_the_paper_and_to_us():
    ours = {FIFTH: Measured(0.74, None, 1), RIVAL: Measured(0.89, None, 1)}
    judgement = judge(LEADS, PRINTED, results_of(ours))
    assert say_printed(judgement.printed) == "agree"
    assert say_ours(judgement.ours) == "not reproduced"
    assert judgement.tuned is None
    assert judge(LEADS, [], results_of()).printed.numbers == ""
    assert say_printed(judge(LEADS, [], results_of()).printed) == "not printed"
    assert say_ours(judge(LEADS, PRINTED, results_of()).ours) == "not run"


def test_tuned_runs_stand_in_where_there_are_some():
    ours = {FIFTH: Measured(0.74, None, 1), RIVAL: Measured(0.89, None, 1)}
    judgement = judge(LEADS, PRINTED, results_of(ours, {FIFTH: Measured(0.9, None, 1)}))
    assert say_ours(judgement.ours) == "not reproduced"
    assert say_ours(judgement.tuned) == "reproduced"
    assert judgement.tuned.numbers == "90.00 % against 89.00 %"


def test_a_tuned_run_that_is_too_short_is_not_filled_up_with_an_untuned_one():
    ours = {FIFTH: Measured(0.95, None, 1), RIVAL: Measured(0.89, None, 1)}
    tuned = {FIFTH._replace(round_num=1): Measured(0.9, None, 1)}
    claim = Claim("V", "x", "x", (*LEADS.conditions, Condition(((1, FIFTH._replace(round_num=1)),), "{0}", above=0)))
    assert say_ours(judge(claim, PRINTED, results_of(ours, tuned)).tuned) == "not run"


def test_a_preset_of_a_papers_own_is_judged_alone():
    """FedCD's results are by size, and it has no tuned runs."""
    results = {"cpu": {FIFTH: Measured(0.74, None, 1), RIVAL: Measured(0.7, None, 1)}, "paper": {}}
    assert say_ours(judge(LEADS, [], results, "cpu").ours) == "reproduced"
    assert say_ours(judge(LEADS, [], results, "paper").ours) == "not run"
    assert judge(LEADS, [], results, "cpu").tuned is None
