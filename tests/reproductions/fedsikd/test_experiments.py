"""FedSiKD's experiments are what its paper prints, what its authors' code has, and what the trials chose."""

import csv
import pathlib

import pytest

from launch.runs.run_records import resolve_experiment
from launch.settings.experiments import get_experiment, list_experiments, list_trials
from launch.settings.run_config import find_algorithm, flag_values, shared_fields

ROOT = pathlib.Path(__file__).parents[3]
PRINTED = ROOT / "reproductions" / "fedsikd" / "printed.csv"
ALGORITHMS = {"fedsikd": "FedSiKD", "random_cluster": "RandomCluster", "fl_hc": "FL+HC", "fedavg": "FedAvg"}
ALPHAS = ("0.1", "0.5", "1.0", "2.0")
ROUNDS = {"mnist": 70, "har": 50}
EPOCHS = {"mnist": (6, 10), "har": (3, 7)}  # student, teacher
CELLS = [(algo, dataset, alpha) for algo in ALGORITHMS for dataset in ROUNDS for alpha in ALPHAS]
TUNED = [
    each
    for each in list_experiments().values()
    if each.paper == "fedsikd" and ("_tuned" in each.name or each.name.endswith("_control"))
]


def resolve(name):
    return flag_values(resolve_experiment(get_experiment(f"fedsikd/{name}")))


def expected_own_flags(algo, dataset):
    """What an experiment must set besides the shared flags."""
    student, teacher = EPOCHS[dataset]
    if algo in ("fedavg", "fl_hc"):
        values = {"epochs": student, "optimizer": "adam", "learning_rate": 1e-3, "client_weighting": "examples"}
        return values | ({"clustering_round": 1, "distance_multiple": 1.2} if algo == "fl_hc" else {})
    training = {"optimizer": "adam", "learning_rate": 1e-3}
    return (
        {f"student_{name}": value for name, value in {"epochs": student, **training}.items()}
        | {f"teacher_{name}": value for name, value in {"epochs": teacher, **training}.items()}
        | {"num_clusters": 4, "teacher": "leader", "label_weight": 0.5, "temperature": 3.0, "weighting": "equal"}
        | {"statistics": "scalar"}
        | ({"cluster_sizes": "kmeans"} if algo == "random_cluster" else {"distillation_inputs": "logits"})
    )


def test_a_cell_asks_for_what_the_paper_prints_and_we_chose():
    for algo, dataset, alpha in CELLS:
        shared = {
            "algo": algo,
            "dataset": dataset,
            "num_clients": 40,
            "partition": "dirichlet",
            "dirichlet_alpha": float(alpha),
            "batch_size": 64,
            "rounds": ROUNDS[dataset],
            "har_features": "statistics",
        }
        own = expected_own_flags(algo, dataset)
        values = resolve(f"{algo}_{dataset}_alpha{alpha}")
        assert {name: values[name] for name in (shared | own)} == shared | own


def test_the_printed_values_are_those_of_the_printed_tables():
    printed = {}
    with open(PRINTED, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            place = row["algorithm"], row["dataset"], row["dirichlet_alpha"]
            printed[(*place, int(row["round"]), row["metric"])] = float(row["value"])
    for algo, dataset, alpha in CELLS:
        place, last = (ALGORITHMS[algo], dataset, alpha), ROUNDS[dataset]
        loss = [printed[(*place, number, "test_loss")] for number in (1, last)]
        assert get_experiment(f"{algo}_{dataset}_alpha{alpha}").printed == (
            f"test accuracy {100 * printed[(*place, 5, 'test_accuracy')]:.2f} % at round 5; "
            f"test loss {loss[0]:.2f} at round 1 and {loss[1]:.2f} at round {last}."
        )


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_values_of_the_authors_code_differ_in_the_distillation_alone(alpha):
    printed, theirs = (resolve(f"fedsikd_mnist_alpha{alpha}{suffix}") for suffix in ("", "_authors"))
    distillation = {"label_weight": 0.1, "temperature": 3.0, "distillation_inputs": "probabilities"}
    assert theirs == printed | distillation


@pytest.mark.parametrize("statistics", ["scalar", "per_feature"])
@pytest.mark.parametrize(("suffix", "epsilon"), [("1", 1.0), ("2", 2.0), ("4", 4.0), ("8", 8.0), ("_none", 0.0)])
def test_a_run_with_an_epsilon_is_the_cell_but_for_statistics_weights_and_rounds(statistics, suffix, epsilon):
    expected = resolve("fedsikd_mnist_alpha0.1") | {"rounds": 5, "statistics": statistics}
    expected |= {"weighting": "examples", "privacy_epsilon": epsilon, "privacy_delta": 1e-5}
    assert resolve(f"fedsikd_mnist_alpha0.1_{statistics}_epsilon{suffix}") == expected


@pytest.mark.parametrize("dataset", ROUNDS)
def test_algorithms_of_a_column_share_data_and_student_training(dataset):
    of_algo = {algo: resolve(f"{algo}_{dataset}_alpha0.1") for algo in ALGORITHMS}
    shared = {field.name for field in shared_fields()} - {"algo"}
    assert len(shared) > 10
    for name in shared:
        assert len({str(values[name]) for values in of_algo.values()}) == 1, name
    student = {name.removeprefix("student_") for name in of_algo["fedsikd"] if name.startswith("student_")}
    assert {"epochs", "learning_rate", "optimizer"} < student
    for name in student:
        values = {values.get(f"student_{name}", values.get(name)) for values in of_algo.values()}
        assert len(values) == 1, name


def find_best_trial(experiment):
    """The settings of the best trial in the table that an experiment names."""
    [table] = {name for each in experiment.settings for name in list_trials(f"{each.source} {each.note}")}
    with open(ROOT / table, newline="", encoding="utf-8") as file:
        trials = list(csv.DictReader(file))
    best = max(trials, key=lambda trial: float(trial["mean"]))
    names = find_algorithm(experiment.flags["algo"]).names
    return {name: value for name, value in best.items() if name in names}


@pytest.mark.parametrize("experiment", TUNED, ids=lambda each: each.name)
def test_tuned_settings_are_those_of_the_best_trial(experiment):
    own, best = experiment.flags, find_best_trial(experiment)
    given = {name: own[name] for name in best if name in own}
    differing = [name for name, value in given.items() if value != best[name]]
    assert len(differing) == ("_tuned_" in experiment.name), differing  # an ablation changes one setting
    assert given.keys() == best.keys()
    if experiment.name.endswith("_control"):
        assert own["cluster_sizes"] == "kmeans"
