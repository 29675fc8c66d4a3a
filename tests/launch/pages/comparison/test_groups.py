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


def test_flags_that_an_algorithm_brings_along_are_not_in_the_names():
    """FedCD comes with 45 rounds and a partition of its own."""
    runs = [make_run(seed, algo=algo) for algo in ("fedavg", "fedcd") for seed in (0, 1)]
    assert set(find_default_flags(runs)) == {"partition", "rounds"}
    assert choose_grouping(runs) == ["algo"]
    assert [group.label for group in group_runs(runs, ["algo"])] == ["FedAvg", "FedCD"]


def test_a_flag_that_somebody_has_set_is_in_the_names():
    runs = [make_run(algo="fedavg", rounds=5), make_run(algo="fedavg"), make_run(algo="fedcd")]
    assert choose_grouping(runs) == ["algo", "rounds"]
    labels = [group.label for group in group_runs(runs, ["algo", "rounds"])]
    assert labels == ["FedAvg, rounds 5", "FedAvg, rounds 20", "FedCD, rounds 45"]


def test_what_a_data_set_brings_along_counts_as_unset():
    runs = [make_run(algo="fedavg", dataset=dataset) for dataset in ("digits", "building")]
    assert "partition" in find_default_flags(runs) and choose_grouping(runs) == ["dataset"]


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
    assert find_mixed_flags(runs, ["algo"]) == ["rounds"]
    assert find_mixed_flags(runs, ["algo", "rounds"]) == []


def test_folders_called_after_their_algorithm_are_no_further_flag():
    runs = [make_run(algo=algo) for algo in ("fedavg", "fedcd")]
    named = [run._replace(flags={**run.flags, "experiment": run.flags["algo"]}) for run in runs]
    assert "experiment" not in find_differing_flags(named)
    further = [*named, named[0]._replace(flags={**named[0].flags, "experiment": "other"})]
    assert "experiment" in find_differing_flags(further)
