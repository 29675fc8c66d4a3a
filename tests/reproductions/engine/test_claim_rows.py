"""Rows become claims: their texts, results and seeds; and what the numbers that a paper prints say to them."""

import dataclasses
import math

import pytest

from reproductions.engine.claim_rows import AGREE, CONTRADICT, NOT_PRINTED, Book, Claim, ClaimError, ask_printed_tables
from reproductions.engine.collection import Cell
from reproductions.engine.comparisons import Condition

ALGOS = {"ours": "Ours", "other": "The other", "best": "The best"}
BOOK = Book(
    at={"dataset": "mnist", "setting": "0.1", "round": 5, "metric": "test_accuracy"},
    names={"algo": ALGOS, "dataset": {"mnist": "MNIST", "har": "HAR"}},
    texts={1: "{0.algo} {0}", 2: "{0.algo} {0}, {1.algo} {1} ({0.dataset}, alpha {0.setting}, round {0.round})"},
    seeds={"har": (5, 6, 7, 9)},
)
RIVALS = ("other", "best")


def test_a_row_is_a_claim():
    claim = BOOK.claim(
        "V",
        "we lead",
        "most accurate",
        lambda runs: [runs("ours", round=number) > runs(rival, round=number) for number in (1, 5) for rival in RIVALS],
    )
    assert (claim.section, claim.text, claim.rule) == ("V", "we lead", "most accurate")
    assert not (claim.by_construction or claim.not_comparable)
    assert [condition.text for condition in claim.conditions] == [
        f"Ours {{0}}, {name} {{1}} (MNIST, alpha 0.1, round {number})"
        for number in (1, 5)
        for name in ("The other", "The best")
    ]
    assert [condition.cells[1][2:4] for condition in claim.conditions] == [
        *(("other", 1), ("best", 1), ("other", 5), ("best", 5)),
    ]


def test_a_further_comparison_has_no_section_and_may_have_a_text():
    (condition,) = Book(BOOK.at).further("plain", lambda runs: runs("ours") > runs("other")).conditions
    assert condition.text == "ours {0}, other {1}"
    claim = BOOK.further(
        "once more", lambda runs: runs("ours", round=1) < runs("ours"), text="{0.round}: {0}, then {1}"
    )
    assert claim.section == claim.rule == "" and claim.conditions[0].text == "1: {0}, then {1}"


def test_a_comparison_may_have_a_text_of_its_own_and_a_row_fields_of_its_own():
    claim = BOOK.claim(
        "V",
        "HAR",
        "",
        lambda runs: [
            runs("ours", "loss") < 3,
            (runs("ours") > runs("best")).told("{1.algo} {1} of {0.dataset}"),
            runs("ours", "loss", round=1).near(1, 0.1),
        ],
        dataset="har",
        setting="2",
    )
    assert [each.text for each in claim.conditions] == ["Ours {0}", "The best {1} of HAR", "Ours {0}"]
    assert claim.conditions[0].cells[0] == ("har", "2", "ours", 5, "loss")
    assert claim.conditions[2].cells[0] == ("har", "2", "ours", 1, "loss") and claim.conditions[2].is_near


def test_the_seeds_that_decide_are_those_of_the_data_unless_the_row_has_its_own():
    compare = lambda runs: runs("ours") > runs("other")
    conditions = [
        BOOK.further("MNIST", compare).conditions[0],
        BOOK.further("HAR", compare, dataset="har").conditions[0],
        BOOK.further("both", lambda runs: runs("ours") > runs("other", dataset="har")).conditions[0],
        BOOK.further("the first ones", compare, dataset="har", seeds=(0, 1)).conditions[0],
    ]
    assert [sorted(each.seeds) for each in conditions] == [[], [5, 6, 7, 9], [5, 6, 7, 9], [0, 1]]
    by_cell = {cell: dict.fromkeys((0, 5, 9, 11), 1.0) for each in conditions for cell in each.cells}
    assert [list(each.compute_by_seed(by_cell.get)) for each in conditions] == [[0, 5, 9, 11], [5, 9], [5, 9], [0]]
    other = Book(BOOK.at, BOOK.names, BOOK.texts, {"har": (5,), "mnist": (0, 1)})
    with pytest.raises(ClaimError, match="data with other seeds each; expected seeds in the row"):
        other.further("both", lambda runs: runs("ours") > runs("other", dataset="har"))


