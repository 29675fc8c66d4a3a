"""Pages of papers: what `page.toml` says, with numbers from tables, in at most 60 lines."""

import pytest

from reproductions.engine.markdown import Table
from reproductions.engine.page import ABSENT, PageError, compose_page, look_up, split_numbers
from reproductions.engine.paper import Paper

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
