"""A report: the tables of a paper, its claims with their verdicts, what the tables mean, and the page of these."""

import dataclasses

import pytest

from reproductions.engine import report
from reproductions.engine.claims import Claim
from reproductions.engine.collection import Cell, PrintedValue
from reproductions.engine.conditions import Condition
from reproductions.engine.markdown import Section, Table
from reproductions.engine.paper import Paper
from reproductions.engine.report import build_further, build_verdicts, compose_report

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


PAGE = {
    "title": "A paper",
    "figure": "figure.png",
    "claim": "Ours leads.",
    "use_it": "Yes.",
    "shown": [{"claim": "ours leads", "runs": "printed", "why": "it does"}],
}


@pytest.fixture
def compose(monkeypatch):
    """(what a paper has) -> its report."""
    monkeypatch.setattr(Paper, "page", PAGE)
    texts = {"legend": "How to read {things}.", "presets": "Ours: mine."}
    monkeypatch.setattr(report, "read_toml", lambda *place: {("one", "tables.toml"): texts}[place])

    def make_report(**fields):
        tables = {"results": Section("Table VI", Table(["a"], [["1"]]), "Round 5.")}
        return compose_report(Paper("one", lambda *_: None, **fields), tables, [], RESULTS, [], things="them")

    return make_report


def test_a_report_has_tables_claims_and_a_legend(compose):
    report = compose(claims=(LEADS,), further=(LEADS,), draw=lambda *_: None)
    assert list(report.tables) == ["results", "claims", "further", "legend"]
    legend = {row[0]: row[1:] for row in report.tables["legend"].rows}
    assert legend["all"] == ["", "How to read them."] and legend["runs"] == ["", "Ours: mine."]
    assert legend["results"] == ["Table VI", "Round 5."] and legend["claims"][0] == "Verdicts"
    assert "| ours leads other |  | ours 60.00 %, other 50.00 % |" in report.markdown
    assert "](figure.png)" in report.markdown and "[results](one_results.csv)" in report.markdown


def test_a_report_without_claims_has_its_tables_alone(compose):
    report = compose()
    assert list(report.tables) == ["results", "legend"]
    assert "verdict" not in report.markdown and "**Use it?** Yes." in report.markdown


def test_a_row_a_claim_with_the_numbers():
    table = build_verdicts(CLAIMS, PRINTED, RESULTS, list(LABELS))
    rows = table.records
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


def test_a_claim_that_compares_what_an_earlier_one_does_names_it():
    far = Claim("VI", "ours leads by far", "", (dataclasses.replace(LEADS.conditions[0], above=0.2),))
    rows = build_verdicts([LEADS, far, BEST_LEADS], PRINTED, RESULTS, list(LABELS)).records
    assert [row["counted_with"] for row in rows] == ["", "ours leads other", ""]


def test_a_tuned_run_is_compared_with_tuned_runs_only():
    results = {"printed": RESULTS["printed"], "tuned": {OURS: three(0.9)}}
    (row,) = build_verdicts([LEADS], [], results, list(LABELS)).records
    assert (row["printed"], row["tuned"]) == ("reproduced", "not run")


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
