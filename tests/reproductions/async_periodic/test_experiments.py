"""The experiments of asynchronous FL train as the paper prints, with what stands beside it on an equal footing.

The search spaces of asynchronous FL: methods that are compared have as many trials, on seeds of their own.
"""

import pytest
from experiment_flags import check_search, read_flags

from launch.runs.run_records import resolve_experiment
from launch.settings.experiments import get_experiment, list_searches
from launch.settings.run_config import shared_fields
from launch.sweeps.tuning.scored_runs import build_tasks, compute_grid_size
from launch.sweeps.tuning.trials import Outcome, State, write_best_flagfile
from reproductions.async_periodic.tables import PLACES, TIME_BUDGET
from reproductions.engine.collection import read_toml
from reproductions.engine.counted_runs import TUNED_SUFFIX

WEIGHTINGS = {"equal": ("equal", 1.0), "fresh": ("age_aware", 0.5), "old": ("age_aware", 2.0)}
CASES = ("iid", "shards")


def resolve(name):
    return read_flags(f"async_periodic/{name}")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("policy", ["random", "significance", "frequency"])
def test_runs_of_a_figure_differ_in_data_policy_weights_and_waiting_alone(case, policy):
    first = resolve("async_periodic_mnist_iid_random_equal")
    assert (first["num_clients"], first["rounds"], first["max_scheduled"]) == (100, 40, 30)
    assert (first["waiting"], first["period_fraction"]) == ("periodic", 0.25)
    shared = first | {"partition": case, "scheduling": policy}
    for kind, (weighting, gamma) in WEIGHTINGS.items():
        expected = shared | {"weighting": weighting, "gamma": gamma}
        assert resolve(f"async_periodic_mnist_{case}_{policy}_{kind}") == expected
    expected = shared | {"waiting": "synchronous"}
    assert resolve(f"async_periodic_mnist_{case}_{policy}_synchronous") == expected
    expected |= {"proximal_weight": 0.0}  # section II-A, where Eq. (8) is not in the loss
    assert resolve(f"async_periodic_mnist_{case}_{policy}_synchronous_plain") == expected


def test_the_learning_rates_are_the_printed_ones():
    config = resolve_experiment(get_experiment("async_periodic_mnist_iid_random_equal"))
    rates = [config.algorithm.training.round_learning_rate(index) for index in (1, 20, 21, 40)]
    assert rates == [0.01, 0.01, 0.005, 0.005]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("algo", ["fed_async", "buffered"])
def test_servers_that_never_wait_train_as_the_periodic_one(algo, case):
    periodic, other = resolve(f"async_periodic_mnist_{case}_random_equal"), resolve(f"{algo}_mnist_{case}")
    shared = {field.name for field in shared_fields()} - {"algo", "rounds"}
    assert {name for name in shared if periodic[name] != other[name]} == set()
    for name in ("steps", "optimizer", "learning_rate", "learning_rate_decay", "proximal_weight", "speed"):
        assert other[name] == periodic[name], name


SPACES = [each.name for each in list_searches().values() if each.paper == "async_periodic"]
NUM_TRIALS = 20
LEGEND = read_toml("async_periodic", "tables.toml")["legend"]
HELD_OUT = "validation_fraction"


def test_every_method_that_is_shown_tuned_has_its_space():
    tuned = {experiment for experiment, place in PLACES.items() if place.algo.endswith(TUNED_SUFFIX)}
    assert {f"{stem}{TUNED_SUFFIX}" for stem in SPACES} == tuned


@pytest.mark.parametrize("stem", SPACES)
def test_a_space_can_be_run_and_all_points_of_its_grid_are_tried(stem, read_request):
    """Reported seeds are 0 to 19. Nothing is held out in the experiments, so that each trial says what is.

    FedAvg is scored where it is compared: its round takes T_max, a period of the others a quarter of it. All points are
    tried, so that no draw favours a method, and the report can say so.
    """
    request = read_request("async_periodic", stem)
    check_search(request, stem, "validation_accuracy", TIME_BUDGET if stem.endswith("_synchronous") else None)
    tasks = build_tasks(request._replace(seeds=("100",)))
    assert len(tasks) == request.num_trials == compute_grid_size(request.space) == NUM_TRIALS
    assert {task.config.validation_fraction for task in tasks.values()} == {0.1}


def test_what_all_methods_share_has_the_same_choices(read_choices):
    """The printed rate is among them."""
    rates = {tuple(read_choices("async_periodic", stem)["learning_rate"]) for stem in SPACES}
    assert len(rates) == 1 and "0.01" in next(iter(rates))


def test_the_report_says_that_all_points_are_tried():
    legend = " ".join(LEGEND.split())
    assert "twenty trials, which are all points of a grid: the same five learning rates" in legend


@pytest.mark.parametrize(
    ("stem", "words", "numbers"),
    [
        ("async_periodic_mnist_shards_random_fresh", "of periodic aggregation, four values of gamma", [4, 5]),
        ("async_periodic_mnist_shards_random_synchronous", "with and without Eq. (8) and two decays", [2, 2, 5]),
        ("fed_async_mnist_shards", "of FedAsync, four mixing weights", [4, 5]),
        ("buffered_mnist_shards", "of FedBuff, four learning rates of the server", [4, 5]),
    ],
)
def test_the_report_says_what_was_searched(stem, words, numbers, read_request, drop_quicker):
    space = drop_quicker(read_request("async_periodic", stem).space)
    assert sorted(len(choices) for name, choices in space.items() if name != HELD_OUT) == numbers
    assert words in " ".join(LEGEND.split())


@pytest.mark.parametrize("stem", SPACES)
def test_tuned_runs_hold_no_examples_out(stem, tmp_path, read_request, list_unsearched_changes):
    """The trials do, so that the search gives the flag, too."""
    request = read_request("async_periodic", stem)
    request = request._replace(space={name: request.space[name] for name in request.space if name != HELD_OUT})
    made = tmp_path / "best.flags"
    settings = {name: choices[0] for name, choices in request.space.items()} | {HELD_OUT: "0.1"}
    write_best_flagfile(made, request, Outcome(1, settings, State.COMPLETE, {"100": 0.8}), None, "one trial")
    assert list_unsearched_changes(f"--flagfile={made}", request) == [HELD_OUT]
    made.write_text(made.read_text().replace(f"--{HELD_OUT}=0.1", f"--{HELD_OUT}=0"))
    assert list_unsearched_changes(f"--flagfile={made}", request) == []


@pytest.mark.parametrize("stem", SPACES)
def test_the_best_of_the_kept_trials_is_shown(
    stem, read_request, find_best_trial, has_settings, drop_quicker, list_unsearched_changes
):
    request = read_request("async_periodic", stem)
    (best, score), tuned = find_best_trial(request), get_experiment(f"{stem}{TUNED_SUFFIX}")
    settings = {name: value for name, value in drop_quicker(best).items() if name != HELD_OUT}
    assert has_settings(tuned.flags, settings)
    assert any(f"({100 * score:.2f} %)" in each.source for each in tuned.settings)
    searched = {name: request.space[name] for name in settings}
    argument = f"--experiment={tuned.full_name}"
    assert list_unsearched_changes(argument, request._replace(space=searched)) == []
