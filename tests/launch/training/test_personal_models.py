"""A client's personal model leaves the run under the client's name, as good as the run says."""

import json

import pytest

from launch import export, train
from launch.runs.run_records import read_rows

pytestmark = pytest.mark.usefixtures("no_plots", "convert_here")
PERSONAL_FLAGS = (
    *("--algo=fine_tuning", "--dataset=digits", "--partition=iid", "--num_clients=3", "--rounds=1"),
    *("--model=perceptron", "--runtime=in_process", "--local_epochs=1", "--steps=20"),
    "--norun_page",
)


@pytest.fixture(scope="module")
def personal_run(tmp_path_factory):
    """A round of Fine-Tuning on digits, after which every client has a personal model."""
    folder = tmp_path_factory.mktemp("personal")
    assert train.main([*PERSONAL_FLAGS, f"--run_dir={folder / 'run'}", f"--client_dir={folder / 'clients'}"]) == 0
    return folder / "run"


def test_the_exported_model_is_the_clients_own(personal_run, capsys):
    client = read_rows(personal_run / "clients.csv")[1]
    assert export.main([f"--run_dir={personal_run}", f"--model={client['client']}", "--formats=float32"]) == 0
    [row] = read_rows(personal_run / "export" / "report.csv")
    assert {"test_accuracy", "keras_test_accuracy", "top1_agreement"} <= row.keys()
    assert float(row["client_test_accuracy"]) == pytest.approx(float(client["accuracy"]), abs=1e-6)
    assert float(row["top1_agreement"]) == 1
    assert (
        json.loads((personal_run / "export" / f"{client['client']}.float32.json").read_text())["source_model"]
        == "global"
    )


def test_a_run_whose_checkpoints_ended_early_is_one_line(personal_run, capsys):
    summary = json.loads((personal_run / "summary.json").read_text())
    (personal_run / "checksums.sha256").unlink()
    (personal_run / "summary.json").write_text(json.dumps({**summary, "rounds": 7}))
    name = read_rows(personal_run / "clients.csv")[0]["client"]
    assert export.main([f"--run_dir={personal_run}", f"--model={name}"]) == 2
    assert "its last checkpoint is of round 1, not 7" in capsys.readouterr().err.strip().splitlines()[-1]
    (personal_run / "summary.json").write_text(json.dumps(summary))
