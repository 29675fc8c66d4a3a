"""The workload `large_cohort`: the federation's file, what is measured of a run, and its table; runs are stand-ins."""

import os
import pathlib

import numpy as np
import pytest

from datasets.npz import load_npz_arrays
from launch import benchmark
from launch.benchmarks import large_cohort
from launch.benchmarks.large_cohort import (
    LARGE_COHORT,
    FederationWorkload,
    compute_costs,
    compute_federation_results,
    format_federation_table,
    time_federations,
    write_federation,
)
from launch.benchmarks.peer_process import PeerError
from launch.runs.tables import write_table
from launch.settings.flags import parse_config


def test_the_clients_hold_real_digits_as_a_users_file(tmp_path):
    write_federation(30, tmp_path / "clients.npz")
    arrays = load_npz_arrays(str(tmp_path / "clients.npz"))
    assert np.bincount(arrays.train_clients).tolist() == [12] * 30
    assert arrays.train_x.shape == (360, 8, 8, 1) and arrays.train_x.max() == 240
    assert len(arrays.test_y) == 360 - 1 and len(arrays.class_names) == 10  # a fifth of 1,797 images, rounded by class


def make_run(run_dir, round_s, began_s=1000.0):
    """A run that began its first round 5 s after it was started, and ended its last one 9 s after."""
    run_dir.mkdir(parents=True)
    columns = ["round", "round_s", "evaluation_s", "host_memory_bytes", "worker_memory_bytes"]
    rows = [[str(i), str(seconds), str(seconds / 10), "5e8", f"{i}e8"] for i, seconds in enumerate(round_s, 1)]
    write_table(run_dir / "timing.csv", columns, rows)
    for name, at_s in (("config.json", 5), ("metrics.csv", 9)):
        (run_dir / name).touch()
        os.utime(run_dir / name, (began_s + at_s,) * 2)


def test_costs_by_hand(tmp_path):
    make_run(tmp_path / "run", [4.0, 1.0, 3.0])
    costs = compute_costs(tmp_path / "run", began_s=1000.0, wall_s=12.0)
    expected = {"start_s": 5, "round_s": 2, "evaluation_s": 0.2, "end_s": 3, "worker_bytes": 3e8}
    assert costs == pytest.approx(expected)
    make_run(tmp_path / "short", [4.0])
    assert compute_costs(tmp_path / "short", 1000.0, 12.0)["round_s"] == 4


def test_every_size_runs_twice_with_the_shards_of_the_first_run(tmp_path, monkeypatch):
    commands = []

    def run(arguments, tree, log_path):
        flags = dict(argument.removeprefix("--").split("=", 1) for argument in arguments[2:])
        commands.append(flags)
        config = parse_config(arguments[2:])
        make_run(pathlib.Path(config.run_dir), [1.0] * config.rounds, began_s=0.0)
        return {"exit_code": 0, "wall_s": 12.0, "cpu_s": 20.0, "peak_bytes": 7}

    monkeypatch.setattr(large_cohort, "time_process", run)
    monkeypatch.setattr(large_cohort.time, "time", lambda: 0.0)
    workload = FederationWorkload(sizes=(20, 40))
    lines = []
    costs = time_federations(workload, 3, lines.append)
    assert [(flags["rounds"], flags["fedavg_cohort_size"]) for flags in commands] == [("4", "50"), ("1", "50")] * 2
    assert commands[0]["client_dir"] == commands[1]["client_dir"] != commands[2]["client_dir"]
    assert not os.path.exists(commands[0]["npz"]), "nothing is left"
    assert costs[40]["start_again_s"] == 5 and len(lines) == 2
    assert (costs[40]["cpu_s"], costs[40]["peak_bytes"]) == (20, 7)
    results = compute_federation_results(costs)
    assert (results["clients_ratio"], results["round_s_ratio"], set(results["by_clients"])) == (2, 1, {"20", "40"})
    rows = [line.split()[:2] for line in format_federation_table(workload, costs).splitlines()[1:4]]
    assert rows == [["clients", "files"], ["20", "120"], ["40", "240"]]


@pytest.mark.parametrize("answer", [None, {"exit_code": 1}])
def test_a_run_that_fails_is_one_line(answer, monkeypatch, capsys):
    def fail(arguments, tree, log_path):
        pathlib.Path(log_path).write_text("error: no space\n")
        return answer

    monkeypatch.setattr(large_cohort, "time_process", fail)
    monkeypatch.setattr(large_cohort, "write_federation", lambda *arguments: None)
    with pytest.raises(PeerError, match=r"large_cohort: a run failed; .*no space"):
        time_federations(LARGE_COHORT, 1, print)
    assert benchmark.main(["--workloads=large_cohort"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_it_is_a_workload_of_the_command():
    (workload,) = benchmark.parse_options(["--workloads=large_cohort"]).workloads
    assert workload.sizes == (500, 5000, 50000) and "50 of 500, 5,000, 50,000 clients" in workload.describe()
