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
from launch.pages.inspection import format_findings, inspect_data
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


@pytest.fixture
def look(tmp_path, capsys):
    """(arguments) -> what is printed, and what is written as JSON."""

    def inspect_here(*arguments):
        assert inspect.main([*map(str, arguments), f"--json={tmp_path / 'found.json'}"]) == 0
        return capsys.readouterr().out, json.loads((tmp_path / "found.json").read_text())

    return inspect_here


@pytest.fixture
def write_table(tmp_path):
    """(head, rows) -> the path of such a CSV."""

    def write(head, rows):
        (tmp_path / "mine.csv").write_text("\n".join([head, *rows]) + "\n")
        return tmp_path / "mine.csv"

    return write


def test_a_table_and_the_command_to_type(table, look, tmp_path):
    printed, found = look(table)
    assert "odd       feature pressure has a mean of 1e+06" in printed
    assert "problem   column 'unit' is 7 in every row, which tells nothing; leave" in printed
    assert "          solved by --drop_columns=unit\n" in printed and "unit      number    7 to 7" in printed
    assert found["clients"] == 6 and found["examples"]["train"] == sum(range(20, 26)) and not found["dropped"]
    assert found["train_examples_a_client"] == {"lowest": 20, "median": 22.5, "highest": 25}
    assert [each["name"] for each in found["features"]] == ["accel", "pressure"]
    assert found["problems"][0]["fix"] == {"drop_columns": "unit"} and found["columns"][3]["lowest"] == 7
    assert f"\ntrain     {found['command']}\n" in printed
    *program, arguments = found["command"].split(maxsplit=3)
    assert program == ["python", "-m", "launch.train"]
    config = parse_config([*shlex.split(arguments), f"--client_dir={tmp_path / 'clients'}"])
    assert config.standardize == "federated" and len(load_federated_data(config).clients) == 6


PAGE = """\
data      mine, a table, CSV or TSV
columns   column  kind      values       missing  examples
          user    category  6 different  0        u0, u1, u2
          age     number    1 to 10      1        1, 2, 3
          label   number    0 to 1       0        0, 1
examples  1 feature, as they are; table, comma-separated, UTF-8: label label (by its name), client user
task      classification, 2 classes
clients   6 (u0, u1, u2, ...), train examples of each, the median is 4:
          1  1  ████████████████████████████████████████
          2  1  ████████████████████████████████████████
          3  1  ████████████████████████████████████████
          4  1  ████████████████████████████████████████
          5  1  ████████████████████████████████████████
          6  1  ████████████████████████████████████████
splits    21 train, 0 validation, 0 test; the test examples will be held out of the train ones
classes   class  train   share  test
          0         12  57.1 %     0
          1          9  42.9 %     0
          of a client's train examples, 62.8 % are of its own most frequent class (mean)
features  name  lowest  highest   mean  deviation
          age        1       10  5.238      2.328
scaled    with --standardize, 1 of 1 features: all
missing   examples left out, since a value was missing: none
filled    1 missing value, by the median or the most frequent text of the train part, by column: age 1
twice     11 of the train examples are like an earlier one; 0 of 0 test examples are train examples
odd       6 of 6 clients have fewer than 12 examples: too few for a validation or test split of their own
odd       train examples that are like an earlier one but have another label: 7
train     python -m launch.train --algo=fedavg --data=mine.csv --client_column=user --missing=median --model=\
perceptron --partition=iid
written   found.json
"""


def test_a_whole_page(write_table, look, monkeypatch, tmp_path):
    """Six people of one to six rows, whose labels alternate; one row lacks its age."""
    rows = [f"u{user},{user + row if user + row else ''},{row % 2}" for user in range(6) for row in range(user + 1)]
    write_table("user,age,label", rows)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("launch.inspect.PLAIN_BAR", inspect.BAR)
    printed, _ = look("mine.csv", "--missing=median", "--client_column=user")
    assert printed.replace(f"{tmp_path}/", "") == PAGE


def make_messy_table():
    """Text with a column for each of many problems; 60 rows of 3 people."""
    rows = ["row,person,visit,age,bmi,cost,unit,remark,void,City,result"]
    for n in range(60):
        age, bmi = "" if n == 5 else 30 + n % 7, "broken" if n == 9 else f"2{n % 9}.5"
        remark = f"the {n} is what we saw today here"
        city = ("Rome", "rome", "Oslo")[n % 3]
        rows.append(
            f'{n},p{n % 3},{n % 28 + 1:02}/07/2024,{age},{bmi},"{n + 1},250.5",kg,{remark},,{city},{"ab"[n // 3 % 2]}'
        )
    return "\n".join(rows) + "\n"


