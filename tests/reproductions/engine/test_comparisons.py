"""The notation of comparisons: terms and bounds by hand, and what is wrong with others."""

import math

import pytest

from reproductions.engine.collection import Cell
from reproductions.engine.comparisons import SLACK, ComparisonError, parse_comparison
from reproductions.engine.conditions import Condition

AT = {"dataset": "mnist", "setting": "0.1", "round": 5, "metric": "test_accuracy"}
OURS = Cell("mnist", "0.1", "ours", 5, "test_accuracy")
OTHER, BEST = OURS._replace(algo="other"), OURS._replace(algo="best")
FIRST, OTHER_FIRST = OURS._replace(round_num=1), OTHER._replace(round_num=1)
INF = math.inf


def check(field, value):
    if field == "algo" and value not in ("ours", "other", "best", "old1.5"):
        raise ComparisonError(f"{value!r} is no {field}")


def parse(text):
    return parse_comparison(text, AT, check)


@pytest.mark.parametrize(
    ("text", "terms", "above", "below"),
    [
        ("ours > other", [(1, OURS), (-1, OTHER)], 0, INF),
        ("ours > other + 0.18", [(1, OURS), (-1, OTHER)], 0.18, INF),
        ("ours - 0.25 > other", [(1, OURS), (-1, OTHER)], 0.25, INF),
        ("ours < other", [(-1, OURS), (1, OTHER)], 0, INF),
        ("ours - other < 0", [(1, OURS), (-1, OTHER)], -INF, 0),
        ("2 > ours", [(1, OURS)], -INF, 2),
        ("ours >= 2", [(1, OURS)], 2 - SLACK, INF),
        ("ours <= 2", [(1, OURS)], -INF, 2 + SLACK),
        ("ours >= other - 1", [(1, OURS), (-1, OTHER)], -1 - SLACK, INF),
        ("0.7 < ours < 0.8", [(1, OURS)], 0.7, 0.8),
        ("ours - 1 < other < ours + 3", [(-1, OURS), (1, OTHER)], -1, 3),
        ("mean(ours, other) > best", [(0.5, OURS), (0.5, OTHER), (-1, BEST)], 0, INF),
        ("mean(cell(algo=[ours, other])) > best", [(0.5, OURS), (0.5, OTHER), (-1, BEST)], 0, INF),
        ("ours > mean(other, best)", [(1, OURS), (-0.5, OTHER), (-0.5, BEST)], 0, INF),
        (
            "ours - ours(round=1) > other - other(round=1)",
            [(1, OURS), (-1, FIRST), (-1, OTHER), (1, OTHER_FIRST)],
            0,
            INF,
        ),
    ],
)
def test_terms_come_as_they_are_written(text, terms, above, below):
    assert parse(text) == Condition(tuple(terms), "", above, below)


def test_a_printed_number_has_a_margin():
    assert parse("near(ours, 0.5, 0.25)") == Condition(((1, OURS),), "", 0.25, 0.75, is_near=True)


def test_cells_say_what_the_row_does_not():
    (_, cell), _ = parse('ours.loss(setting=1.0, dataset=har) < cell(algo="old1.5", round=1)').terms
    assert cell == Cell("har", "1", "ours", 5, "loss")
    (_, cell), _ = parse('cell(algo="old1.5", setting="8 bits") < ours').terms
    assert cell == Cell("mnist", "8 bits", "old1.5", 5, "test_accuracy")


def test_a_list_stands_for_several_cells_the_first_keyword_outermost():
    terms = parse("mean(cell(algo=[ours, other], round=[1, 5])) > 1").terms
    assert [cell for _, cell in terms] == [FIRST, OURS, OTHER_FIRST, OTHER]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ours >", "cannot be read"),
        ("ours + other", "compares nothing"),
        ("ours = other", "cannot be read"),
        ("ours == other", "expected cells"),
        ("near(ours, 0.5)", "near(cell, number, margin)"),
        ("outs > other", "'outs' is no algo"),
        ("ours(colour=red) > other", "'colour' is no field of a cell; expected dataset, setting"),
        ("ours(round=last) > other", "round 'last': expected a whole number"),
        ("ours(round=min(1, 2)) > other", "'min(1, 2)' is no value of a cell"),
        ("ours(5) > other", "'ours(5)' is no cell"),
        ("cell(algo=[ours, other]) > best", "2 cells; expected mean(...)"),
        ("ours - 1 < other < best + 3", "the same cells on the left and on the right"),
        ("ours < 1 < ours + 3", "no cell in the middle"),
        ("1 < 2", "has no cell"),
        ("cell(round=1) > ours", "a cell without its algo"),
        ("ours * other > 1", "'ours * other' is no cell"),
    ],
)
def test_a_mistake_is_one_line(text, words):
    with pytest.raises(ComparisonError) as error:
        parse(text)
    assert words in str(error.value) and "\n" not in str(error.value)
