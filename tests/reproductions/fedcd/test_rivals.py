"""FedCD beside IFCA and FedAvg with steps at the end, from runs with made-up numbers."""

import pathlib

import pytest

from launch.runs.run_records import RunRecord, read_rows
from launch.settings.experiments import get_experiment, list_trials
from reproductions.fedcd.rivals import PLACES, RIVALS, name_experiment, tabulate_rivals

ROOT = pathlib.Path(__file__).parents[3]
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
    assert len(RIVALS) == 8


@pytest.mark.parametrize("name", sorted(RIVALS))
def test_what_rivals_have_of_their_own_is_what_the_best_trial_had(name):
    experiment = get_experiment(f"fedcd/{name}")
    [table] = {found for each in experiment.settings for found in list_trials(each.source)}
    rows = read_rows(ROOT / table)
    assert len(rows) == 12
    if experiment.flags.get("final_steps") == "0":
        rows = [trial for trial in rows if trial["final_steps"] == "0"]
    best = max(rows, key=lambda trial: float(trial["mean"]))
    searched = best.keys() & experiment.flags.keys()
    assert len(searched) == len(best.keys() - {"trial", "mean"}) - 2  # and a column a seed
    assert {flag: experiment.flags[flag] for flag in searched} == {flag: best[flag] for flag in searched}
    assert any(f"({100 * float(best['mean']):.2f} %)" in each.source for each in experiment.settings)


def test_fedcd_stands_beside_each_by_seed():
    runs = make_runs("fedcd", "authors", 0.87) + make_runs(
        "ifca", "authors", 0.90, of_seed={0: 0.011, 1: 0.0, 2: -0.011}
    )
    runs += make_runs("fedavg", "authors", 0.5, of_seed={1: 0.0, 2: -0.2})
    rows = tabulate_rivals(runs).records
    assert [(row["algorithm"], row["seeds"], row["verdict on FedCD"]) for row in rows] == [
        ("FedCD", "3", ""),
        ("IFCA", "3", "behind"),
        ("FedAvg", "2", "undecided"),  # two seeds decide nothing
    ]
    # Differences -0.031, -0.03 and -0.029: the interval is 4.303 * 0.1 / sqrt(3) wide to each side.
    assert rows[1]["FedCD ahead (points)"] == "-3.00 [-3.25, -2.75]" and rows[0]["accuracy (%)"] == "87.00 ± 1.00"
    assert rows[1]["verdict on FedCD + fine-tuning"] == rows[1]["FedCD + fine-tuning ahead (points)"] == ""


def test_fedcd_with_steps_at_the_end_stands_beside_each_too():
    runs = make_runs("fedcd", "authors", 0.87) + make_runs("fedcd_fine_tuned", "authors", 0.95)
    rows = tabulate_rivals(runs + make_runs("ifca", "authors", 0.9, of_seed={0: 0.011, 1: 0.0, 2: -0.011})).records
    shown = [(row["algorithm"], row["verdict on FedCD"], row["verdict on FedCD + fine-tuning"]) for row in rows]
    assert shown == [("FedCD", "", ""), ("FedCD + fine-tuning", "", ""), ("IFCA", "behind", "ahead")]
    assert rows[2]["FedCD + fine-tuning ahead (points)"] == "+5.00 [+4.75, +5.25]"


@pytest.mark.parametrize(
    "runs",
    [
        make_runs("fedcd", "authors", 0.87) + make_runs("fedavg", "authors", 0.5),
        make_runs("fedcd", "authors", 0.87) + make_runs("ifca", "authors", 0.9, rounds=61),  # not at its end
        make_runs("fedcd", "authors", 0.87) + make_runs("ifca", "authors", 0.9, dataset="cifar10 subset"),
        make_runs("fedcd", "authors", 0.87) + make_runs("fedcd_fine_tuned", "authors", 0.9),
        make_runs("ifca", "authors", 0.9),
        [],
    ],
)
def test_without_fedcd_and_a_rival_there_is_no_row(runs):
    assert not tabulate_rivals(runs).rows