ROWS = range(40)
PROBLEMS = {  # text, flags that are given, the flags that are added in the order in which they are found
    "everything": (
        make_messy_table(),
        (),
        [
            *("--label_column=result", "--drop_columns=visit", "--drop_columns=remark", "--drop_columns=void"),
            *("--missing=median", "--missing_words=broken", "--drop_columns=row", "--drop_columns=unit"),
            "--join_spellings=true",
        ],
    ),
    "dates among features that are named": (
        "who,when,a,label\n" + "".join(f"u{n % 2},2024-01-{n % 28 + 1:02},{n % 5},{n % 2}\n" for n in ROWS),
        ("--feature_columns=a,When",),
        ["--drop_columns=when"],
    ),
    "sentences beside a category": (
        "user,shop,note,label\n" + "".join(f"u{n % 2},s{n % 3},the {n} came on day {n},{n % 2}\n" for n in ROWS),
        (),
        ["--text_column=note"],
    ),
    "days or months first": (
        "user,date,a,label\n" + "".join(f"u{n % 2},0{n % 9 + 1}/0{n % 8 + 1}/2024,{n % 5},{n % 2}\n" for n in ROWS),
        (),
        ["--date_form=dmy"],
    ),
    "points or commas": (
        "user;a;b;label\n" + "".join(f"u{n % 2};$1,{n % 9 + 1}50;{n % 5};{n % 2}\n" for n in ROWS),
        (),
        ["--decimal_mark=point"],
    ),
    "labels that are measured": (
        "user,a,label\n" + "".join(f"u{n % 2},{n % 5},{3 * n}\n" for n in ROWS),
        (),
        ["--task=regression"],
    ),
    "two labels and rows that are clients": (
        "user,a,y,target\n" + "".join(f"u{n},{n % 5},{n % 2},{n % 3}\n" for n in ROWS),
        (),
        ["--label_column=y", "--partition=iid"],
    ),
    "a label that is missing, and a column that nearly is": (
        "user,a,b,label\n" + "".join(f"u{n % 2},{n % 5},{'' if n else 1},{n % 2 if n else ''}\n" for n in ROWS),
        (),
        ["--missing=drop", "--drop_columns=b"],
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_all_problems_are_named_with_the_flags_that_solve_them_and_the_command_runs(name, look, tmp_path):
    text, given, flags = PROBLEMS[name]
    (tmp_path / "mine.csv").write_text(text)
    printed, found = look(tmp_path / "mine.csv", *given)
    solved = [line.strip() for line in printed.splitlines() if line.startswith("          solved by ")]
    assert solved == [f"solved by {flag}" for flag in flags]
    assert printed.count("\nproblem   ") == len(flags) and str(tmp_path) not in printed.partition("\ntrain ")[0]
    [said] = [line for line in printed.splitlines() if line.startswith("note      what follows is read with ")]
    assert set(shlex.split(said)[6:]) <= set(shlex.split(found["command"]))
    assert printed.splitlines()[-2] == f"train     {found['command']}"
    config = parse_config([*shlex.split(found["command"])[3:], f"--client_dir={tmp_path / 'clients'}"])
    assert load_federated_data(config).clients


def test_what_no_flag_solves_is_the_error_below_all_else_that_was_found(write_table, capsys):
    path = write_table("who,when,mark,label", (f"u{n % 2},2024-01-{n + 1:02},{n % 3},{n % 2}" for n in range(9)))
    assert inspect.main([str(path), "--client_column=who", "--weight_column=mark"]) == 2
    printed = capsys.readouterr()
    assert printed.out.startswith("columns   column  kind") and "solved by --drop_columns=when\n" in printed.out
    assert printed.err == f"error: {path}: no column is left to predict from; it has who, when, mark, label\n"


def test_weights_are_described_and_are_no_feature(write_table, look):
    path = write_table(
        "user,a,w,label", [f"u{row % 3},{row % 11},{row % 4 * 0.5},{row // 3 % 2}" for row in range(120)]
    )
    printed, found = look(path, "--weight_column=w")
    line = "weights   column w: 0 to 1.5, 30 of 120 train examples weigh 0; divided by their mean, 0.75\n"
    assert line in printed
    expected = {"column": "w", "mean": 0.75, "lowest": 0, "highest": 1.5, "num_zero": 30, "num_examples": 120}
    assert found["weights"] == expected
    assert [each["name"] for each in found["features"]] == ["a"] and "--weight_column=w" in found["command"]


def test_a_column_of_texts_may_name_clients_and_what_was_filled_is_not_called_missing(write_table, look):
    rows = (f"ward {row % 5},{'' if row == 7 else row % 11},{row % 2}" for row in range(100))
    path = write_table("ward,age,label", rows)
    printed, found = look(path, "--missing=median")
    said = "column ward has 5 texts, each in 20 rows or more: if it says whose a row is, give --client_column=ward"
    assert f"odd       {said}" in printed
    assert f"train     {found['command']}\nor        where column ward says whose a row is\n" in printed
    assert f"\n          {found['command']} --client_column=ward\n" in printed
    assert "missing   examples left out, since a value was missing: none" in printed
    printed, _ = look(path, "--missing=median", "--client_column=ward")
    assert "column ward" not in printed


def test_what_a_scaling_would_leave_alone(write_table, look, tmp_path):
    path = write_table(
        "age,city,smoker,label", (f"{30 + row % 7},c{row % 150},{row % 2},{row % 3}" for row in range(300))
    )
    printed, found = look(path, "--categories=index")
    said = "scaled    with --standardize, 1 of 3 features: age; not city (category), smoker (0 or 1)"
    assert said in printed and "indices of categories up to 149 (city)" in printed
    assert "--standardize=" not in printed.partition("train     ")[2]
    assert found["unscaled"] == {"city": "category", "smoker": "0 or 1"}
    assert "\ncategory  city: the index, from 0, of c0, c1, c10, " in printed
    assert " and 138 more (feature 1)\n" in printed and found["groups"][0]["values"][:3] == ["c0", "c1", "c10"]
    x = np.full((40, 4, 2), 1000.0)
    x[:, 1:] = 0
    np.savez(tmp_path / "steps.npz", x=x + (x > 0) * np.arange(40)[:, None, None], y=np.arange(40) % 2)
    printed, _ = look(tmp_path / "steps.npz")
    assert "padding   75.0 % of the steps hold nothing but 0" in printed and "give --unscaled=categories" in printed
    assert "has a mean of 1.02e+03 and a deviation of 11.5" in printed and "--standardize=federated" in printed
    printed, _ = look(tmp_path / "steps.npz", "--standardize=federated", "--unscaled=categories")
    assert "padding " not in printed


def test_a_data_set_of_the_catalog_and_what_was_typed(look, tmp_path):
    lines = look("--dataset=digits")[0].splitlines()
    assert lines[0] == "data      digits, the data set digits" and "clients   none are named" in lines[3]
    assert lines[-2] == "train     python -m launch.train --algo=fedavg --dataset=digits"
    np.savez(tmp_path / "mine.npz", x=np.eye(12)[:, :4], y=np.arange(12) % 3)
    _, found = look("--dataset=npz", "--npz", tmp_path / "mine.npz", "--scale=0.5")
    assert f"--npz={tmp_path / 'mine.npz'} --scale=0.5" in found["command"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["/nowhere/a.csv"], "--data=/nowhere/a.csv: no such file or folder"),
        ([__file__], "in none of the formats that are read"),
        (["mine.csv", "--label_column=nix"], "it has a, b"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(arguments, said, write_table, monkeypatch, capsys):
    monkeypatch.chdir(write_table("a,b", ["1,2"]).parent)
    assert inspect.main(arguments) == 2
    written = capsys.readouterr().err
    assert written.startswith("error: ") and said in written and written.count("\n") == 1


def test_it_needs_no_tensorflow_and_a_plain_terminal_gets_plain_bars(table):
    code = f"""
import sys
from launch import inspect
assert inspect.main([{str(table)!r}]) == 0
assert not {{"tensorflow", "sklearn", "matplotlib"}} & set(sys.modules)
"""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "####" in done.stdout.decode("ascii")


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
    text = format_findings(findings)
    assert "342,477 (0, 1, 2, ...)" in text and "examples of 2,000 clients, drawn by the seed" in text
    assert "too few for a validation or test split" in text


def test_names_do_not_steer_the_terminal():
    def read(client, split):
        return np.eye(12, dtype=np.float32), np.arange(12, dtype=np.int32) % 2

    example_format = ExampleFormat((12,), "float32", ("\u202ea", "b" * 99))
    source = ClientSource("x", example_format, ("\u2066c",), {"train": np.array([12])}, read, "d" * 64)
    text = format_findings(inspect_data(source, "made here", "", {"dataset": "x"}))
    assert "\u202e" not in text and "\u2066" not in text and "\\u202e" in text and "b" * 40 not in text
