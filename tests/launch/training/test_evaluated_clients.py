"""A whole run of which a sample of the clients is evaluated in rounds, and all of them at the end."""

import json

import numpy as np
import pytest

from launch import train
from launch.runs.run_records import read_rows
from launch.training.evaluation import choose_evaluated_clients
from launch.training.finished_run import read_finished_run

pytestmark = pytest.mark.usefixtures("no_plots")


NUM_CLIENTS, NUM_EVALUATED = 4, 2
FLAGS = (
    *("--algo=fedavg", "--model=perceptron", "--partition=iid", "--rounds=1", "--runtime=in_process", "--norun_page"),
    *(f"--num_clients={NUM_CLIENTS}", f"--evaluated_clients={NUM_EVALUATED}"),
)


def test_the_round_is_of_the_sample_and_the_end_of_all_clients(tmp_path):
    run_dir = tmp_path / "run"
    assert train.main([*FLAGS, f"--run_dir={run_dir}", f"--client_dir={tmp_path / 'shards'}"]) == 0
    accuracies = {row["client"]: float(row["accuracy"]) for row in read_rows(run_dir / "clients.csv")}
    sample = choose_evaluated_clients(read_finished_run(str(run_dir)).load_data(), NUM_EVALUATED, seed=0)
    of_sample = np.mean([accuracies[client.name] for client in sample])
    of_all = np.mean(list(accuracies.values()))
    assert len(accuracies) == NUM_CLIENTS and of_sample != pytest.approx(of_all, abs=1e-4)
    (metrics,) = read_rows(run_dir / "metrics.csv")
    assert float(metrics["client_test_accuracy"]) == pytest.approx(of_sample, abs=1e-5)
    summary = json.loads((run_dir / "summary.json").read_text())
    assert summary["final"]["client_test_accuracy"] == pytest.approx(of_all, abs=1e-5)
    assert summary["final"]["test_accuracy"] == float(metrics["test_accuracy"])
