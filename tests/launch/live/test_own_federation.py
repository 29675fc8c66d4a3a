"""A run whose clients' examples are on machines of their own: its tables and files bear that there are none here."""

import json
import math
import types

import numpy as np
import pytest
from small_tables import write_text

from datasets.baselines import compute_majority_accuracies
from datasets.example_format import ExampleFormat
from datasets.federated_data import FederatedData
from launch import evaluate, export
from launch.live.description import describe_examples
from launch.live.own_federation import average_measured, build_own_federation
from launch.runs.run_records import read_rows
from launch.settings.flags import FlagError
from launch.tflite.export_plan import ModelExport
from launch.tflite.representatives import find_representative_clients, read_representative_examples
from launch.training import training_run
from launch.training.evaluation import StateEvaluation, build_evaluator
from launch.training.finished_run import read_finished_run
from tff_algos.weights import initialize_weights

SEATS = [("Ann", 30, 7), ("Ben", 12, 0), ("Ann", 5, 1), ("", 8, 2)]
DESCRIPTION = {
    "kind": "table", "name": "clinic", "scale": 1.0, "offset": 0.0, "missing": "refuse", "missing_words": [],
    "decimal_mark": "auto", "left_out": [],
    "columns": [
        {"name": "age", "kind": "number", "fill": 0.0, "mean": 40.0, "deviation": 20.0},
        {"name": "colour", "kind": "one_hot", "values": ["red", "blue"], "joined": {}, "most_frequent": 0},
    ],
    "label": {"name": "ill", "classes": ["no", "yes"], "numbers": [], "spellings": {"no": 0, "yes": 1}},
}  # fmt: skip


def test_the_clients_of_a_schema():
    data = build_own_federation(DESCRIPTION, SEATS)
    assert [client.name for client in data.clients] == ["Ann", "Ben", "Ann (2)", "client_3"]
    assert data.num_train.tolist() == [30, 12, 5, 8]
    assert [client.num_test for client in data.clients] == [7, 0, 1, 2]
    assert (data.label_counts.shape, data.test_x.shape, data.test_y.shape) == ((4, 0), (0, 3, 1), (0,))
    assert data.profiles.availability.tolist() == [1, 1, 1, 1]
    assert (data.feature_means, data.feature_deviations) == ((40, 0, 0), (20, 1, 1))
    x, y = data.read_pooled(data.clients, "test")
    assert (x.shape, x.dtype, y.shape, y.dtype) == ((0, 3, 1), np.float32, (0,), np.int32)
    assert [data.count(client, "test") for client in data.clients] == [0, 0, 0, 0]
    assert [client.path for client in data.clients][:2] == ["seat_0", "seat_1"]  # of no file
    assert build_own_federation(DESCRIPTION, SEATS[:1]).digest == data.digest


def test_names_are_told_apart_from_those_that_are_numbered_already():
    names = [("a (2)", 1, 0), ("a", 1, 0), ("a", 1, 0), ("a", 1, 0)]
    found = [client.name for client in build_own_federation(DESCRIPTION, names).clients]
    assert found == ["a (2)", "a", "a (3)", "a (4)"]


@pytest.fixture
def organiser(make_federation):
    return make_federation([5, 3, 4])


def test_the_organisers_test_set_is_the_global_one(organiser):
    data = build_own_federation(organiser, SEATS, DESCRIPTION)
    assert data.test_x is organiser.test_x
    assert (data.format, data.dataset, data.digest) == (organiser.format, organiser.dataset, organiser.digest)
    assert data.feature_means == (40, 0, 0)
    assert build_own_federation(organiser, SEATS).feature_means == ()
    majority = compute_majority_accuracies(data)
    assert np.isnan([*majority.own, *majority.overall, majority.on_test_set]).all()


def test_the_ranges_of_int8_are_of_the_organisers_test_set():
    y = np.array([0, 0, 0, 0, 0, 0, 1, 1], np.int32)
    example_format = ExampleFormat((1,), "float32", ("a", "b"))
    organiser = FederatedData(
        "made up", example_format, (), np.zeros((0, 2)), np.arange(8, dtype=np.float32)[:, None], y, None
    )
    data = build_own_federation(organiser, SEATS)
    export = ModelExport("global", "global", False, ("int8",), ("Ann", "Ben"))
    assert find_representative_clients(export, data, "") == []
    assert read_representative_examples(data, [], 4)[:, 0].tolist() == [0, 5, 6, 7]
    assert read_representative_examples(data, [], 100)[:, 0].tolist() == list(range(8))
    assert read_representative_examples(data, [], 2, has_classes=False)[:, 0].tolist() == [0, 7]
    with pytest.raises(FlagError, match="--representative_client=Ann: its examples are on its own machine"):
        find_representative_clients(export, data, "Ann")


