"""Names with control characters are refused in one line, wherever they come in; all others are taken."""

import numpy as np
import pytest
from refusals import assert_refused
from small_formats import format_of

from datasets.arrays import make_array_dataset
from datasets.data_notes import note_labels
from datasets.dataset import DatasetOptions
from datasets.device_table import load_device_profiles
from datasets.example_format import ExampleFormat
from datasets.formats.npz import open_npz
from datasets.names import describe_joined, find_alike, find_joined, fold_spelling, note_alike

CONTROL = ["a\nb", "a\rb", "a\tb", "a\0b", "\x1b[31m", "\x7f", "\x9b", "a\u2028b", "\u2029", "\udcfc"]
ODD = [
    "",
    " ",
    "../../outside",
    "/",
    "a,b",
    "<script>",
    "=cmd()",
    "\N{GRINNING FACE}",
    "r\u200ftl",
    "x" * 300,
    "W",
    "w",
]


def make(name="toy", classes=("a", "b"), clients=None):
    x, y = np.zeros((4, 3), np.float32), np.array([0, 1, 0, 1])
    return make_array_dataset(name, (x, y), (x, y), format_of(x, classes), clients)


@pytest.mark.parametrize("bad", CONTROL)
def test_a_name_with_a_control_character_is_refused_in_one_line(bad):
    clients = np.array(["p", "q", bad, "p"])
    for fields in ({"name": bad}, {"classes": ("a", bad)}, {"clients": clients}):
        caught = assert_refused("holds the control character", make, **fields)
        assert len(caught.splitlines()) == 1 and caught.isprintable()
    assert_refused(
        "holds the control character", ExampleFormat, input_shape=(3,), input_dtype="float32", class_names=("a", bad)
    )


def test_all_other_names_are_taken_as_they_are():
    x, y = np.zeros((len(ODD), 3), np.float32), np.arange(len(ODD)) % 2
    arrays = make_array_dataset("toy", (x, y), (x, y), format_of(x, ("<b>", "=1+1")), np.array(ODD))
    assert set(arrays.client_names) == set(ODD) and arrays.format.class_names == ("<b>", "=1+1")


def test_names_of_a_users_file_are_checked(tmp_path):
    y = np.array(["first\nline", "second"] * 10)
    np.savez(tmp_path / "d.npz", x=np.zeros((20, 3), np.float32), y=y)
    assert_refused(
        r"the class 'first\\nline' holds the control character \\n", open_npz, str(tmp_path / "d.npz"), DatasetOptions()
    )


def test_names_of_devices_are_checked(tmp_path):
    path = tmp_path / "devices.csv"
    path.write_text("device,examples_per_s,downlink_bytes_per_s,uplink_bytes_per_s\nold\x1b[2J,1,1,1\n")
    assert_refused(
        r"line 2: the device 'old\\x1b\[2J' holds the control character", load_device_profiles, str(path), 2, 0
    )


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
    assert find_joined(["b", "B", "a"], {"b": 2, "B": 2}) == {"b": "B"}
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
