"""Which features of a table hold one category together, from the columns to the JSON of a format."""

import dataclasses

import numpy as np
import pytest
from refusals import assert_refused
from small_formats import make_format

from datasets.dataset import DatasetOptions
from datasets.example_format import CategoryGroup, read_example_format
from datasets.formats.csv import FORMAT as CSV
from datasets.standardized_clients import standardize_clients

RED = CategoryGroup("colour", (1, 2, 3), ("blue", "green", "red"))
ROWS = 'u,1,red,"a, b",0\nu,2,green,a=b,1\nu,3,blue,"a, b",0\nu,4,red,a=b,1\n'


@pytest.fixture
def open_table(tmp_path, monkeypatch):
    """(text, **options) -> the format of such a CSV file."""

    def read(text, **options):
        path = tmp_path / "mine.csv"
        path.write_text(text)
        return CSV.open(str(path), DatasetOptions(**options)).format

    return read


def test_each_column_of_categories_is_a_group(open_table):
    """Names may hold signs of equality and commas, and of two values each has a feature of its own."""
    text = f"user,age,colour,x=y,label\n{ROWS}"
    form = open_table(text)
    assert form.groups == (RED, CategoryGroup("x=y", (4, 5), ("a, b", "a=b")))
    assert form.categories == (1, 2, 3, 4, 5) and form.feature_names[4:] == ("x=y=a, b", "x=y=a=b")
    assert open_table(text) == form  # from the store
    indexed = open_table(text, categories="index")
    assert indexed.groups[0] == CategoryGroup("colour", (1,), ("blue", "green", "red"), is_index=True)
    assert indexed.groups[1].places == (2,) and not open_table("a,label\n1,0\n2,1\n").groups


def test_hundreds_of_values_are_one_group(open_table):
    text = "k,label\n" + "".join(f"k{n % 300:03},{n % 2}\n" for n in range(900))
    [group] = open_table(text, categories="index").groups
    assert group.places == (0,) and group.values[299] == "k299" and len(group.values) == 300


def test_spellings_that_are_joined_are_one_value(open_table):
    [group] = open_table("c,label\nRed,0\nred,1\nred,0\nblue,1\n", join_spellings=True).groups
    assert group == CategoryGroup("c", (0, 1), ("blue", "red"))


def test_channels_of_windows_are_groups(open_table):
    text = f"user,age,colour,x=y,label\n{ROWS}"
    form = open_table(text, window=2)
    assert form.input_shape == (2, 6) and form.groups[0] == RED
    alone = open_table(text, window=2, categories="index", feature_columns="colour")
    assert alone.input_shape == (2, 1) and alone.groups[0].places == (0,) and alone.groups[0].is_index


def test_json_holds_the_groups_and_that_of_before_has_none():
    own = CategoryGroup("c", (2, 0), ("x", "y"), has_none=True)
    form = make_format((4, 1), groups=(own,))
    content = form.to_json()
    assert content["groups"] == [
        {"name": "c", "features": [2, 0], "values": ["x", "y"], "is_index": False, "has_none": True}
    ]
    assert read_example_format(content) == form
    del content["groups"]
    assert read_example_format(content).groups == ()


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([CategoryGroup("c", (3, 4), ("x", "y"))], "c has place 4, which is none of 4 features"),
        ([CategoryGroup("c", (0, 1), ("x", "y", "z"))], "2 features for 3 values, expected one for each value"),
        ([CategoryGroup("c", (0, 1), ("x", "y"), is_index=True)], "expected one of an index"),
        ([CategoryGroup("c", (), ())], "0 features for 0 values"),
        ([CategoryGroup("c", (0,), ("x",)), CategoryGroup("d", (0,), ("x",))], "d has a feature that is taken already"),
        ([CategoryGroup("c", (0, 0), ("x", "y"))], "taken already"),
        ([CategoryGroup("c", (0,), ("x\n",))], "control character"),
    ],
)
def test_groups_that_are_none_of_the_features_are_refused(groups, message):
    assert_refused(message, make_format, (4, 1), groups=tuple(groups))


def test_what_each_client_scales_is_no_choice_of_0_and_1(tmp_path, monkeypatch):
    """With --unscaled=nothing a 1 becomes another number for each client."""
    rows = "".join(f"u{n % 2},{n},{'rg'[n % 3 == 0]},{n % 2},{int(n > 7)}\n" for n in range(12))
    (tmp_path / "mine.csv").write_text(f"user,age,c,label,is_test\n{rows}")
    source = CSV.open(str(tmp_path / "mine.csv"), DatasetOptions())
    assert standardize_clients(source, "auto").format.groups == source.format.groups != ()
    scaled = standardize_clients(source, "nothing")
    assert scaled.format.groups == () and not np.isin(scaled.read(0, "train")[0][:, 1:], (0, 1)).all()
    assert dataclasses.replace(source.format, groups=()).categories == scaled.format.categories
