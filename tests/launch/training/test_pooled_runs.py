"""--algo=pooled on data of all kinds: it learns, goes on to the byte, and has no live or private form."""

import json

import numpy as np
import pytest

from launch import export, serve, train
from launch.runs.run_records import read_rows

pytestmark = pytest.mark.usefixtures("no_plots", "convert_here")
POOLED = ("--algo=pooled", "--epochs=1", "--norun_page")


@pytest.fixture
def run(tmp_path):
    """(name of its folder, flags) -> the folder of a run of pooled data."""

    def make(name, *flags):
        path = tmp_path / name
        assert train.main([*flags, f"--run_dir={path}", f"--client_dir={tmp_path / 'clients'}"]) == 0
        return path

    return make


def test_it_goes_on_to_the_byte_and_its_model_can_leave(run):
    digits = (*POOLED, "--dataset=digits", "--num_clients=4", "--model=perceptron", "--new_clients=1")
    whole = run("whole", *digits, "--rounds=3")
    stopped = run("stopped", *digits, "--rounds=1")
    run("stopped", "--resume", "--rounds=3")
    for file in ("metrics.csv", "clients.csv"):
        assert (whole / file).read_bytes() == (stopped / file).read_bytes()
    rows = read_rows(whole / "metrics.csv")
    members = [row for row in read_rows(whole / "clients.csv") if row["took_part"] == "1"]
    # Of an image 64 bytes, and 4 of its label.
    num_bytes = 68 * sum(int(row["num_train"]) for row in members)
    assert [int(row["bytes_up"]) for row in rows] == [num_bytes, 0, 0]
    assert all(row["bytes_down"] == "0" for row in rows) and float(rows[-1]["test_accuracy"]) > 0.85
    summary = json.loads((whole / "summary.json").read_text())
    assert summary["new_clients"]["accuracy_mean"] > 0.8 and summary["is_personal"] is False
    assert export.main([f"--run_dir={whole}", "--formats=float32"]) == 0
    assert (whole / "export" / "global.float32.tflite").exists()


def write_table(path):
    """150 rows of 5 clients whose target is 2 a - b, with weights."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 150))
    rows = [f"{i % 5},{a[i]:.4f},{b[i]:.4f},{1 + i % 2},{2 * a[i] - b[i]:.4f}" for i in range(150)]
    path.write_text("\n".join(["client,a,b,importance,target", *rows]) + "\n")


def test_regression_with_weights_of_examples(run, tmp_path):
    write_table(tmp_path / "table.csv")
    table = ("--label_column=target", "--task=regression", "--client_column=client", "--weight_column=importance")
    path = run("table", *POOLED, f"--data={tmp_path / 'table.csv'}", *table, "--rounds=10", "--learning_rate=0.02")
    rows = read_rows(path / "metrics.csv")
    assert float(rows[-1]["test_r2"]) > 0.9
    trained = sum(int(row["num_train"]) for row in read_rows(path / "clients.csv"))
    # Two features, the target and the weight, 4 bytes each.
    assert int(rows[0]["bytes_up"]) == 16 * trained


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(("--dataset=digits", "--quantize=qat", "--qat_start_round=2"), marks=pytest.mark.slow),
        pytest.param(("--dataset=shakespeare",), marks=pytest.mark.slow),
        ("--dataset=digits", "--final_steps=2", "--augment=crop_flip"),
    ],
)
def test_other_kinds_of_data_and_models(run, flags):
    path = run("smoke", *POOLED, "--smoke", *flags)
    rows = read_rows(path / "metrics.csv")
    assert len(rows) == 2 and float(rows[1]["train_loss"]) > 0


@pytest.mark.parametrize(
    ("command", "flag", "line"),
    [
        (serve, "--rounds=1", "error: --algo=pooled: expected one whose clients can be asked over a network"),
        (train, "--dp_epsilon=2", "error: --dp_epsilon: belongs to --algo="),
        (train, "--compression_bits=8", "error: --compression_bits: belongs to --algo="),
        (train, "--cohort_size=2", "error: --cohort_size: belongs to --algo="),
    ],
)
def test_what_makes_no_sense_is_refused(capsys, tmp_path, command, flag, line):
    assert command.main(["--algo=pooled", "--dataset=digits", flag, f"--run_dir={tmp_path / 'run'}"]) == 2
    assert capsys.readouterr().err.strip().splitlines()[-1].startswith(line)
