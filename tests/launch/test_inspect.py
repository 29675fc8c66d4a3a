"""The command that looks at data before anything is trained, and its one-line errors."""

import json
import os
import pathlib
import random
import shlex
import subprocess
import sys

import numpy as np
import pytest

from datasets.client_source import ClientSource
from datasets.example_format import ExampleFormat
from launch import inspect
from launch.pages.inspection.findings import inspect_data, list_lines
from launch.settings.flags import parse_config
from launch.training.federation import load_federated_data

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A CSV of 6 people with a column about 1e6, one that never changes, and a name with a space in its path."""
    draw = random.Random(1)
    lines = ["user_id,accel,pressure,unit,label"]
    for user in range(6):
        for _ in range(20 + user):
            label = draw.choice(["sit", "run"])
            accel = draw.gauss(4 if label == "run" else 0, 1)
            lines.append(f"user{user},{accel:.4f},{1e6 + draw.gauss(0, 1000):.2f},7,{label}")
    path = tmp_path_factory.mktemp("my data") / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_table_and_the_command_to_type(table, tmp_path, capsys):
    assert inspect.main([str(table), f"--json={tmp_path / 'found.json'}"]) == 0
    printed = capsys.readouterr().out
    assert "classification, 2 classes" in printed and "6 (user0, user1, user2, ...)" in printed
    assert "odd       feature pressure has a mean of 1e+06" in printed and "column unit is 7 in every row" in printed
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["clients"] == 6 and found["examples"]["train"] == sum(range(20, 26)) and not found["dropped"]
    assert found["train_examples_a_client"] == {"lowest": 20, "median": 22.5, "highest": 25}
    unit = next(each for each in found["features"] if each["name"] == "unit")
    assert unit == {"name": "unit", "lowest": 7, "highest": 7, "mean": 7, "deviation": 0}
    command = printed.partition("train     ")[2].splitlines()[0]
    assert command == found["command"]
    program, arguments = shlex.split(command)[:3], shlex.split(command)[3:]
    assert program == ["python", "-m", "launch.train"]
    config = parse_config([*arguments, f"--client_dir={tmp_path / 'clients'}"])
    assert config.standardize == "federated" and len(load_federated_data(config).clients) == 6


def test_weights_are_told_and_are_no_feature(tmp_path, capsys):
    rows = [f"u{row % 3},{row % 11},{row % 4 * 0.5},{row // 3 % 2}" for row in range(120)]
    (tmp_path / "mine.csv").write_text("\n".join(["user,a,w,label", *rows]) + "\n")
    arguments = [str(tmp_path / "mine.csv"), "--weight_column=w", f"--json={tmp_path / 'found.json'}"]
    assert inspect.main(arguments) == 0
    line = "weights   column w: 0 to 1.5, 30 of 120 train examples weigh 0; divided by their mean, 0.75\n"
    assert line in capsys.readouterr().out
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["weights"] == {
        "column": "w", "mean": 0.75, "lowest": 0, "highest": 1.5, "num_zero": 30, "num_examples": 120
    }  # fmt: skip
    assert [each["name"] for each in found["features"]] == ["a"] and "--weight_column=w" in found["command"]


def test_a_column_of_texts_may_name_clients_and_what_was_filled_is_not_called_missing(tmp_path, capsys):
    lines = ["ward,age,label", *(f"ward {row % 5},{'' if row == 7 else row % 11},{row % 2}" for row in range(100))]
    path = tmp_path / "wards.csv"
    path.write_text("\n".join(lines) + "\n")
    assert inspect.main([str(path), "--missing=median"]) == 0
    printed = capsys.readouterr().out
    said = "column ward has 5 texts, each in 20 rows or more: if it says whose a row is, give --client_column=ward"
    assert f"odd       {said}" in printed
    assert "missing   examples left out, since a value was missing: none" in printed
    assert inspect.main([str(path), "--missing=median", "--client_column=ward"]) == 0
    assert "column ward" not in capsys.readouterr().out


def test_what_a_scaling_would_leave_alone(tmp_path, capsys):
    lines = ["age,city,smoker,label", *(f"{30 + row % 7},c{row % 150},{row % 2},{row % 3}" for row in range(300))]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines) + "\n")
    assert inspect.main([str(path), "--categories=index", f"--json={tmp_path / 'found.json'}"]) == 0
    printed = capsys.readouterr().out
    said = "scaled    with --standardize, 1 of 3 features: age; not city (category), smoker (0 or 1)"
    assert said in printed and "indices of categories up to 149 (city)" in printed
    assert "--standardize=" not in printed.partition("train     ")[2]
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["unscaled"] == {"city": "category", "smoker": "0 or 1"}
    assert (
        "\ncategory  city: the index, from 0, of c0, c1, c10, " in printed and " and 138 more (feature 1)\n" in printed
    )
    assert found["groups"][0]["values"][:3] == ["c0", "c1", "c10"]
    x = np.full((40, 4, 2), 1000.0)
    x[:, 1:] = 0
    np.savez(tmp_path / "steps.npz", x=x + (x > 0) * np.arange(40)[:, None, None], y=np.arange(40) % 2)
    assert inspect.main([str(tmp_path / "steps.npz")]) == 0
    printed = capsys.readouterr().out
    assert "padding   75.0 % of the steps hold nothing but 0" in printed and "give --unscaled=categories" in printed
    assert "has a mean of 1.02e+03 and a deviation of 11.5" in printed and "--standardize=federated" in printed
    assert inspect.main([str(tmp_path / "steps.npz"), "--standardize=federated", "--unscaled=categories"]) == 0
    assert "padding " not in capsys.readouterr().out


def test_a_data_set_of_the_catalog(capsys):
    assert inspect.main(["--dataset=digits"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "data      digits, the data set digits" and "clients   none are named" in lines[3]
    assert lines[-1] == "train     python -m launch.train --algo=fedavg --dataset=digits"


def test_what_was_typed_is_in_the_command(tmp_path, capsys):
    np.savez(tmp_path / "mine.npz", x=np.eye(12)[:, :4], y=np.arange(12) % 3)
    assert inspect.main(["--dataset=npz", "--npz", str(tmp_path / "mine.npz"), "--scale=0.5"]) == 0
    command = capsys.readouterr().out.splitlines()[-1]
    assert f"--npz={tmp_path / 'mine.npz'} --scale=0.5" in command


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "expected a file or folder, or --dataset=<name>"),
        (["/nowhere/a.csv"], "--data=/nowhere/a.csv: no such file or folder"),
        (["a.csv", "b.csv"], "a.csv b.csv: expected one file or folder"),
        (["a.csv", "--dataset=digits"], "either a file or folder, or --dataset, not both"),
        (["--dataset=digits", "--rounds=3"], "--rounds: is a flag of launch.train"),
        (["--dataset=dgits"], "did you mean digits?"),
        (["--dataset=digits", "--client_column=user"], "--client_column: does nothing"),
        ([__file__], "in none of the formats that are read"),
    ],
)
def test_a_mistake_is_one_line(arguments, said, capsys):
    assert inspect.main(arguments) == 2
    written = capsys.readouterr().err
    assert written.startswith("error: ") and said in written and written.count("\n") == 1


def test_a_wrong_column_names_the_ones_there_are(table, capsys):
    assert inspect.main([str(table), "--label_column=nix"]) == 2
    assert "it has user_id, accel, pressure, unit, label" in capsys.readouterr().err


def run_process(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, env={**os.environ, **environment}, check=False
    )


def test_it_needs_no_tensorflow_and_a_plain_terminal_gets_plain_bars(table):
    code = f"""
