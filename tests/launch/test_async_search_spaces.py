"""The search spaces of asynchronous FL: methods that are compared have as many trials, on seeds of their own."""

import pathlib

import pytest

from launch.reports.async_periodic.claims import COMPARED_CASES, TUNED_KINDS
from launch.reports.async_periodic.measures import make_place, name_experiment
from launch.runs.run_records import EXPERIMENTS, TUNED_SUFFIX
from launch.tuning.grid_search import build_tasks, draw_trials
from launch.tuning.request import parse_request
from launch.tuning.search_space import parse_search

ROOT = pathlib.Path(__file__).parents[2]
SPACES = sorted(path.stem for path in (EXPERIMENTS / "async_periodic" / "tuning").glob("*.flags"))
NUM_TRIALS = 12


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


def read_request(stem):
    return parse_request([f"--flagfile=launch/experiments/async_periodic/tuning/{stem}.flags"])


def draw(stem):
    request = read_request(stem)
    return draw_trials(request.space, request.num_trials)


def read_choices(stem):
    """The choices by flag."""
    lines = (EXPERIMENTS / "async_periodic" / "tuning" / f"{stem}.flags").read_text().splitlines()
    (search,) = [line.removeprefix("--search=") for line in lines if line.startswith("--search=")]
    return parse_search(search)


def test_every_method_that_is_shown_tuned_has_its_space():
    tuned = {name_experiment(make_place(case, *place)) for case in COMPARED_CASES for place in TUNED_KINDS}
    assert {f"{stem}{TUNED_SUFFIX}" for stem in SPACES} == tuned


@pytest.mark.parametrize("stem", SPACES)
def test_a_space_can_be_run_and_has_as_many_trials_as_the_others(stem):
    """Reported seeds are 0 to 19. Nothing is held out in the experiments, so that each trial says what is."""
    request = read_request(stem)
    assert (request.num_trials, request.seeds) == (NUM_TRIALS, ("100", "101"))
    assert request.experiment.stem == stem and request.output == pathlib.Path(f"docs/results/tuning/{stem}.csv")
    assert request.objective == "validation_accuracy" and request.rounds is None
    tasks = build_tasks(request._replace(seeds=("100",)))
    assert len(tasks) == NUM_TRIALS and {task.config.validation_fraction for task in tasks.values()} == {0.1}


def test_what_all_methods_share_has_the_same_choices():
    rates = {
        tuple(choices) for stem in SPACES for name, choices in read_choices(stem).items() if "_learning" in name
        and "server" not in name
    }  # fmt: skip
    assert len(rates) == 1 and "0.01" in next(iter(rates)), "the printed one is among them"


@pytest.mark.parametrize("method", ["async_periodic", "fed_async", "buffered"])
def test_both_cases_of_a_method_have_the_same_trials(method):
    for stem in SPACES:
        if stem.startswith(method) and "_iid" in stem:
            assert draw(stem) == draw(stem.replace("_iid", "_shards"))
