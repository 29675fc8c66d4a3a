"""The search spaces of FedSiKD's comparison: as many trials for all, on seeds of their own; the best is shown."""

import functools
import pathlib

import pytest

from launch.runs.run_records import resolve_experiment
from launch.settings.experiments import get_experiment, list_searches, match_experiments
from launch.settings.run_config import flag_values
from launch.sweeps.tuning.scored_runs import build_tasks
from reproductions.engine.counted_runs import TUNED_SUFFIX
from reproductions.fedsikd.measures import BUDGET_ROUNDS, COMPARED_ALPHAS, NAMES

SPACES = [f"{algo}_mnist_alpha{alpha}" for algo in NAMES for alpha in COMPARED_ALPHAS]
CUT_OF_PRINTED = "fl_hc_mnist_printed"  # where FL+HC cuts with the paper's settings, which prints no distance
NUM_TRIALS = 8


@pytest.fixture
def read_shared_choices(read_choices):
    """(stem) -> the choices by flag."""
    return functools.partial(read_choices, "fedsikd")


def test_every_method_that_is_shown_tuned_has_its_space():
    spaces = {each.name for each in list_searches().values() if each.paper == "fedsikd"}
    assert spaces == {*SPACES, CUT_OF_PRINTED}
    shown = {each.name for each in match_experiments(f"fedsikd/*{TUNED_SUFFIX}")}
    assert shown == {f"{stem}{TUNED_SUFFIX}" for stem in SPACES}


@pytest.mark.parametrize("stem", SPACES)
def test_a_space_can_be_run_and_has_as_many_trials_as_the_others(stem, read_request):
    """Reported seeds are 10 to 19."""
    request = read_request("fedsikd", stem)
    assert (request.num_trials, request.seeds, request.rounds) == (NUM_TRIALS, ("100", "101"), BUDGET_ROUNDS)
    assert request.experiment.name == stem and request.output == pathlib.Path(f"docs/results/tuning/{stem}.csv")
    assert request.objective == "validation_accuracy"
    tasks = build_tasks(request._replace(seeds=("100",)))
    assert len(tasks) == NUM_TRIALS and all(task.config.validation_fraction > 0 for task in tasks.values())


def test_what_methods_share_has_the_same_choices(read_shared_choices):
    """RandomCluster and FedSiKD all but how they cluster; the others what a student's training is."""
    whole = read_shared_choices("fedsikd_mnist_alpha0.1")
    names = {"epochs": "student_epochs", "learning_rate": "student_learning_rate", "client_weighting": "weighting"}
    own = {"fedsikd": {"statistics"}, "random_cluster": {"cluster_sizes"}}
    own["fl_hc"] = {"distance_multiple", "clustering_round"}
    for stem in SPACES:
        algo, choices = stem.partition("_mnist")[0], read_shared_choices(stem)
        shared = choices.keys() - own.get(algo, set())
        assert {names.get(name, name): choices[name] for name in shared} == {
            name: whole[name]
            for name in (whole.keys() - {"statistics"} if algo in ("fedsikd", "random_cluster") else names.values())
        }


@pytest.mark.parametrize("stem", SPACES)
def test_what_was_known_before_is_in_no_grid(stem, read_shared_choices):
    """Epochs and rate of the runs with the paper's settings, whose test accuracies had been seen."""
    values, choices = flag_values(resolve_experiment(get_experiment(stem))), read_shared_choices(stem)
    for name in ("epochs", "learning_rate", "student_epochs", "student_learning_rate"):
        assert name not in choices or str(values[name]) not in choices[name]
