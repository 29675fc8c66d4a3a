"""Run folders are matched with their experiment by name and settings, and refused with a reason."""

import json
import pathlib

import pytest

from launch.runs.run_records import RunRecord
from launch.settings.experiments import make_experiment, ours
from reproductions.engine.counted_runs import choose_runs, collect_runs, find_experiment_of, read_runs

CELL = "fedsikd_mnist_alpha0.1"


def test_a_run_is_matched_by_its_folder_and_its_settings(tmp_path, write_run):
    """The folder around it bears the experiment's name, or it does itself."""
    run_dir = write_run(tmp_path, CELL, seed=2, rounds=3)
    [record], left_out = read_runs(tmp_path)
    assert (record.path, record.experiment, record.flags["seed"], left_out) == (run_dir, CELL, 2, [])
    assert sorted(record.rounds) == [1, 2, 3]
    run_dir.rename(tmp_path / "moved")
    (tmp_path / CELL).rmdir()
    (tmp_path / "moved").rename(tmp_path / CELL)
    assert read_runs(tmp_path)[0][0].experiment == CELL


@pytest.mark.parametrize("arguments", [["--temperature=1"], ["--smoke"], ["--activation=relu"]])
def test_a_run_with_other_settings_is_refused(tmp_path, write_run, arguments):
    write_run(tmp_path, CELL, seed=0, rounds=1, arguments=arguments)
    records, [reason] = read_runs(tmp_path)
    assert records == [] and "other settings than fedsikd/fedsikd_mnist_alpha0.1 " in reason and "\n" not in reason


@pytest.mark.parametrize("arguments", [["--rounds=5", "--data_dir=elsewhere"], ["--runtime=in_process"]])
def test_rounds_places_and_the_means_of_computing_are_no_other_settings(tmp_path, write_run, arguments):
    write_run(tmp_path, CELL, seed=0, rounds=1, arguments=arguments)
    assert len(read_runs(tmp_path)[0]) == 1


def test_a_run_on_other_data_than_most_is_left_out_and_named(tmp_path, write_run):
    rivals = ["fedavg_mnist_alpha0.1", "fl_hc_mnist_alpha0.1", CELL]
    for experiment, digest in zip(rivals, ("new", "new", "old"), strict=True):
        config = write_run(tmp_path, experiment, seed=0, rounds=1) / "config.json"
        config.write_text(json.dumps({**json.loads(config.read_text()), "data": {"digest": digest}}))
    write_run(tmp_path, CELL, seed=1, rounds=1)  # of an earlier version
    runs, left_out = collect_runs(tmp_path)
    assert sorted((run.experiment, run.flags["seed"]) for run in runs) == [(rivals[0], 0), (CELL, 1), (rivals[1], 0)]
    [reason] = left_out
    assert reason.startswith(f"{tmp_path / CELL / 'seed_0'}: other data than {tmp_path / rivals[0] / 'seed_0'}")


def test_broken_and_foreign_folders_are_named_with_the_reason(tmp_path, write_run):
    (write_run(tmp_path, CELL, seed=0, rounds=1) / "config.json").write_text("{")
    (write_run(tmp_path, CELL, seed=1, rounds=1) / "metrics.csv").write_text("")
    write_run(tmp_path, CELL, seed=2, rounds=1).rename(tmp_path / "my_run")
    _, reasons = read_runs(tmp_path)
    assert len(reasons) == 3
    assert "seed_0" in reasons[0] and "config.json" in reasons[0]
    assert "seed_1" in reasons[1] and "metrics.csv" in reasons[1]
    assert "my_run" in reasons[2] and "not named after an experiment" in reasons[2]


def test_a_run_is_of_the_experiment_after_which_the_folder_of_its_seeds_is_called(tmp_path, write_run, monkeypatch):
    settings = ours("a guess", algo="fedavg", rounds=1)
    mine = {"my_own_tuned": make_experiment("my_own_tuned", "Mine.", settings)}
    monkeypatch.setattr("launch.settings.experiments._list_all", lambda kind, folder: mine)
    write_run(tmp_path / "runs", "my_own_tuned", seed=0, rounds=1)
    [record], _ = read_runs(tmp_path / "runs")
    assert record.experiment == "my_own_tuned"
    assert find_experiment_of(tmp_path / "runs" / "my_own_tuned").name == "my_own_tuned"
    assert find_experiment_of(tmp_path / "runs" / "my_own") is None


def test_a_seed_counts_once_with_its_longest_run(tmp_path, write_run):
    short = write_run(tmp_path / "a", "fedsikd_mnist_alpha0.1", 0, rounds=2)
    long = write_run(tmp_path / "b", "fedsikd_mnist_alpha0.1", 0, rounds=5)
    chosen, left_out = choose_runs(read_runs(tmp_path)[0])
    assert [run.path for run in chosen] == [long]
    assert len(left_out) == 1
    assert left_out[0].startswith(str(short)) and left_out[0].endswith("as many rounds or more")


def test_a_shorter_run_with_other_results_is_told_from_a_repeated_one():
    def run(name, *accuracies):
        rounds = {number: {"test_accuracy": accuracy} for number, accuracy in enumerate(accuracies, 1)}
        return RunRecord(pathlib.Path(name), {"seed": 0}, CELL, rounds)

    chosen, left_out = choose_runs([run("short", 0.5, 0.7), run("long", 0.5, 0.6, 0.8)])
    assert [each.path.name for each in chosen] == ["long"]
    assert left_out[0].startswith("short") and left_out[0].endswith("and other accuracies in those that both have")
