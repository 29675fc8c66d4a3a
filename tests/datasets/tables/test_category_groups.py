"""Which features of a table hold one category together, from the columns to the JSON of a format."""

import dataclasses

import numpy as np
import pytest
from refusals import assert_refused
from small_formats import make_format
from small_tables import open_text

from datasets.example_format import CategoryGroup, read_example_format
from datasets.standardized_clients import standardize_clients

RED = CategoryGroup("colour", (1, 2, 3), ("blue", "green", "red"))
ROWS = 'u,1,red,"a, b",0\nu,2,green,a=b,1\nu,3,blue,"a, b",0\nu,4,red,a=b,1\n'


TEXT = f"user,age,colour,x=y,label\n{ROWS}"
INDEXED = CategoryGroup("colour", (1,), ("blue", "green", "red"), is_index=True)
# Names may hold signs of equality and commas, and of two values each has a feature of its own.
OTHER = CategoryGroup("x=y", (4, 5), ("a, b", "a=b"))
NAMES = tuple(f"k{n:03}" for n in range(300))


@pytest.mark.parametrize(
    ("text", "options", "shape", "groups"),
    [
        (TEXT, {}, (6, 1), (RED, OTHER)),
        (TEXT, {"categories": "index"}, (3, 1), (INDEXED, CategoryGroup("x=y", (2,), ("a, b", "a=b"), is_index=True))),
        ("a,label\n1,0\n2,1\n", {}, (1, 1), ()),
        (
            "k,label\n" + "".join(f"{name},{n % 2}\n" for n, name in enumerate(NAMES * 3)),
            {"categories": "index"},
            (1, 1),
            (CategoryGroup("k", (0,), NAMES, is_index=True),),
        ),
        # Spellings that are joined are one value.
        (
            "c,label\nRed,0\nred,1\nred,0\nblue,1\n",
            {"join_spellings": True},
            (2, 1),
            (CategoryGroup("c", (0, 1), ("blue", "red")),),
        ),
        # So are the channels of windows.
        (TEXT, {"window": 2}, (2, 6), (RED, OTHER)),
        (
            TEXT,
            {"window": 2, "categories": "index", "feature_columns": "colour"},
            (2, 1),
            (INDEXED._replace(places=(0,)),),
        ),
    ],
)
def test_each_column_of_categories_is_a_group(tmp_path, text, options, shape, groups):
    found = open_text(tmp_path, text, **options).format
    assert (found.input_shape, found.groups) == (shape, groups)
    assert open_text(tmp_path, text, **options).format == found  # from the store


def test_json_holds_the_groups_and_that_of_before_has_none():
    own = CategoryGroup("c", (2, 0), ("x", "y"), has_none=True)
    own_format = make_format((4, 1), groups=(own,))
    content = own_format.to_json()
    assert content["groups"] == [
        {"name": "c", "features": [2, 0], "values": ["x", "y"], "is_index": False, "has_none": True}
    ]
    assert read_example_format(content) == own_format
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


def test_what_each_client_scales_is_no_choice_of_0_and_1(tmp_path):
    """With --unscaled=nothing a 1 becomes another number for each client."""
    rows = "".join(f"u{n % 2},{n},{'rg'[n % 3 == 0]},{n % 2},{int(n > 7)}\n" for n in range(12))
    source = open_text(tmp_path, f"user,age,c,label,is_test\n{rows}")
    assert standardize_clients(source, "auto").format.groups == source.format.groups != ()
    scaled = standardize_clients(source, "nothing")
    assert scaled.format.groups == () and not np.isin(scaled.read(0, "train")[0][:, 1:], (0, 1)).all()
    assert dataclasses.replace(source.format, groups=()).categories == scaled.format.categories
