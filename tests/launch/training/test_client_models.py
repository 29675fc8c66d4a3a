"""Clients whose models differ, through the programs: each is tested, kept, evaluated and exported as its own."""

import numpy as np
import pytest

from launch import api, evaluate, export, train
from launch.runs.run_records import read_rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_plots", "convert_here")]
# Both have 64 values before the last layer, on digits.
MODELS = ("perceptron", "image_student")
FLAGS = (
    *("--algo=fedproto", f"--models={','.join(MODELS)}", "--partition=iid", "--num_clients=3"),
    *("--epochs=1", "--runtime=in_process", "--norun_page"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("client_models")


@pytest.fixture(scope="module")
def run_dir(folder):
    """Two rounds of FedProto on digits."""
    arguments = f"--run_dir={folder / 'run'}", f"--client_dir={folder / 'clients'}", "--rounds=2"
    assert train.main([*FLAGS, *arguments]) == 0
    return folder / "run"


def test_every_model_is_evaluated_again_as_what_it_is(run_dir, capsys):
    clients = read_rows(run_dir / "clients.csv")
    assert [row["architecture"] for row in clients] == ["perceptron", "image_student", "perceptron"]
    assert evaluate.main([f"--run_dir={run_dir}"]) == 0, capsys.readouterr().err
    rows = [row for row in read_rows(run_dir / "evaluation.csv") if row["test_set"] != "global"]
    assert [row["model"] for row in rows] == [row["client"] for row in clients]
    for row, client in zip(rows, clients, strict=True):
        assert float(row["accuracy"]) == pytest.approx(float(client["accuracy"]), abs=1e-6)
    # The tables have six digits, so that means of them agree to five.
    means = [float(row["client_test_accuracy"]) for row in read_rows(run_dir / "metrics.csv")]
    assert means[-1] == pytest.approx(np.mean([float(row["accuracy"]) for row in clients]), abs=1e-5)
    run = api.load_run(str(run_dir))
    # Three dense layers, and four convolutions with one: weights and biases of each.
    assert len(run.load_model("client_0").weights) == 6 and len(run.load_model("client_1").weights) == 10
    assert run.predict(np.zeros((2, 8, 8)), "client_1").shape == (2, 10)


def test_a_clients_model_is_exported_as_good_as_the_run_says(run_dir):
    client = read_rows(run_dir / "clients.csv")[1]
    assert export.main([f"--run_dir={run_dir}", "--model=client_1", "--formats=float32,int8"]) == 0
    plain, quantized = read_rows(run_dir / "export" / "report.csv")
    assert float(plain["client_test_accuracy"]) == pytest.approx(float(client["accuracy"]), abs=1e-6)
    assert float(plain["top1_agreement"]) == 1 and int(plain["parameters"]) == 17194
    assert float(quantized["top1_agreement"]) > 0.9
