"""Reports: their tables and verdicts; and pages, which are what `page.toml` says, with numbers from tables."""

import dataclasses

import pytest

from reproductions.engine import page
from reproductions.engine.claim_rows import Claim
from reproductions.engine.collection import Cell, PrintedValue
from reproductions.engine.comparisons import Condition
from reproductions.engine.page import (
    ABSENT,
    PageError,
    build_further,
    build_verdicts,
    compose_page,
    compose_report,
    look_up,
    split_numbers,
)
from reproductions.engine.paper import Paper
from reproductions.engine.tables import Section, Table

PAPER = Paper("mine", lambda *_: None, draw=lambda *_: None)
COLUMNS = ["section", "claim", "rule", "counted_with", "printed_tables", "printed_tables_numbers"]
OPEN = "1 of 2 comparisons open: A 3, B 2: +1.0 [-1, +3], n = 5"
CONSTRUCTED = ("by construction", "B is at most 4")
CLAIMS = Table(
    [*COLUMNS, "printed", "printed_numbers", "tuned", "tuned_numbers"],
    [
        ["1", "A above B", "more", "", "agree", "A 3, B 2", "undecided", OPEN, "not run", ""],
        ["2", "B at most 4", "", "", "not printed", "", *CONSTRUCTED, *CONSTRUCTED],
    ],
)
FURTHER = Table(
    ["comparison", "numbers"],
    [["A above B", "A 3: +1.0 [+0.5, +1.5], n = 3"], ["A above B twice", "2 ± 1"], ["C", "3 (+1*)"]],
)
PAGE = {
    "title": "Mine",
    "figure": "mine.png",
    "claim": "A is good.",
    "use_it": "Take A, by {lead}. Twice: {twice}. C: {bracketed}.",
    "shown": [{"claim": "A above", "runs": "printed", "why": "by {lead}"}],
    "numbers": {
        "lead": {"table": "further", "row": {"comparison": "A above B"}, "column": "numbers", "part": "interval"},
        "twice": {"table": "further", "row": {"comparison": "twice"}, "column": "numbers", "part": "mean"},
        "bracketed": {"table": "further", "row": {"comparison": "C"}, "column": "numbers", "part": "mean"},
        "none": {"table": "further", "row": {"comparison": "no such"}, "column": "numbers"},
        "many": {"table": "further", "row": {"comparison": "A"}, "column": "numbers"},
        "wrong": {"table": "further", "row": {"comparison": "A"}, "column": "nothing"},
    },
}
TABLES = {"claims": CLAIMS, "further": FURTHER}


@pytest.fixture(autouse=True)
def own_page(monkeypatch):
    monkeypatch.setattr(Paper, "page", PAGE)


def test_a_page_shows_claims_counts_numbers_and_links():
    text = compose_page(PAPER, TABLES)
    assert (
        "| of 2 claims | reproduced | not reproduced | undecided | by construction | not comparable | not run |" in text
    )
    assert "| ours, tuned | 0 | 0 | 0 | 1 | 0 | 1 |" in text
    shown = "| A above B | A 3, B 2 | A 3, B 2 | +1.0 [-1, +3], n = 5; 1 of 2 comparisons open | undecided (ours) |"
    assert f"{shown} by +1.0 [+0.5, +1.5] |" in text
    assert "**Use it?** Take A, by +1.0 [+0.5, +1.5]. Twice: 2. C: 3." in text
    assert "![Mine](mine.png)" in text and "[further](mine_further.csv)" in text


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ("", ("", "")),
        ("A 1 %, B 2 % (x): -1.00 [-2.00, +0.50], n = 3", ("A 1 %, B 2 % (x)", "-1.00 [-2.00, +0.50], n = 3")),
        (
            "all 2 comparisons, the closest: A 1: +1 [0, 2], n = 3",
            ("A 1", "+1 [0, 2], n = 3; all 2 comparisons, the closest"),
        ),
        ("A 53.72 %: undecided; mean [34.26, 73.17], n = 3; margin [1, 2]", ("A 53.72 %", "[34.26, 73.17], n = 3")),
        ("models 2.00: the same in all 3 seeds; more", ("models 2.00", "the same in all 3 seeds")),
        (
            "1 of 2 comparisons open: A 5, B never: 1 of 8 seeds on the claimed side, 2 ties",
            ("A 5, B never", "1 of 8 seeds on the claimed side, 2 ties; 1 of 2 comparisons open"),
        ),
        ("all by Table 3: A 20 %", ("all by Table 3: A 20 %", "")),
        ("points 34.58: [7.12, 62.04], n = 3", ("points 34.58", "[7.12, 62.04], n = 3")),
    ],
)
def test_numbers_of_a_claim_are_split(numbers, expected):
    assert split_numbers(numbers) == expected


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [("B is 4; A is not", "|  |  |"), ("B is 4; models 3.00: [2, 4], n = 3", "| models 3.00 | [2, 4]")],
)
def test_a_claim_by_construction_shows_its_measures_alone(monkeypatch, numbers, shown):
    claims = Table(CLAIMS.columns, [["2", "B at most 4", "", "", "not printed", "", *["by construction", numbers] * 2]])
    wanted = [{"claim": "B at most", "runs": "tuned", "why": "so it is"}]
    monkeypatch.setattr(Paper, "page", {**PAGE, "shown": wanted})
    text = compose_page(PAPER, {**TABLES, "claims": claims})
    assert f"| B at most 4 |  {shown}" in text and "A is not" not in text


def test_what_was_not_run_is_said():
    assert look_up("none", PAGE, TABLES) == ABSENT and look_up("lead", PAGE, {}) == ABSENT


@pytest.mark.parametrize("name", ["many", "wrong", "unknown"])
def test_a_wrong_name_of_a_number_is_an_error(name):
    with pytest.raises(PageError):
        look_up(name, PAGE, TABLES)


def test_a_claim_that_there_is_not_is_an_error(monkeypatch):
    wrong = [{"claim": "C", "runs": "printed", "why": ""}]
    monkeypatch.setattr(Paper, "page", {**PAGE, "shown": wrong})
    with pytest.raises(PageError, match="0 claims"):
        compose_page(PAPER, TABLES)


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
THREE_CLAIMS = (LEADS, BEST_LEADS, FOLLOWS)


SMALL_PAGE = {
    "title": "A paper",
    "figure": "figure.png",
    "claim": "Ours leads.",
    "use_it": "Yes.",
    "shown": [{"claim": "ours leads", "runs": "printed", "why": "it does"}],
}


@pytest.fixture
def compose(monkeypatch):
    """(what a paper has) -> its report."""
    monkeypatch.setattr(Paper, "page", SMALL_PAGE)
    texts = {"legend": "How to read {things}.", "presets": "Ours: mine."}
    monkeypatch.setattr(page, "read_toml", lambda *place: {("one", "tables.toml"): texts}[place])

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
    table = build_verdicts(THREE_CLAIMS, PRINTED, RESULTS, list(LABELS))
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