def test_what_clients_measured_is_weighted_by_examples():
    """Of 1 + 3 examples 0 + 3 are correct, and the losses are 2 and 3 * 0.2: 0.75 and 2.6 / 4."""
    assert average_measured([(1, 0, 2.0), (0, 0, 0.0), (3, 3, 0.6)]) == pytest.approx((0.75, 0.65))
    assert average_measured([(2, 1, math.inf)]) == (0.5, math.inf)
    assert np.isnan([*average_measured([]), *average_measured([(0, 0, 0.0)])]).all()


def test_clients_far_away_are_evaluated_on_nothing(organiser, linear_spec):
    process = types.SimpleNamespace(
        is_personal=False,
        get_models=lambda state: {"global": initialize_weights(linear_spec, 0)},
        client_model=lambda state: ["global"] * len(SEATS),
        personalize=lambda state, clients: [1 / 0 for _ in clients],
    )
    data = build_own_federation(organiser, SEATS)
    found = StateEvaluation(process, data, build_evaluator(linear_spec), with_spread=True)(None, None, True)
    assert 0 <= found.pop("test_accuracy") <= 1 and found.pop("test_loss") > 0
    assert {"client_test_accuracy", "validation_accuracy"} < found.keys() and np.isnan([*found.values()]).all()


@pytest.fixture
def train_own(train_here, tmp_path, monkeypatch):
    """(whether there is an organiser's data set) -> the folder of a run that simulates what clients far away do."""
    rng = np.random.default_rng(5)
    ages = rng.integers(18, 90, 90)
    rows = [f"{age};{age * 1000 + 0.5};{'red' if age % 2 else 'blue'};{'ill' if age > 50 else 'well'}" for age in ages]
    text = "age;income;colour;label\n" + "\n".join(rows) + "\n"
    path = write_text(tmp_path, text)
    load, build = training_run.load_federated_data, training_run.build_process

    def train(has_organiser):
        simulated = []

        def load_own(config):
            simulated.append(load(config))
            seats = [("Ann", client.num_train, client.num_test) for client in simulated[0].clients]
            description = describe_examples(config, simulated[0])
            return build_own_federation(simulated[0] if has_organiser else description, seats, description)

        monkeypatch.setattr(training_run, "load_federated_data", load_own)
        monkeypatch.setattr(training_run, "build_process", lambda config, spec, data: build(config, spec, *simulated))
        folder = tmp_path / "run"
        flags = ("--algo=fedavg", "--runtime=in_process", f"--data={path}", "--num_clients=3", "--rounds=1")
        code, said, wrong = train_here(*flags, "--partition=iid", f"--run_dir={folder}")
        assert (code, wrong) == (0, "")
        assert "clients  3, with examples of their own, on their own machines" in said
        assert "scales numbers by the means" in said and "--standardize" not in said
        return folder

    return train


@pytest.mark.slow
@pytest.mark.usefixtures("convert_here")
@pytest.mark.parametrize("has_organiser", [True, False])
def test_a_run_is_read_by_all_commands(train_own, has_organiser, capsys):
    folder = train_own(has_organiser)
    rows = read_rows(folder / "clients.csv")
    assert [row["client"] for row in rows] == ["Ann", "Ann (2)", "Ann (3)"]
    assert [sum(int(row[name]) for row in rows) for name in ("num_train", "num_validation", "num_test")] == [60, 0, 6]
    assert {row["accuracy"] for row in rows} == {""}
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["final"]["test_accuracy"] is not None) == has_organiser
    data = read_finished_run(str(folder)).load_data()
    assert data.is_remote and [client.name for client in data.clients] == ["Ann", "Ann (2)", "Ann (3)"]
    assert len(data.test_y) == 18 * has_organiser
    assert evaluate.main([f"--run_dir={folder}"]) == (0 if has_organiser else 2)
    assert has_organiser or "give some by --npz=<file>" in capsys.readouterr().err
    capsys.readouterr()
    code = export.main([f"--run_dir={folder}", "--formats=float32,int8"])
    assert code == (0 if has_organiser else 2)
    if not has_organiser:
        assert "the run has no test examples on this machine" in capsys.readouterr().err
        return
    card = json.loads((folder / "export" / "global.int8.json").read_text())
    assert (card["representative_clients"], card["representative_examples"]) == (0, 18)
    assert "the file scales them" in (folder / "export" / "card.md").read_text()
