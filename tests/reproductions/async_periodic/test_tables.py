"""The tables of asynchronous FL: results, which settings differ or are level, and what devices count, by hand."""

import statistics

import pandas as pd
import pytest

from reproductions.async_periodic.tables import (
    CYCLE,
    MEASURED,
    compute_shares,
    tabulate_levels,
    tabulate_results,
    tabulate_shares,
)


def make_frame(values):
    """The frame of {(data, policy, kind, measure): {seed: value}}; what is not given was not measured."""
    rows = {}
    for (*place, metric), by_seed in values.items():
        for seed, value in by_seed.items():
            rows.setdefault((*place, seed), dict(zip(("dataset", "setting", "algo"), place, strict=True)))
            rows[(*place, seed)] |= {"seed": seed, metric: value}
    return pd.DataFrame(list(rows.values()), columns=["experiment", "seed", *MEASURED])


def test_the_table_has_a_row_a_combination():
    numbers = {
        "final": {0: 80.0, 1: 84.0},
        "at_equal_time": {0: 18.75},
        "time": {0: 39.6, 1: 39.6},
        "updates": {0: 1200.0},
    }
    table = tabulate_results(make_frame({("iid", "random", "equal", metric): numbers[metric] for metric in numbers}))
    rows = {tuple(row[:3]): dict(zip(table.columns[3:], row[3:], strict=True)) for row in table.rows}
    equal = rows["IID", "random", "equal weights"]
    assert (equal["seeds"], equal["final"], equal["at equal time"]) == ("2", "82.00 ± 2.83", "18.75")
    assert (equal["at equal uploads"], equal["T_max"], equal["updates"]) == ("not run", "39.6", "1200")
    assert rows["IID", "none", "FedAsync"] == dict.fromkeys(table.columns[4:10], "not run") | {
        "seeds": "", "T_max": "", "updates": ""
    }  # fmt: skip
    assert len(rows) == 2 * (3 * 5 + 2) + 4 + 5


def test_shares_by_hand():
    """Of 12 aggregations with equal weights the fastest have 4 alone, 4 with one group, 3 with two and 1 with three.

    That is 4 + 4/2 + 3/3 + 1/4 = 7.25. With gamma 2 and two groups the fastest have all of one and 1/3 of the next.
    """
    assert compute_shares(1.0) == pytest.approx([87 / 144, 27 / 144, 19 / 144, 11 / 144])
    assert compute_shares(2.0, (1, 2)) == pytest.approx([2 / 3, 1 / 3])
    rows = {row[0]: row[1:] for row in tabulate_shares().rows}
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
        ("shards", policy, "fresh", "mean_of_last"): {
            seed: 50.0 + 10 * seed + difference * (policy == "random") for seed, difference in enumerate(differences)
        }
        for policy in ("random", "frequency")
    }
    (row,) = tabulate_levels(make_frame(values)).rows
    assert row[2] == "random, fresher favoured minus frequency"
    assert (row[4], row[5]) == (str(len(differences)), verdict)
    assert row[3].startswith(f"{statistics.fmean(differences):+.2f}")


def test_policies_are_compared_by_their_mean_over_the_weightings_too():
    """Random scheduling leads by 3, -3 and 0.3 points, or 0.1 on average; the claims compare this mean."""
    leads = {"equal": 3.0, "fresh": -3.0, "old": 0.3}
    values = {
        ("shards", policy, kind, "mean_of_last"): {
            seed: 50.0 + 10 * seed + (lead + 0.5 * seed) * (policy == "random")
            for seed in (-1, 0, 1, *([2] if kind == "old" else []))
        }
        for policy in ("random", "frequency")
        for kind, lead in leads.items()
    }
    rows = {row[2]: row[3:] for row in tabulate_levels(make_frame(values)).rows}
    verdicts = {name: row[2] for name, row in rows.items() if name.endswith("minus frequency")}
    mean = "random, mean over the weightings minus frequency"
    assert [*verdicts.values()] == ["higher", "lower", "undecided", "level"] and [*verdicts][-1] == mean
    difference, seeds, _ = rows[mean]
    assert difference.startswith("+0.10 [") and seeds == "3", "the seeds that all three have"


def test_where_devices_keep_their_speed_both_windows_are_compared():
    """Ten aggregations, which decide the claims, and a cycle of 12; equal weights with fresher at equal time, too."""
    levels = {"old": (30.0, 28.0, 0.0), "equal": (10.0, 9.0, 15.0), "fresh": (0.0, 0.0, 0.0)}
    values = {
        ("persistent", "random", kind, metric): dict.fromkeys(range(3), 50.0 + level)
        for kind, each in levels.items()
        for metric, level in zip(("mean_of_last", "mean_of_cycle", "at_equal_time"), each, strict=True)
    }
    rows = {(row[1], row[2]): row[3] for row in tabulate_levels(make_frame(values)).rows}
    ten, cycle = "mean over the last 10 aggregations", "mean over the last 12 aggregations, a whole cycle"
    equal, older = "random, equal weights minus fresher favoured", "random, older favoured, gamma 2 minus equal weights"
    assert [rows[each, equal] for each in (ten, cycle, "at 10 T_max")] == ["+10.00", "+9.00", "+15.00"]
    assert [rows[each, older] for each in (ten, cycle)] == ["+20.00", "+19.00"]
    assert len(rows) == 7 and CYCLE == 12


@pytest.mark.parametrize("values", [{}, {("iid", "random", "fresh", "at_equal_uploads"): {0: 80.0}}])
def test_without_pairs_there_is_no_row_of_them(values):
    frame = make_frame(values)
    assert tabulate_levels(frame).rows == []
    assert len([row for row in tabulate_results(frame).rows if row[3] == ""]) == 43 - len(values)
