"""A run that an earlier version made and kept, with a checkpoint of TFF's kind, is exported and resumed.

`data/saved_model_checkpoint/run` has two rounds of AMFL-P on three clients with digits; its plots, logs and older
checkpoint are left out, and its folder of shards is not named. `metrics_of_3_rounds.csv` is of the same run, made
straight through three rounds by the same version.
"""

import csv
import json
import pathlib
import shutil

import pytest

from launch import export, train

KEPT = pathlib.Path(__file__).parents[1] / "data" / "saved_model_checkpoint"


@pytest.fixture(scope="module")
def earlier_run(tmp_path_factory):
    """A copy of the run, whose clients' shards go to a temporary folder."""
    folder = tmp_path_factory.mktemp("earlier")
    shutil.copytree(KEPT / "run", folder / "run")
    config = json.loads((folder / "run" / "config.json").read_text())
    config["flags"]["shard_dir"] = str(folder / "shards")
    (folder / "run" / "config.json").write_text(json.dumps(config))
    return folder / "run"


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def export_personal_model(run_dir, client):
    """The client's test accuracy with its personal model: of the exported file, and as the run said it at its end."""
    assert export.main([f"--run_dir={run_dir}", f"--model={client}", "--formats=float32"]) == 0
    [row] = read_rows(run_dir / "export" / "report.csv")
    assert row["model"] == client
    assert json.loads((run_dir / "export" / f"{client}.float32.json").read_text())["source_model"] == "global"
    [said] = [each["accuracy"] for each in read_rows(run_dir / "clients.csv") if each["client"] == client]
    return float(row["client_test_accuracy"]), float(said)


def test_it_is_exported_and_goes_on_as_if_it_had_never_stopped(earlier_run):
    # Processors differ in the last bits of a float32, hence a tolerance: an example of the 40 may change sides.
    exported, said = export_personal_model(earlier_run, "client_2")
    assert exported == pytest.approx(said, abs=0.05)

    assert train.main(["--resume", "--rounds=3", f"--run_dir={earlier_run}"]) == 0
    rows, straight = read_rows(earlier_run / "metrics.csv"), read_rows(KEPT / "metrics_of_3_rounds.csv")
    assert list(rows[0]) == list(straight[0]) and len(rows) == len(straight) == 3
    assert rows[:2] == straight[:2], "what was done is not done again"
    for name, cell in straight[2].items():
        tolerance = {"abs": 0.05} if "accuracy" in name else {"rel": 1e-3}
        assert float(rows[2][name]) == pytest.approx(float(cell), **tolerance), name

    names = {path.name for path in (earlier_run / "checkpoints").iterdir()}
    assert names == {"program_state_2", "round_3.npz"}, "the former kind is read, never written"
    exported, said = export_personal_model(earlier_run, "client_2")
    assert exported == pytest.approx(said, abs=1e-6)
