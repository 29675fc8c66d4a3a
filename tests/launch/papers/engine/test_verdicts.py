"""Verdicts as tables, on numbers by hand."""

import pytest

from launch.papers.engine.claims import Claim
from launch.papers.engine.collection import Cell, PrintedValue
from launch.papers.engine.conditions import Condition
from launch.papers.engine.verdicts import (
    build_further,
    build_verdicts,
    judge,
)

OURS, OTHER, BEST = (Cell("mnist", "0.1", name, 5, "test_accuracy") for name in ("ours", "other", "best"))
LABELS = {"printed": "ours", "tuned": "ours, tuned"}
PRINTED = [PrintedValue("VI", OURS, 0.9), PrintedValue("VI", OTHER, 0.8)]


def three(mean):
    """Three seeds whose mean has the 95 % interval mean +- 0.0248."""
    return {0: mean - 0.01, 1: mean, 2: mean + 0.01}


LEVEL = dict.fromkeys(range(3), 0.5)
RESULTS = {
    "printed": {OURS: three(0.6), OTHER: LEVEL},  # 0.1 +- 0.0248
    "tuned": {OURS: three(0.4), OTHER: LEVEL, BEST: three(0.51)},
}


def lead_of(first, second, **fields):
    text = f"{first.algo} leads {second.algo}"
    shown = f"{first.algo} {{0}}, {second.algo} {{1}}"
    return Claim("V", text, "at round 5", (Condition(((1, first), (-1, second)), shown, above=0),), **fields)


LEADS, BEST_LEADS = lead_of(OURS, OTHER), lead_of(BEST, OTHER)
FOLLOWS = lead_of(OTHER, OURS, by_construction="it cannot be otherwise")
CLAIMS = (LEADS, BEST_LEADS, FOLLOWS)


@pytest.fixture
def judgements():
    return [judge(claim, PRINTED, RESULTS) for claim in CLAIMS]


def test_a_row_a_claim_with_the_numbers(judgements):
    table = build_verdicts(judgements, LABELS)
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert len(set(table.columns)) == len(table.columns)
    assert [[row[name] for name in ("printed_tables", *LABELS)] for row in rows] == [
        ["agree", "reproduced", "not reproduced"],
        ["not printed", "not run", "undecided"],
        ["contradict it", "by construction", "by construction"],
    ]
    assert rows[0]["printed_tables_numbers"] == "ours 90.00 %, other 80.00 %"
    assert rows[0]["tuned_numbers"] == "ours 40.00 %, other 50.00 %: -10.00 [-12.48, -7.52], n = 3"
    assert rows[1]["printed_numbers"] == ""
    assert rows[2]["printed_numbers"].startswith("it cannot be otherwise; other 50.00 %, ours 60.00 %: -10.00")


def test_a_tuned_run_is_compared_with_tuned_runs_only():
    results = {"printed": RESULTS["printed"], "tuned": {OURS: three(0.9)}}
    assert judge(LEADS, [], results).ours["tuned"].verdict == "not run"


def test_our_further_comparisons_are_a_family_a_preset():
    """0.01 +- 0.0248 is undecided; 0.1 either way has t = 17.3, p = 0.0033, which Holm doubles in a family of two."""
    _, rows = build_further([LEADS, BEST_LEADS], RESULTS, LABELS).table
    assert [row[:4] for row in rows] == [
        ["ours", "ours leads other", "yes", "0.0033"],
        ["ours, tuned", "ours leads other", "no", "0.0066"],
        ["ours, tuned", "best leads other", "undecided", "0.2254"],
    ]
    assert build_further([], {}, LABELS) is None
    assert build_further([LEADS], {"printed": {}, "tuned": {}}, LABELS) is None
