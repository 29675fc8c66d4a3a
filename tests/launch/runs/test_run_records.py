"""Run folders are read back, and their settings compared with those that are wanted."""

import os

import pytest

from launch.runs.run_records import (
    RunRecordError,
    list_other_settings,
    read_columns,
    read_json,
    read_rounds,
    read_rows,
    resolve_experiment,
)
from launch.settings.experiments import get_experiment
from launch.settings.flags import FlagError
from launch.settings.run_config import flag_values

CELL = "fedsikd_mnist_alpha0.1"


def test_columns_of_text_are_left_out_and_empty_cells_are_nan_and_no_number_of_a_round(tmp_path):
    path = tmp_path / "clients.csv"
    path.write_text("client,accuracy,cluster\nclient_0,0.5,1\nclient_1,,2\n")
    columns = {name: [f"{number:g}" for number in values] for name, values in read_columns(path).items()}
    assert columns == {"accuracy": ["0.5", "nan"], "cluster": ["1", "2"]}
    path.write_text("round,train_loss,test_accuracy\n1,0.9,\n2,0.8,0.25\n")
    first, second = {"round": 1, "train_loss": 0.9}, {"round": 2, "train_loss": 0.8, "test_accuracy": 0.25}
    assert read_rounds(path) == {1: first, 2: second}


WRONG_ROUNDS = {
    "two columns are called test_accuracy": "round,test_accuracy,test_accuracy\n1,0.5,0.9\n",
    "it has the round 2 twice": "round,test_accuracy\n2,0.5\n2,0.75\n",
    "it has the round 1.5, expected whole numbers": "round,test_accuracy\n1.5,0.5\n",
    "it has the round inf, expected whole numbers": "round,test_accuracy\n1e400,0.5\n",
    "it has the round -1, expected whole numbers": "round,test_accuracy\n-1,0.5\n",
    "it has the round nan, expected whole numbers": "round,test_accuracy\n,0.5\n",
    "its test_accuracy holds something else than numbers": 'round,test_accuracy\n1,"a\nb"\n',
    "field larger than field limit": f"round,test_accuracy\n1,{'0' * 200_000}\n",
    "it is empty": "",
    "a line of more than 16,777,216 characters": "0" * (2**24 + 5),
}


@pytest.mark.parametrize("expected", WRONG_ROUNDS)
def test_rounds_that_cannot_be_told_are_no_numbers(tmp_path, expected):
    path = tmp_path / "metrics.csv"
    path.write_text(WRONG_ROUNDS[expected])
    with pytest.raises(ValueError, match=expected):
        read_rounds(path)


def put_holes(path):
    with path.open("wb") as file:
        file.truncate(10**12)


PLACES = {
    "a pipe": (os.mkfifo, "no regular file"),
    "a folder": (os.mkdir, "Is a directory"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "no regular file"),
    "holes": (put_holes, "larger than 4 GB"),
}


@pytest.mark.parametrize("name", PLACES)
def test_what_is_no_file_of_a_run_is_not_waited_at(tmp_path, name):
    path, (put, expected) = tmp_path / "metrics.csv", PLACES[name]
    put(path)
    for read in (read_rounds, read_columns, read_rows):
        with pytest.raises(OSError, match=expected) as caught:
            read(path)
        assert caught.value.filename == str(path)
    with pytest.raises(RunRecordError, match=f"metrics.csv: cannot be read .*{expected}"):
        read_json(path)


DEEP, LONG = "[" * 100_000, '{"a": ' + "9" * 5000 + "}"


@pytest.mark.parametrize("text", [DEEP, LONG, '{"a": 1}\0', "\0"], ids=["deep", "long", "NUL behind", "NUL"])
def test_json_that_python_cannot_read_is_one_line(tmp_path, text):
    path = tmp_path / "summary.json"
    path.write_text(text)
    with pytest.raises(RunRecordError, match=r"summary\.json: cannot be read") as caught:
        read_json(path)
    assert "\n" not in str(caught.value)


def test_a_table_of_100_000_columns_is_read(tmp_path):
    path, names = tmp_path / "metrics.csv", [f"c{number}" for number in range(100_000)]
    path.write_text(f"round,{','.join(names)}\n1{',2.5' * len(names)}\n")
    assert read_rounds(path)[1] == {"round": 1, **dict.fromkeys(names, 2.5)}


def test_settings_that_a_version_lacks_are_passed_over():
    wanted = resolve_experiment(get_experiment(CELL))
    stored = flag_values(wanted)
    assert list_other_settings({**stored, "gone_flag": 1}, wanted) == []
    del stored["fairness"], stored["patience"]  # they are as by default
    assert list_other_settings({**stored, "batch_size": 32}, wanted) == ["--batch_size=32, not 64"]
    with pytest.raises(FlagError, match=rf"^fedsikd/{CELL}: --rounds=0: expected"):
        resolve_experiment(get_experiment(CELL), ["--rounds=0"])


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
