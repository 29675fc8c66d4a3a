"""Tables, sections and results as Markdown."""

import math

import pytest

from reproductions.engine.markdown import (
    Section,
    Table,
    format_measured,
    format_rounds,
    format_table,
    tabulate_legend,
)

TABLE = Table(("a", "b"), [["1", ""]])
TEXT = "| a | b |\n| --- | --- |\n| 1 |  |"


def test_a_table():
    assert format_table(TABLE) == TEXT
    assert TABLE.records == [{"a": "1", "b": ""}]


def test_a_legend_says_how_a_table_is_read():
    sections = {"one": Section("One", TABLE, "Read it\nso."), "two": Section("Two", TABLE)}
    legend = tabulate_legend({"all": "For\nall.", "none": ""}, sections)
    assert legend.rows == [["all", "", "For all."], ["one", "One", "Read it so."], ["two", "Two", ""]]


def test_a_result():
    assert format_measured("test_accuracy", [0.7, 0.8, 0.9]) == "80.00 ± 10.00"
    assert format_measured("test_loss", [0.8]) == "0.80"
    assert format_measured("test_loss", []) == "not run"
    assert format_measured("test_loss", [], absent="") == ""
    assert format_measured("rounds", [5, 15, math.inf]) == "not reached by all"


@pytest.mark.parametrize(
    ("rounds", "text"),
    [
        ([5, 10, 15], "10.00 ± 5.00"),
        ([5, 10, 15, math.inf, math.inf], "median 15; > 50 in 2 of 5"),
        ([5, math.inf, math.inf], "> 50 in 2 of 3"),
        ([math.inf, math.inf], "> 50 in 2 of 2"),
    ],
)
def test_rounds_that_some_seeds_never_reach(rounds, text):
    assert format_rounds(rounds, 50) == text
