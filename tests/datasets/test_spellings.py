"""Names that are one thing and are spelled in several ways."""

import numpy as np
import pytest

from datasets.data_notes import note_labels
from datasets.spellings import describe_joined, find_alike, find_kept, fold_spelling, note_alike


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *[(">50K", ">50K."), ("cat", "CAT"), (" cat", "cat "), ("'cat'", "cat"), ("straße", "STRASSE")],
        *[("1", "1.0"), ("1", "1."), ("007", "7"), ("0", "00"), ("1.50", "1.5"), ("-0", "0"), ("+1", "1")],
        *[
            ("caf\u00e9", "cafe\u0301"),
            ("New\u00a0York", "New York"),
            ("\uff43at", "cat"),
            ("\uff17", "7"),
            ("ca\u200bt", "cat"),
        ],
        *[("client_1", "client 1"), ("client-1", "client 1"), ("client1", "client_01"), ("new_york", "New York")],
        *[("1_1", "1-1"), (">= 50", ">=50"), ("non-fat", "nonfat"), ("site--1", "site-1"), ("a  b", "a b")],
    ],
)
def test_alike(one, other):
    assert fold_spelling(one) == fold_spelling(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *[("A-", "A"), ("A+", "A"), ("C", "C++"), ("-1", "1"), ("1-1", "11"), ("1.05", "1.5"), ("v1.05", "v1.5")],
        *[("<=50K", ">50K"), ("12345678901234567890", "12345678901234567891"), ("a1-1", "a11"), ("10", "1")],
        *[("client_10", "client_1"), ("100", "1e2"), ("cat", "cats"), (".", "-"), ("café", "cafe")],
    ],
)
def test_different(one, other):
    assert fold_spelling(one) != fold_spelling(other)


def test_the_most_frequent_is_kept_and_of_several_the_first():
    assert find_alike(["cat", "Cat", "CAT", "dog"], {"cat": 1, "Cat": 5, "CAT": 1}) == [("Cat", "CAT", "cat")]
    assert find_kept(["b", "B", "a"], {"b": 2, "B": 2}) == {"b": "B"}
    assert find_alike(["7", "007", "8"], {"007": 1, "7": 1}) == [("007", "7")]


def test_yes_and_no_are_alike_where_nothing_else_is():
    assert find_alike(["Y", "N", "yes", "no"], {"Y": 3, "yes": 1}) == [("N", "no"), ("Y", "yes")]
    assert find_alike(["T", "F", "1", "0"]) == [("0", "F"), ("1", "T")]
    assert not find_alike(["T", "F", "Y", "N", "A"]) and not find_alike(["Y", "N"]) and not find_alike(["T", "Y"])


def test_an_alphabet_has_small_and_large_letters():
    letters = [chr(code) for code in (*range(65, 91), *range(97, 123))]
    assert not find_alike(letters)
    assert find_alike(["m", "f", "M", "F"]) == [("F", "f"), ("M", "m")]


def test_a_line_names_them_with_their_rows_and_the_flag():
    (said,) = note_alike("classes", ["cat", "Cat", "dog"], {"cat": 30, "Cat": 2, "dog": 9})
    assert said.startswith("classes that are spelled in several ways, with their examples: 'cat' (30) = 'Cat' (2); ")
    assert "3 classes would be 2" in said and said.endswith("--join_spellings")
    assert not note_alike("classes", ["cat", "dog"], {})
    assert describe_joined("kind", {"Cat": "cat"}) == "spellings of kind joined: 'Cat' as 'cat'"


def test_notes_on_classes_count_both_parts():
    names = ("<=50K", "<=50K.", ">50K", ">50K.")
    unseen, alike = note_labels(names, np.array([300, 0, 100, 0]), np.array([0, 110, 0, 40]))
    assert unseen.startswith("150 of 150 test examples are of classes that no train example has (<=50K., >50K.)")
    assert "'<=50K' (300) = '<=50K.' (110), '>50K' (100) = '>50K.' (40); 4 classes would be 2" in alike
