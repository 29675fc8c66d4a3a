"""Groups are made by what somebody has varied, and called by it."""

import pathlib

import numpy as np
import pytest

from launch.pages.comparison.compared_run import ComparedRun
from launch.pages.comparison.groups import (
    choose_grouping,
    find_default_flags,
    find_differing_flags,
    find_mixed_flags,
    group_runs,
)
from launch.settings.run_config import build_run_config, find_algorithm, flag_values


def make_run(seed=0, **flags):
    """A run as its flags make it, with a column of results."""
    completed = flag_values(build_run_config({"seed": seed, **flags}))
    columns = {"round": np.array([1.0]), "test_accuracy": np.array([0.5])}
    return ComparedRun("run", pathlib.Path("run"), completed, find_algorithm(flags["algo"]).title, columns, {})


@pytest.mark.parametrize(
    ("asked", "grouping", "labels", "unset"),
    [
        # FedCD comes with 45 rounds and a partition of its own; what a data set brings along counts as unset, too.
        ([{"algo": "fedavg"}, {"algo": "fedcd"}], ["algo"], ["FedAvg", "FedCD"], {"partition", "rounds"}),
        (
            [{"algo": "fedavg", "rounds": 5}, {"algo": "fedavg"}, {"algo": "fedcd"}],
            ["algo", "rounds"],
            ["FedAvg, rounds 5", "FedAvg, rounds 20", "FedCD, rounds 45"],
            {"partition"},
        ),
        (
            [{"algo": "fedavg", "dataset": dataset} for dataset in ("digits", "building")],
            ["dataset"],
            ["digits", "building"],
            {"partition"},
        ),
    ],
)
def test_flags_that_nobody_has_set_are_not_in_the_names(asked, grouping, labels, unset):
    runs = [make_run(seed, **flags) for flags in asked for seed in (0, 1)]
    assert choose_grouping(runs) == grouping and unset <= set(find_default_flags(runs))
    assert [group.label for group in group_runs(runs, grouping)] == labels


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["proximal_weight"], ["proximal weight 0", "proximal weight 0.01"]),
        (["algo", "proximal_weight"], ["FedAvg, proximal weight 0", "FedAvg, proximal weight 0.01"]),
        (["fairness", "dataset"], ["fairness false, digits"]),
        ([], ["all runs"]),
    ],
)
def test_numbers_stand_behind_their_flag(flags, expected):
    runs = [make_run(algo="fedavg"), make_run(algo="fedavg", proximal_weight=0.01)]
    assert [group.label for group in group_runs(runs, flags)] == expected


def test_flags_that_vary_inside_groups_are_named():
    runs = [make_run(0, algo="fedavg"), make_run(1, algo="fedavg", rounds=3), make_run(algo="fedcd")]
    assert [find_mixed_flags(runs, flags) for flags in (["algo"], ["algo", "rounds"])] == [["rounds"], []]


def test_folders_called_after_their_algorithm_are_no_further_flag():
    runs = [make_run(algo=algo) for algo in ("fedavg", "fedcd")]
    named = [run._replace(flags={**run.flags, "experiment": run.flags["algo"]}) for run in runs]
    assert "experiment" not in find_differing_flags(named)
    further = [*named, named[0]._replace(flags={**named[0].flags, "experiment": "other"})]
    assert "experiment" in find_differing_flags(further)
