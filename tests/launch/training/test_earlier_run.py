"""A run of an earlier version (see `conftest`) goes on and gives its personal models from its checkpoint of then."""

import csv

import pytest

from launch import export


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_it_goes_on_as_if_it_had_never_stopped(resumed_run, straight_metrics):
    rows, straight = read_rows(resumed_run / "metrics.csv"), read_rows(straight_metrics)
    added = {name: [row.pop(name) for row in rows] for name in set(rows[0]) - set(straight[0])}
    assert list(rows[0]) == list(straight[0]) and len(rows) == len(straight) == 3
    assert rows[:2] == straight[:2], "what was done is not done again"
    assert set(added) == {"validation_accuracy", "energy_examples"}
    assert all(cells[:2] == ["", ""] for cells in added.values())
    assert 0 < float(added["validation_accuracy"][2]) < 1, "a column of today, from the round that is done today"
    for name, cell in straight[2].items():
        # Processors differ in the last bits of a float32; an example or two of a client's 40 may change sides.
        tolerance = {"abs": 0.05} if "accuracy" in name else {"rel": 1e-3}
        assert float(rows[2][name]) == pytest.approx(float(cell), **tolerance), name


def test_checkpoints_of_then_are_read_and_never_written(resumed_run):
    assert {path.name for path in (resumed_run / "checkpoints").iterdir()} == {"program_state_2", "round_3.npz"}


@pytest.mark.slow
def test_its_personal_models_are_exported_from_its_own_checkpoint(copy_earlier_run):
    run_dir = copy_earlier_run()
    assert export.main([f"--run_dir={run_dir}", "--model=client_2", "--formats=float32"]) == 0
    [row] = read_rows(run_dir / "export" / "report.csv")
    [said] = [client["accuracy"] for client in read_rows(run_dir / "clients.csv") if client["client"] == "client_2"]
    assert row["model"] == "client_2"
    assert float(row["client_test_accuracy"]) == pytest.approx(float(said), abs=0.05)
    assert {path.name for path in (run_dir / "checkpoints").iterdir()} == {"program_state_2"}