import sys
from launch import inspect
assert inspect.main([{str(table)!r}]) == 0
assert not {{"tensorflow", "sklearn", "matplotlib"}} & set(sys.modules)
"""
    done = run_process(code, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    done.stdout.decode("ascii")
    assert b"####" in done.stdout


def test_a_closed_pipe_is_no_traceback(table):
    command = f"set -o pipefail; {sys.executable} -m launch.inspect {shlex.quote(str(table))} | head -n 1"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("data      table") and done.stderr == ""


def test_a_federation_of_stack_overflows_size_is_a_sample():
    """342,477 clients, of which no more are read than the sample needs."""
    number, read_clients = 342_477, []

    def read(client, split):
        read_clients.append(client)
        rng = np.random.default_rng(client)
        return rng.normal(size=(sizes[client], 2)).astype(np.float32), rng.integers(0, 2, sizes[client]).astype(
            np.int32
        )

    sizes = np.random.default_rng(0).integers(1, 30, number)
    example_format = ExampleFormat((2,), "float32", ("a", "b"))
    source = ClientSource("many", example_format, tuple(map(str, range(number))), {"train": sizes}, read, "d" * 64)
    findings = inspect_data(source, "made here", "", {"dataset": "many"})
    assert len(read_clients) <= 2000 and findings.num_examples["train"] == sizes.sum()
    text = "\n".join(list_lines(findings))
    assert "342,477 (0, 1, 2, ...)" in text and "examples of 2,000 clients, drawn by the seed" in text
    assert "too few for a validation or test split" in text


def test_names_do_not_steer_the_terminal():
    def read(client, split):
        return np.eye(12, dtype=np.float32), np.arange(12, dtype=np.int32) % 2

    example_format = ExampleFormat((12,), "float32", ("\u202ea", "b" * 99))
    source = ClientSource("x", example_format, ("\u2066c",), {"train": np.array([12])}, read, "d" * 64)
    text = "\n".join(list_lines(inspect_data(source, "made here", "", {"dataset": "x"})))
    assert "\u202e" not in text and "\u2066" not in text and "\\u202e" in text and "b" * 40 not in text
