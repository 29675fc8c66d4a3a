"""What of data decides on methods: found without training, and said in lines."""

import dataclasses
import os
import pathlib
import subprocess
import sys

import pytest

from datasets.errors import DatasetError
from launch.advice.inspection import choose_splits, describe_facts, look_at
from launch.settings.flags import parse_config
from launch.training.federation import load_federated_data

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture
def write_table(tmp_path, monkeypatch):
    """(rows of a client, clients, further columns) -> flags of such a table, whose label is whether `a` is above 0."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def write(rows=20, clients=3, head="", cells=lambda row: ""):
        lines = [f"client,a,b,label{head}"]
        for number in range(rows * clients):
            a, b = (number * 7 % 11 - 5) / 3, (number * 5 % 13 - 6) / 4
            lines.append(f"site {number % clients:02},{a:.3f},{b:.3f},{'yes' if a > 0 else 'no'}{cells(number)}")
        (tmp_path / "mine.csv").write_text("\n".join(lines) + "\n")
        return {"data": str(tmp_path / "mine.csv")}

    return write


def test_a_table_of_few_clients(write_table):
    given = write_table()
    flags, facts = look_at(given)
    assert flags == {
        **given,
        "validation_fraction": 0.15,
        "test_fraction": 0.25,
        "partition": "natural",
        "batch_size": 16,
    }
    # Of 20 rows 3 to choose by, 5 to test on.
    assert (facts.num_clients, facts.num_new, facts.num_judged, facts.train_examples) == (3, 0, 3, (12, 12.0, 12))
    assert facts.num_classes == 2 and facts.have_own_clients and not facts.notes
    assert describe_facts(facts) == [
        'data     mine.csv: predicts "label" (2 classes) from 2 columns; clients from "client"',
        "judged   by the clients' own accuracy",
        "clients  3, examples of each to train on: 12",
        "splits   of each client's examples 15% to choose by, 25% to test on, where the data do not say it",
    ]
    parse_config(["--algo=fedcd", "--milestones=2", *(f"--{name}={value}" for name, value in flags.items())])


@pytest.mark.parametrize(
    ("further", "line"),
    [
        ({"label_column": "a,b"}, 'predicts "a", "b" (regression) from "label"; clients from "client"'),
        (
            {"label_column": "b", "task": "regression", "feature_columns": "a"},
            'predicts "b" (regression) from "a"; clients from "client"',
        ),
        (
            {"label_column": "label", "partition": "iid", "num_clients": 4, "time_column": "b"},
            'predicts "label" (2 classes) from "a"; in the order of "b"',
        ),
    ],
)
def test_which_column_is_predicted_and_which_names_the_clients(write_table, further, line):
    _, facts = look_at({**write_table(), **further})
    assert describe_facts(facts)[0] == f"data     mine.csv: {line}"


@pytest.mark.parametrize(("clients", "further"), [(1, {}), (2, {"partition": "dirichlet"})])
def test_a_table_of_a_few_rows_is_too_small(write_table, clients, further):
    with pytest.raises(DatasetError, match=r"mine\.csv: has \d+ rows, too few to train on, .* at least 24$"):
        look_at({**write_table(10, clients), **further})


@pytest.mark.parametrize(("clients", "held_out"), [(19, 0), (20, 4), (24, 4), (120, 20)])
def test_a_fifth_of_many_clients_is_held_out(clients, held_out, write_table):
    flags, facts = look_at(write_table(12, clients))
    assert flags.get("new_clients", 0) == facts.num_new == held_out
    assert facts.num_clients == clients - held_out
    assert any("(drawn by a fixed seed) take no part" in note for note in facts.notes) == bool(held_out)
    assert flags.get("draw_new_clients", False) == bool(held_out)
    flags, facts = look_at({**write_table(12, clients), "new_clients": 1})
    assert facts.num_new == 1 and "draw_new_clients" not in flags
    assert any("1 client (the last) take" in note for note in facts.notes)


def test_of_two_kinds_of_clients_by_name_both_are_held_out(tmp_path, monkeypatch):
    """Eight of A_01 to A_20 and B_01 to B_20, where the last eight are all of B: so neither kind is unknown."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names = [f"{kind}_{number:02}" for kind in "AB" for number in range(1, 21)]
    lines = [f"{name},{row * 7 % 11 - 5},{'yes' if row % 2 else 'no'}" for name in names for row in range(12)]
    (tmp_path / "two.csv").write_text("\n".join(["client,a,label", *lines]) + "\n")
    flags, facts = look_at({"data": str(tmp_path / "two.csv")})
    assert (flags["new_clients"], facts.num_new, facts.num_clients) == (8, 8, 32)
    data = load_federated_data(facts.config)
    names = [client.name for client in data.new_clients]
    assert names == ["A_02", "A_17", "B_03", "B_06", "B_08", "B_10", "B_14", "B_19"]
    again = load_federated_data(dataclasses.replace(facts.config, seed=100))
    assert [client.name for client in again.clients] == [client.name for client in data.clients]


