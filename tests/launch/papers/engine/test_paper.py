"""A report: the tables of a paper, its claims, what the tables mean, and the page of these."""

import pytest

from launch.papers.engine import page, paper
from launch.papers.engine.claims import Claim
from launch.papers.engine.collection import Cell
from launch.papers.engine.conditions import Condition
from launch.papers.engine.markdown import Section, Table
from launch.papers.engine.paper import Paper

OURS, OTHER = (Cell("mnist", "0.1", algo, 5, "test_accuracy") for algo in ("ours", "other"))
LEADS = Claim(
    "IV", "ours leads other", "at round 5", (Condition(((1, OURS), (-1, OTHER)), "ours {0}, other {1}", above=0),)
)
RESULTS = {"printed": {OURS: {0: 0.9, 1: 0.91, 2: 0.92}, OTHER: {0: 0.8, 1: 0.81, 2: 0.81}}, "tuned": {}}
PAGE = {
    "claim": "Ours leads.",
    "use_it": "Yes.",
    "shown": [{"claim": "ours leads", "runs": "printed", "why": "it does"}],
}


@pytest.fixture
def compose(monkeypatch):
    """(claims by family, what else a paper has) -> its report."""
    monkeypatch.setattr(page, "read_page", lambda folder: PAGE)
    texts = {"legend": "How to read {things}.", "presets": "Ours: mine."}
    monkeypatch.setattr(paper, "read_texts", lambda folder: texts)

    def compose_report(rows, **fields):
        monkeypatch.setattr(Paper, "rows", rows)
        tables = {"results": Section("Table VI", Table(["a"], [["1"]]), "Round 5.\n\n| a |\n| --- |\n| 1 |")}
        one = Paper("one", "one", "A paper", "none", lambda *_: None, **fields)
        return one.compose_report(tables, [], RESULTS, [], things="them")

    return compose_report


def test_a_report_has_tables_claims_and_a_legend(compose):
    report = compose({"claim": (LEADS,), "further": (LEADS,)}, figure="figure.png")
    assert list(report.tables) == ["results", "claims", "further", "legend"]
    legend = {row[0]: row[1:] for row in report.tables["legend"].rows}
    assert legend["all"] == ["", "How to read them."] and legend["runs"] == ["", "Ours: mine."]
    assert legend["results"] == ["Table VI", "Round 5."] and legend["claims"][0] == "Verdicts"
    assert "| ours leads other |  | ours 91.00 %, other 80.67 % |" in report.markdown
    assert "](figure.png)" in report.markdown and "[results](one_results.csv)" in report.markdown


def test_a_report_without_claims_has_its_tables_alone(compose):
    report = compose({})
    assert list(report.tables) == ["results", "legend"]
    assert "verdict" not in report.markdown and "**Use it?** Yes." in report.markdown
