"""Trivial rows come from the runs' data, one for each data, and win against no group."""

import csv
import pathlib

import numpy as np
import pytest

from launch.pages.comparison.compared_run import ComparedRun, read_trivial_results
from launch.pages.comparison.figure import Drawing, draw_comparison, format_csv, format_latex, format_markdown
from launch.pages.comparison.groups import find_differing_data, list_trivial_groups
from launch.pages.comparison.results import describe_metric, list_main_columns, rank_groups
from launch.runs.task_columns import find_task_columns

A_CLIENT, OVERALL = "majority class a client (trivial)", "majority class overall (trivial)"
OWN = "client_test_accuracy"


def make_run(algo, seed, last, a_client=0.75, overall=0.25, **flags):
    """Two rounds; `last` is the result of the second one."""
    columns = {"round": np.array([1.0, 2.0]), OWN: np.array([0.1, last]), "test_accuracy": np.array([0.1, 0.9])}
    trivial = {OWN: {A_CLIENT: a_client, OVERALL: overall}, "test_accuracy": {OVERALL: 0.125}}
    flags = {"algo": algo, "seed": seed, "partition": "dirichlet", "dirichlet_alpha": 0.1, "rounds": 2, **flags}
    return ComparedRun(f"{algo}_{seed}", pathlib.Path(algo), flags, algo, columns, {}, trivial=trivial)


# Two algorithms, two seeds; what is trivial depends on the seed, and is far above both.
RUNS = [
    make_run(algo, seed, last + seed / 10, 0.75 + seed / 10)
    for algo, last in (("a", 0.5), ("b", 0.25))
    for seed in (0, 1)
]


def rank(runs=RUNS, column=OWN, **keywords):
    return rank_groups(runs, describe_metric(runs, column), ["algo"], **keywords)


def test_clients_with_models_of_their_own_are_judged_by_their_own_data():
    for runs, columns in ((RUNS, ["test_accuracy", OWN]), ([RUNS[0]._replace(is_fitted=True)], [OWN, "test_accuracy"])):
        assert (describe_metric(runs, "").column, list_main_columns(runs)) == (columns[0], columns)


CLIENTS = {
    "accuracy_mean": 0.9,
    "majority_accuracy": 0.5,
    "majority_accuracy_worst_tenth": 0.25,
    "overall_majority_accuracy": 0.125,
    "overall_majority_accuracy_worst_tenth": 0,
}
BY_COLUMN = {
    OWN: {A_CLIENT: 0.5, OVERALL: 0.125},
    "client_test_accuracy_worst_tenth": {A_CLIENT: 0.25, OVERALL: 0.0},
    "test_accuracy": {OVERALL: 0.1},
}


@pytest.mark.parametrize(
    ("summary", "found"),
    [
        ({"clients": CLIENTS, "overall_majority_test_accuracy": 0.1}, BY_COLUMN),
        ({}, {}),
        ({"clients": None}, {}),
        ({"clients": {"majority_accuracy": "0.5"}}, {}),
    ],
)
def test_what_a_summary_says_of_majorities_by_column(summary, found):
    assert read_trivial_results(summary, find_task_columns(None)) == found


def test_rows_are_means_over_seeds_that_no_group_is_ranked_with():
    """The mean of 0.75 and 0.85, not of four; it is ahead by the same in both seeds."""
    ranking = rank()
    assert [result.group.label for result in ranking.results] == ["a", "b"] and ranking.baseline == "a"
    shown = [(row.group.label, row.estimate.mean, row.estimate.count) for row in ranking.trivial]
    assert shown == [(A_CLIENT, pytest.approx(0.8), 2), (OVERALL, 0.25, 2)]
    ahead = ranking.trivial[0].difference
    assert (ahead.mean, ahead.low) == (pytest.approx(0.25), None)
    assert [row.group.label for row in rank(at=1).trivial] == [A_CLIENT, OVERALL]
    assert [row.estimate.mean for row in rank(column="test_accuracy").trivial] == [0.125]


def test_each_data_has_rows_of_its_own():
    runs = [make_run("a", 0, 0.5), make_run("a", 0, 0.5, 0.5, dirichlet_alpha=1.0, rounds=5)]
    assert find_differing_data(runs) == ["dirichlet_alpha"]
    found = {group.label: group.runs[0].columns[OWN].tolist() for group in list_trivial_groups(runs, OWN)}
    assert found == {
        f"{A_CLIENT}, dirichlet alpha 0.1": [0.75, 0.75],
        f"{OVERALL}, dirichlet alpha 0.1": [0.25, 0.25],
        f"{A_CLIENT}, dirichlet alpha 1": [0.5, 0.5],
        f"{OVERALL}, dirichlet alpha 1": [0.25, 0.25],
    }


def test_runs_without_them_are_passed_over():
    runs = [*RUNS, make_run("c", 2, 0.9)._replace(trivial={})]
    assert [row.estimate.count for row in rank(runs).trivial] == [2, 2]
    assert rank(runs[-1:]).trivial == [] and list_trivial_groups(runs, "test_loss") == []


def test_in_tables_they_stand_below_a_line_and_none_is_the_best():
    lines = format_latex([rank(column="test_accuracy"), rank(baseline="a")]).splitlines()
    place = lines.index(r"\midrule", lines.index(r"\midrule") + 1)
    assert lines[place + 1].startswith(f"{OVERALL} & 2 & 0.1250 & $-$0.7750 & 0.2500 & $-$0.3000 [")
    assert lines[place + 2].startswith(f"{A_CLIENT} & 2 & -- & --")
    text = format_markdown([rank()])
    assert "**" not in text, "two seeds decide nothing"
    assert "Trivial rows always answer with the most frequent class" in text
    rows = list(csv.DictReader(format_csv([rank()]).splitlines()))
    assert [row["group"] for row in rows] == ["a", "b", A_CLIENT, OVERALL]


def test_in_the_figure_they_are_levels_that_do_not_stretch_it():
    curves = draw_comparison(rank(), Drawing()).axes[0]
    assert [line.get_label() for line in curves.lines if not line.get_label().startswith("_")] == [
        *("a", "b", "majority class a client: 0.8000", "majority class overall: 0.2500")
    ]
    assert curves.get_ylim()[1] < 0.8