def test_what_is_wrong_with_a_table_is_solved_and_said(write_table):
    given = write_table(head=",unit,wide", cells=lambda row: f",kg,{1e6 + row % 9 * 1e3}")
    flags, facts = look_at(given)
    assert flags["drop_columns"] == "unit" and flags["standardize"] == "federated"
    assert "read with --drop_columns=unit" in facts.notes[0] and "'unit' is kg in every row" in facts.notes[0]
    assert facts.notes[1] == "--standardize=federated is set, as launch.inspect proposes"
    flags, facts = look_at({**given, "drop_columns": "unit,wide"})
    assert flags["drop_columns"] == "unit,wide" and not facts.notes


def test_an_order_of_time_and_overlapping_windows_are_said(write_table):
    given = write_table(40, head=",time", cells=lambda row: f",{row}")
    _, facts = look_at(given)
    assert facts.is_ordered and "in order of time" in facts.notes[-1]
    windows = {**given, "window": 4, "window_step": 1}
    for further, said in (({}, "are left out"), ({"shared_rows": "keep"}, "tell the test part what to answer")):
        _, facts = look_at({**windows, **further})
        assert any("overlap" in note and said in note for note in facts.notes)


def test_devices_differ_by_what_a_file_says(write_table, tmp_path):
    given, path = write_table(), tmp_path / "devices.csv"
    for fast, differ in ((150, False), (500, True)):
        head = "client,examples_per_s,downlink_bytes_per_s,uplink_bytes_per_s"
        path.write_text("\n".join([head, *(f"{i},{speed},1e6,1e6" for i, speed in enumerate((100, fast, 120)))]))
        _, facts = look_at({**given, "device_profiles": str(path)})
        assert facts.speeds_apart == pytest.approx(fast / 100) and facts.devices_differ == differ
    assert look_at(given)[1].speeds_apart == 1


def test_clients_that_are_simulated_are_called_so_and_archetypes_have_splits_of_their_own(write_table):
    flags, facts = look_at({**write_table(), "partition": "iid", "num_clients": 4})
    assert not facts.have_own_clients and "clients are simulated (--partition=iid)" in facts.notes[0]
    flags, facts = look_at({"dataset": "digits", "partition": "hierarchical", "train_per_client": 30,
                            "validation_per_client": 5, "test_per_client": 5})  # fmt: skip
    assert facts.num_clients == 30 and facts.num_new == 0 and "test_fraction" not in flags
    assert not any(line.startswith("splits") for line in describe_facts(facts))


def test_people_are_clients_whose_whole_bouts_are_held_out():
    flags, notes = choose_splits({"dataset": "har"})
    assert flags["partition"] == "natural" and flags["har_split"] == "bouts" and "whole bouts" in notes[0]
    flags, notes = choose_splits({"dataset": "har", "partition": "iid"})
    assert flags["partition"] == "iid" and "har_split" not in flags and not notes
    assert (
        choose_splits({"dataset": "har", "har_split": "windows", "partition": "natural"})[0]["har_split"] == "windows"
    )
    assert choose_splits({"dataset": "emnist"})[0]["partition"] == "natural"
    assert choose_splits({"dataset": "mnist", "test_fraction": 0.1})[0]["test_fraction"] == 0.1


@pytest.mark.parametrize(
    ("further", "rows", "clients", "said"),
    [
        ({}, 40, 1, "it has one client, so there is nothing to federate"),
        ({"validation_fraction": 0}, 20, 3, "no client has validation examples"),
        ({"partition": "natural"}, 8, 30, "no test examples"),
        ({"label_column": "nix"}, 20, 3, "nix"),
    ],
)
def test_what_cannot_be_advised_is_one_line(further, rows, clients, said, write_table):
    with pytest.raises(DatasetError) as caught:
        look_at({**write_table(rows, clients), **further})
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_looking_needs_no_tensorflow(write_table):
    code = f"""
import sys
from launch.advice.candidates import choose_methods
from launch.advice.inspection import look_at
assert choose_methods(look_at({write_table()!r})[1]).methods
assert not {{"tensorflow", "sklearn", "matplotlib"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, env=dict(os.environ), text=True)
    assert done.returncode == 0, done.stderr
