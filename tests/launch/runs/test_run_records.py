"""Run folders are read back, matched with their flagfile by settings, and refused with a reason."""

import json
import math

import pytest

from launch.runs.run_records import (
    find_experiment_of,
    list_other_settings,
    read_columns,
    read_rounds,
    read_runs,
    resolve_experiment,
)
from launch.settings.experiments import get_experiment
from launch.settings.flags import FlagError
from launch.settings.run_config import flag_values

CELL = "fedsikd_mnist_alpha0.1"


def test_columns_of_text_are_left_out_and_empty_cells_are_nan(tmp_path):
    path = tmp_path / "clients.csv"
    path.write_text("client,accuracy,cluster\nclient_0,0.5,1\nclient_1,,2\n")
    columns = read_columns(path)
    assert list(columns) == ["accuracy", "cluster"]
    assert columns["cluster"].tolist() == [1, 2]
    assert columns["accuracy"][0] == 0.5
    assert math.isnan(columns["accuracy"][1])


def test_rounds_hold_only_what_was_measured(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("round,train_loss,test_accuracy\n1,0.9,\n2,0.8,0.25\n")
    assert read_rounds(path) == {
        1: {"round": 1, "train_loss": 0.9},
        2: {"round": 2, "train_loss": 0.8, "test_accuracy": 0.25},
    }


def test_a_run_is_matched_by_its_folder_and_its_settings(tmp_path, write_run):
    run_dir = write_run(tmp_path, CELL, seed=2, rounds=3)
    [(record, reason)] = read_runs(tmp_path)
    assert reason == ""
    assert (record.path, record.experiment) == (run_dir, CELL)
    assert record.flags["seed"] == 2
    assert sorted(record.rounds) == [1, 2, 3]


def test_the_run_folder_itself_may_bear_the_name(tmp_path, write_run):
    write_run(tmp_path, CELL, seed=0, rounds=1).rename(tmp_path / "moved")
    (tmp_path / CELL).rmdir()
    (tmp_path / "moved").rename(tmp_path / CELL)
    [(record, _)] = read_runs(tmp_path)
    assert record.experiment == CELL


@pytest.mark.parametrize("arguments", [["--temperature=1"], ["--smoke"], ["--activation=relu"]])
def test_a_run_with_other_settings_is_refused(tmp_path, write_run, arguments):
    write_run(tmp_path, CELL, seed=0, rounds=1, arguments=arguments)
    [(record, reason)] = read_runs(tmp_path)
    assert record is None
    assert "other settings than fedsikd/fedsikd_mnist_alpha0.1 " in reason
    assert "\n" not in reason


def test_rounds_and_places_are_no_other_settings(tmp_path, write_run):
    write_run(tmp_path, CELL, seed=0, rounds=1, arguments=["--rounds=5", "--data_dir=elsewhere"])
    [(record, _)] = read_runs(tmp_path)
    assert record is not None


def test_the_means_of_computing_are_no_other_settings(tmp_path, write_run):
    write_run(tmp_path, CELL, seed=0, rounds=1, arguments=["--runtime=in_process"])
    [(record, _)] = read_runs(tmp_path)
    assert record is not None


def test_settings_that_a_version_lacks_are_passed_over():
    wanted = resolve_experiment(get_experiment(CELL))
    stored = flag_values(wanted)
    assert list_other_settings({**stored, "gone_flag": 1}, wanted) == []
    del stored["fairness"], stored["patience"]  # they are as by default
    assert list_other_settings({**stored, "batch_size": 32}, wanted) == ["--batch_size=32, not 64"]


def test_a_run_from_before_a_setting_counts_for_what_it_did():
    """Its config.json lacks the setting, which may be another one in the experiment of today."""
    name, then, today = "server_learning_rate", 1.0, 0.5
    experiment = get_experiment("fedavg_mnist_alpha0.1")
    as_then, as_today = (resolve_experiment(experiment, [f"--{name}={value}"]) for value in (then, today))
    stored = flag_values(as_then)
    del stored[name]
    assert list_other_settings(stored, as_then) == []
    assert list_other_settings(stored, as_today) == [f"--{name}={then}, not {today}"]


def test_flags_that_do_nothing_in_either_run_are_no_other_settings():
    """Where steps are given, epochs do nothing, so that a new default of them is no other run."""
    idle, used = (
        resolve_experiment(get_experiment("defaults_fedavg_building_medium"), [f"--steps={steps}"]) for steps in (6, 0)
    )
    stored = flag_values(idle) | {"epochs": 7}
    assert list_other_settings(stored, idle) == []
    epochs = flag_values(used)["epochs"]
    assert list_other_settings(flag_values(used) | {"epochs": 7}, used) == [f"--epochs=7, not {epochs}"]
    # Idle in one alone: the steps differ, and so does what the other run did instead.
    assert len(list_other_settings(stored, used)) == 2


def test_broken_and_foreign_folders_are_named_with_the_reason(tmp_path, write_run):
    (write_run(tmp_path, CELL, seed=0, rounds=1) / "config.json").write_text("{")
    (write_run(tmp_path, CELL, seed=1, rounds=1) / "metrics.csv").write_text("")
    write_run(tmp_path, CELL, seed=2, rounds=1).rename(tmp_path / "my_run")
    reasons = [reason for record, reason in read_runs(tmp_path) if record is None]
    assert len(reasons) == 3
    assert "seed_0" in reasons[0] and "config.json" in reasons[0]
    assert "seed_1" in reasons[1] and "metrics.csv" in reasons[1]
    assert "my_run" in reasons[2] and "not named after an experiment" in reasons[2]


def test_a_run_is_of_the_experiment_after_which_the_folder_of_its_seeds_is_called(tmp_path, write_run, monkeypatch):
    papers = tmp_path / "papers"
    monkeypatch.setattr("launch.settings.experiments.PAPERS", papers)
    (papers / "mine").mkdir(parents=True)
    rules = '[[settings]]\nours = "a guess"\nalgo = "fedavg"\nrounds = 1\n'
    (papers / "mine" / "experiments.toml").write_text(f'[experiments]\nmy_own_tuned = "Mine."\n{rules}')
    write_run(tmp_path / "runs", "my_own_tuned", seed=0, rounds=1)
    [(record, _)] = read_runs(tmp_path / "runs")
    assert record.experiment == "my_own_tuned"
    assert find_experiment_of(tmp_path / "runs" / "my_own_tuned").full_name == "mine/my_own_tuned"
    assert find_experiment_of(tmp_path / "runs" / "my_own") is None


def test_a_wrong_experiment_is_named():
    wrong = get_experiment(CELL)
    with pytest.raises(FlagError, match=rf"^fedsikd/{CELL}: --rounds=0: expected"):
        resolve_experiment(wrong, ["--rounds=0"])


def test_config_json_holds_every_flag(tmp_path, write_run):
    stored = json.loads((write_run(tmp_path, CELL, seed=0, rounds=1) / "config.json").read_text())
    assert stored["flags"]["num_clusters"] == 4
