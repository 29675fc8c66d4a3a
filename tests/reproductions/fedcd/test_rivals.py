"""FedCD beside IFCA and FedAvg with steps at the end, from runs with made-up numbers."""

import pytest

from launch.runs.run_records import RunRecord
from launch.settings.experiments import get_experiment
from reproductions.fedcd.rivals import PLACES, RIVALS, name_experiment, tabulate_rivals

NOISE = {0: 0.01, 1: 0.0, 2: -0.01}


def make_runs(method, size, mean, rounds=60, of_seed=NOISE, dataset="cifar10"):
    name = name_experiment(method, size)
    return [
        RunRecord(
            *(None, {"seed": seed, "rounds": rounds}, name, {60: {"round": 60, "client_test_accuracy": mean + noise}}),
            dataset,
        )
        for seed, noise in of_seed.items()
    ]


def test_names_are_those_of_experiments():
    assert {get_experiment(f"fedcd/{name}").flags["algo"] for name in PLACES} == {"fedavg", "fedcd", "ifca"}
    assert name_experiment("fedavg_fine_tuned", "authors") == "fedavg_cifar10_hierarchical_authors_fine_tuned"
    assert len(RIVALS) == 4 and get_experiment("fedcd/ifca_cifar10_hierarchical_authors").flags["num_models"] == "2"


def test_fedcd_stands_beside_each_by_seed():
    runs = make_runs("fedcd", "authors", 0.87) + make_runs(
        "ifca", "authors", 0.90, of_seed={0: 0.011, 1: 0.0, 2: -0.011}
    )
    runs += make_runs("fedavg", "authors", 0.5, of_seed={1: 0.0, 2: -0.2})
    rows = tabulate_rivals(runs).records
    assert [(row["algorithm"], row["seeds"], row["verdict"]) for row in rows] == [
        ("FedCD", "3", ""),
        ("IFCA", "3", "behind"),
        ("FedAvg", "2", "undecided"),  # two seeds decide nothing
    ]
    # Differences -0.031, -0.03 and -0.029: the interval is 4.303 * 0.1 / sqrt(3) wide to each side.
    assert rows[1]["FedCD ahead (points)"] == "-3.00 [-3.25, -2.75]" and rows[0]["accuracy (%)"] == "87.00 ± 1.00"


@pytest.mark.parametrize(
    "runs",
    [
        make_runs("fedcd", "authors", 0.87) + make_runs("fedavg", "authors", 0.5),
        make_runs("fedcd", "authors", 0.87) + make_runs("ifca", "authors", 0.9, rounds=61),  # not at its end
        make_runs("fedcd", "authors", 0.87) + make_runs("ifca", "authors", 0.9, dataset="cifar10 subset"),
        make_runs("ifca", "authors", 0.9),
        [],
    ],
)
def test_without_fedcd_and_a_rival_there_is_no_row(runs):
    assert not tabulate_rivals(runs).rows
