"""Seeds with ranges."""

import pytest

from launch.settings.seeds import read_seeds


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("0", "0"), ("0-4", "0 1 2 3 4"), ("7,0-2, 9", "7 0 1 2 9"), ("3-3", "3"), ("1,0-2,02", "1 0 2")],
)
def test_ranges_are_spelled_out_and_each_seed_comes_once(text, seeds):
    assert read_seeds(text.split(","), "seeds") == tuple(seeds.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4-0", "--seeds=4-0: 4-0 ends before it begins; did you mean 0-4?"),
        ("0-10000", "0-10000 are 10,001 seeds; expected at most 10,000"),
        ("a", "--seeds=a: expected whole numbers with commas between them, or ranges, as 0,1,2 or 0-4"),
        ("0,", "--seeds=0,: expected whole numbers"),
        ("0..4", "--seeds=0..4: expected whole numbers"),
        ("\u0663", "expected whole numbers"),
        ("9" * 5000, "expected whole numbers"),
        ("-1", "--seeds=-1: expected whole numbers"),
    ],
)
def test_anything_else_is_refused(refuse, text, message):
    assert message in refuse(text.split(","), lambda texts: read_seeds(texts, "seeds"))


def test_none_are_taken_only_where_they_may_be_left_out(refuse):
    assert read_seeds([], "confirm_seeds", may_be_none=True) == ()
    assert "--seeds is empty: expected whole numbers" in refuse([], lambda texts: read_seeds(texts, "seeds"))
