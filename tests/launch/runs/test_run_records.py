"""Run folders are read back, and their settings compared with those that are wanted."""

import json
import math

import pytest

from launch.runs.run_records import list_other_settings, read_columns, read_rounds, resolve_experiment
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


def test_a_wrong_experiment_is_named():
    wrong = get_experiment(CELL)
    with pytest.raises(FlagError, match=rf"^fedsikd/{CELL}: --rounds=0: expected"):
        resolve_experiment(wrong, ["--rounds=0"])


def test_config_json_holds_every_flag(tmp_path, write_run):
    stored = json.loads((write_run(tmp_path, CELL, seed=0, rounds=1) / "config.json").read_text())
    assert stored["flags"]["num_clusters"] == 4
