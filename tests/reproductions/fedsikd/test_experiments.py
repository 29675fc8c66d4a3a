"""FedSiKD's experiments are what its paper prints, what its authors' code has, and what the trials chose.

The search spaces of FedSiKD's comparison: as many trials for all, on seeds of their own; the best is shown.
"""

import pathlib

import pytest
from experiment_flags import check_search, find_experiments, read_flags

from launch.runs.run_records import read_rows
from launch.settings.experiments import list_searches, list_trials, match_experiments
from launch.settings.run_config import find_algorithm, shared_fields
from launch.sweeps.tuning.scored_runs import build_tasks
from reproductions.engine.counted_runs import TUNED_SUFFIX
from reproductions.fedsikd.measures import BUDGET_ROUNDS, COMPARED_ALPHAS, NAMES

ROOT = pathlib.Path(__file__).parents[3]
ALGORITHMS = {"fedsikd": "FedSiKD", "random_cluster": "RandomCluster", "fl_hc": "FL+HC", "fedavg": "FedAvg"}
ALPHAS = ("0.1", "0.5", "1.0", "2.0")
ROUNDS = {"mnist": 70, "har": 50}
TUNED = [each for each in find_experiments("fedsikd") if "_tuned" in each.name or each.name.endswith("_control")]


def resolve(name):
    return read_flags(f"fedsikd/{name}")


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
    expected["privacy_accountant"] = "rdp" if epsilon else "pld"  # by which their noise was chosen
    assert resolve(f"fedsikd_mnist_alpha0.1_{statistics}_epsilon{suffix}") == expected


@pytest.mark.parametrize("dataset", ROUNDS)
def test_algorithms_of_a_column_share_data_and_student_training(dataset):
    of_algo = {algo: resolve(f"{algo}_{dataset}_alpha0.1") for algo in ALGORITHMS}
    shared = {field.name for field in shared_fields()} - {"algo"}
    student = {name for name in of_algo["fedsikd"] if name.startswith("student_")}
    assert len(shared) > 10 and {"student_epochs", "student_learning_rate", "student_optimizer"} < student
    for name in shared | student:
        plain = name.removeprefix("student_")
        assert len({str(values.get(name, values.get(plain))) for values in of_algo.values()}) == 1, name


@pytest.mark.parametrize("experiment", TUNED, ids=lambda each: each.name)
def test_tuned_settings_are_those_of_the_best_trial(experiment):
    """In the table that it names, of whose settings an ablation changes one."""
    [table] = {name for each in experiment.settings for name in list_trials(f"{each.source} {each.note}")}
    best = max(read_rows(ROOT / table), key=lambda trial: float(trial["mean"]))
    names = best.keys() & find_algorithm(experiment.flags["algo"]).names
    own = experiment.flags
    assert names <= own.keys()
    assert sum(own[name] != best[name] for name in names) == ("_tuned_" in experiment.name)
    assert any(f"({100 * float(best['mean']):.2f} %)" in each.source for each in experiment.settings)
    assert not experiment.name.endswith("_control") or own["cluster_sizes"] == "kmeans"


SPACES = [f"{algo}_mnist_alpha{alpha}" for algo in NAMES for alpha in COMPARED_ALPHAS]
CUT_OF_PRINTED = "fl_hc_mnist_printed"  # where FL+HC cuts with the paper's settings, which prints no distance
NUM_TRIALS = 8


def test_every_method_that_is_shown_tuned_has_its_space():
    spaces = {each.name for each in list_searches().values() if each.paper == "fedsikd"}
    assert spaces == {*SPACES, CUT_OF_PRINTED}
    shown = {each.name for each in match_experiments(f"fedsikd/*{TUNED_SUFFIX}")}
    assert shown == {f"{stem}{TUNED_SUFFIX}" for stem in SPACES}


@pytest.mark.parametrize("stem", SPACES)
def test_a_space_can_be_run_and_has_as_many_trials_as_the_others(stem, read_request):
    """Reported seeds are 10 to 19."""
    request = read_request("fedsikd", stem)
    check_search(request, stem, "validation_accuracy", BUDGET_ROUNDS, ("100", "101"))
    tasks = build_tasks(request._replace(seeds=("100",)))
    assert len(tasks) == request.num_trials == NUM_TRIALS
    assert all(task.config.validation_fraction > 0 for task in tasks.values())


def test_what_methods_share_has_the_same_choices(read_choices):
    """RandomCluster and FedSiKD all but how they cluster; the others what a student's training is."""
    whole = read_choices("fedsikd", "fedsikd_mnist_alpha0.1")
    names = {"epochs": "student_epochs", "learning_rate": "student_learning_rate", "client_weighting": "weighting"}
    own = {"fedsikd": {"statistics"}, "random_cluster": {"cluster_sizes"}}
    own["fl_hc"] = {"distance_multiple", "clustering_round"}
    for stem in SPACES:
        algo, choices = stem.partition("_mnist")[0], read_choices("fedsikd", stem)
        shared = choices.keys() - own.get(algo, set())
        assert {names.get(name, name): choices[name] for name in shared} == {
            name: whole[name]
            for name in (whole.keys() - {"statistics"} if algo in ("fedsikd", "random_cluster") else names.values())
        }


@pytest.mark.parametrize("stem", SPACES)
def test_what_was_known_before_is_in_no_grid(stem, read_choices):
    """Epochs and rate of the runs with the paper's settings, whose test accuracies had been seen."""
    values, choices = resolve(stem), read_choices("fedsikd", stem)
    for name in ("epochs", "learning_rate", "student_epochs", "student_learning_rate"):
        assert name not in choices or str(values[name]) not in choices[name]
