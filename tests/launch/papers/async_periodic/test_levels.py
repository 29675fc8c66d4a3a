"""What devices of different speed count, and which settings differ or are level, by hand."""

import statistics

import pytest

from launch.papers.async_periodic.claims import AT_TIME, CYCLE_MEAN, LAST_MEAN, make_cell
from launch.papers.async_periodic.levels import build_levels
from launch.papers.async_periodic.shares import CYCLE, build_shares, compute_shares


def test_shares_by_hand():
    """Of 12 aggregations with equal weights the fastest have 4 alone, 4 with one group, 3 with two and 1 with three.

    That is 4 + 4/2 + 3/3 + 1/4 = 7.25. With gamma 2 and two groups the fastest have all of one and 1/3 of the next.
    """
    assert compute_shares(1.0) == pytest.approx([87 / 144, 27 / 144, 19 / 144, 11 / 144])
    assert compute_shares(2.0, (1, 2)) == pytest.approx([2 / 3, 1 / 3])
    rows = {row[0]: row[1:] for row in build_shares().table.rows}
    assert rows["1"] == ["60", "19", "13", "8", "7.9"]
    spread = {gamma: float(row[-1]) for gamma, row in rows.items()}
    assert min(spread, key=spread.get) == "2"


def test_the_fastest_keep_a_third_whatever_gamma_is():
    assert compute_shares(1e9)[0] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([2.0, 2.2, 2.1], "higher"),
        ([-2.0, -2.2, -2.1], "lower"),
        ([0.3, 0.31, 0.29], "higher, level"),
        ([0.1, -0.1, 0.0], "level"),
        ([3.0, -3.0, 1.0], "undecided"),
        ([2.0, 2.2], "undecided"),
    ],
)
def test_pairs_are_decided_or_level_or_neither(differences, verdict):
    """In points; random scheduling minus scheduling by frequency, seeds that lie ten points apart."""
    values = {
        make_cell("shards", policy, "fresh", LAST_MEAN): {
            seed: 50.0 + 10 * seed + difference * (policy == "random") for seed, difference in enumerate(differences)
        }
        for policy in ("random", "frequency")
    }
    (row,) = build_levels(values)["levels"].table.rows
    assert row[2] == "random, fresher favoured minus frequency"
    assert (row[4], row[5]) == (str(len(differences)), verdict)
    mean = statistics.fmean(differences)
    assert row[3].startswith(f"{mean:+.2f}")


def test_policies_are_compared_by_their_mean_over_the_weightings_too():
    """Random scheduling leads by 3, -3 and 0.3 points, or 0.1 on average; the claims compare this mean."""
    leads = {"equal": 3.0, "fresh": -3.0, "old": 0.3}
    values = {
        make_cell("shards", policy, kind, LAST_MEAN): {
            seed: 50.0 + 10 * seed + (lead + 0.5 * seed) * (policy == "random")
            for seed in (-1, 0, 1, *([2] if kind == "old" else []))
        }
        for policy in ("random", "frequency")
        for kind, lead in leads.items()
    }
    rows = {row[2]: row[3:] for row in build_levels(values)["levels"].table.rows}
    verdicts = {name: row[2] for name, row in rows.items() if name.endswith("minus frequency")}
    mean = "random, mean over the weightings minus frequency"
    assert [*verdicts.values()] == ["higher", "lower", "undecided", "level"] and [*verdicts][-1] == mean
    difference, seeds, _ = rows[mean]
    assert difference.startswith("+0.10 [") and seeds == "3", "the seeds that all three have"


def test_without_pairs_there_is_no_table_of_them():
    assert build_levels({make_cell("iid", "random", "fresh", LAST_MEAN): {0: 80.0}}) == {}


def test_where_devices_keep_their_speed_both_windows_are_compared():
    """Ten aggregations, which decide the claims, and a whole cycle of 12; older favoured minus equal weights."""
    leads = {LAST_MEAN: 30.0, CYCLE_MEAN: 28.0}
    values = {
        make_cell("persistent", "random", kind, metric): dict.fromkeys(range(3), 20.0 + lead * (kind == "old"))
        for metric, lead in leads.items()
        for kind in ("equal", "old")
    }
    rows = build_levels(values)["levels"].table.rows
    assert [(row[1], row[3][:6]) for row in rows] == [
        ("mean over the last 10 aggregations", "+30.00"),
        ("mean over the last 12 aggregations, a whole cycle", "+28.00"),
    ]
    assert CYCLE == 12


def test_where_devices_keep_their_speed_equal_weights_are_compared_with_fresher_favoured():
    """Over both windows and at equal time: 10, 9 and 15 points."""
    leads = {LAST_MEAN: 10.0, CYCLE_MEAN: 9.0, AT_TIME: 15.0}
    values = {
        make_cell("persistent", "random", kind, metric): dict.fromkeys(range(3), 50.0 + lead * (kind == "equal"))
        for metric, lead in leads.items()
        for kind in ("equal", "fresh")
    }
    rows = build_levels(values)["levels"].table.rows
    assert {row[2] for row in rows} == {"random, equal weights minus fresher favoured"}
    assert [(row[3], row[5]) for row in rows] == [("+10.00", "higher"), ("+9.00", "higher"), ("+15.00", "higher")]
