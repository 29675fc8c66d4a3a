"""A whole run of which a sample of the clients is evaluated in rounds, and all of them at the end."""

import csv
import json

import pytest

from launch import train

pytestmark = pytest.mark.usefixtures("no_plots")


@pytest.fixture(scope="module")
def run_dirs(tmp_path_factory):
    """One round with all four clients evaluated, and the same with two of them."""
    folder = tmp_path_factory.mktemp("runs")
    shared = ["--algo=fedavg", "--num_clients=4", "--partition=iid", "--rounds=1", "--runtime=in_process"]
    for most in ("0", "2"):
        places = [f"--run_dir={folder / most}", f"--client_dir={folder / 'shards'}"]
        assert train.main([*shared, f"--evaluated_clients={most}", *places]) == 0
    return folder / "0", folder / "2"


def read(run_dir):
    with open(run_dir / "metrics.csv", newline="") as file:
        (metrics,) = csv.DictReader(file)
    return metrics, json.loads((run_dir / "summary.json").read_text()), (run_dir / "clients.csv").read_text()


def test_only_the_columns_on_own_splits_are_of_the_sample(run_dirs):
    (every, _, _), (some, _, _) = map(read, run_dirs)
    differing = {name for name in every if every[name] != some[name]}
    own = {"client_test_accuracy", "client_validation_accuracy", "validation_accuracy"}
    assert differing and differing <= own


def test_the_end_is_of_all_clients_either_way(run_dirs):
    (_, every, clients), (_, some, same_clients) = map(read, run_dirs)
    assert clients == same_clients and every["clients"] == some["clients"]
    assert some["final"]["client_test_accuracy"] == pytest.approx(every["final"]["client_test_accuracy"])