def test_what_is_not_compared_says_why():
    follows = BOOK.claim("V", "it is less", by_construction="less is asked for", constructed_in=["printed"])
    assert follows.follows_in("printed") and not follows.follows_in("tuned")
    cannot = BOOK.claim("V", "it converges", not_comparable="a limit", not_comparable_in=["tuned"])
    assert (cannot.not_comparable, cannot.conditions, cannot.not_comparable_in) == ("a limit", (), {"tuned"})
    with pytest.raises(ClaimError, match="claim 'w': nothing is compared; expected compare, by_con"):
        BOOK.claim("V", "w")


@pytest.mark.parametrize("text", ["{2}", "{0.colour}"])
def test_a_text_of_what_is_not_there_is_refused(text):
    with pytest.raises((IndexError, AttributeError)):
        BOOK.further("w", lambda runs: runs("ours") > runs("other"), text=text)


def test_a_result_that_cannot_be_names_its_claim():
    with pytest.raises(ClaimError, match="claim 'w': 'outs' is no algo; expected one of ours, other, best"):
        BOOK.further("w", lambda runs: runs("outs") > 1)


OURS = Cell("mnist", "0.1", "ours", 5, "test_accuracy")
OTHER = OURS._replace(algo="other")
LEAD = Condition(((1, OURS), (-1, OTHER)), "ours {0}, other {1}", above=0)
BETWEEN = Condition(((1, OURS),), "ours {0}", above=0.7, below=0.8)


def ask(values, *conditions):
    return ask_printed_tables(Claim("V", "we lead", "we lead", conditions), values.get)


@pytest.mark.parametrize(
    ("values", "conditions", "expected"),
    [
        ({OURS: 0.75, OTHER: 0.6}, [LEAD], (AGREE, "ours 75.00 %, other 60.00 %")),
        ({OURS: 0.75, OTHER: 0.9}, [LEAD], (CONTRADICT, "ours 75.00 %, other 90.00 %")),
        ({OURS: 0.75, OTHER: 0.75}, [LEAD], (CONTRADICT, "ours 75.00 %, other 75.00 %")),  # a lead is strict
        # Missing numbers leave a claim open, unless one at hand fails.
        ({}, [LEAD, BETWEEN], (NOT_PRINTED, "")),
        ({OURS: 0.75}, [LEAD, BETWEEN], (NOT_PRINTED, "1 of 2 comparisons have their numbers")),
        ({OURS: 0.5}, [LEAD, BETWEEN], (CONTRADICT, "ours 50.00 %")),
        # The numbers name the failing comparisons, or the closest one.
        ({OURS: 0.75, OTHER: 0.6}, [LEAD, BETWEEN], (AGREE, "ours 75.00 %, other 60.00 %; ours 75.00 %")),
        (
            {OURS: 0.75, OTHER: 0.9},
            [BETWEEN, LEAD],
            (CONTRADICT, "1 of 2 comparisons fail: ours 75.00 %, other 90.00 %"),
        ),
        (
            {OURS: 0.79, OTHER: 0.1},
            [*[LEAD] * 4, BETWEEN],
            (AGREE, "all 5 comparisons hold, the closest: ours 79.00 %"),
        ),
    ],
)
def test_what_the_printed_numbers_say(values, conditions, expected):
    assert ask(values, *conditions) == expected


def test_of_many_failing_comparisons_the_first_are_named():
    assert ask({OURS: 0.1, OTHER: 0.2}, *[LEAD] * 6).numbers.endswith("; and 2 more")


@pytest.mark.parametrize(
    ("fields", "follows", "is_comparable"),
    [
        ({"by_construction": "why"}, [True, True], [True, True]),
        ({"by_construction": "why", "constructed_in": frozenset({"cpu"})}, [True, False], [True, True]),
        ({"constructed_in": frozenset({"cpu"})}, [False, False], [True, True]),
        ({"not_comparable": "why"}, [False, False], [False, False]),
        ({"not_comparable": "why", "not_comparable_in": frozenset({"cpu"})}, [False, False], [False, True]),
        ({"not_comparable_in": frozenset({"cpu"})}, [False, False], [True, True]),
    ],
)
def test_a_claim_follows_or_cannot_be_decided_in_the_presets_that_it_names(fields, follows, is_comparable):
    claim = Claim("3", "few", "few", (LEAD,), **fields)
    assert [claim.follows_in(preset) for preset in ("cpu", "paper")] == follows
    assert [claim.is_comparable_in(preset) for preset in ("cpu", "paper")] == is_comparable


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
