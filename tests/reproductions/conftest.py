"""What the papers' search spaces are read with."""

import pathlib

import pytest

from launch.runs.run_records import read_rows
from launch.settings.experiments import get_search
from launch.settings.flags import parse_config
from launch.settings.run_config import flag_values
from launch.sweeps.tuning.request import parse_request
from launch.sweeps.tuning.search_space import parse_search
from launch.sweeps.tuning.trials import MEAN

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture
def read_request():
    """(paper, stem) -> what its search asks for."""
    return lambda paper, stem: parse_request([f"--search={paper}/{stem}"])


@pytest.fixture
def read_choices():
    """(paper, stem) -> the choices by flag, as they are written."""

    return lambda paper, stem: parse_search(get_search(f"{paper}/{stem}").flags["search"])


@pytest.fixture
def find_best_trial():
    """(request, **given) -> (settings of the best kept trial as text, its score); None where no trial has been run.

    Of the trials that have the settings given.
    """

    def find(request, **given):
        if not request.output.exists():
            return None
        trials = read_rows(request.output)
        assert [trial["trial"] for trial in trials] == [str(number + 1) for number in range(request.num_trials)]
        trials = [trial for trial in trials if all(trial[name] == value for name, value in given.items())]
        best = max(trials, key=lambda trial: float(trial[MEAN]))
        return {name: best[name] for name in best if name in request.space}, float(best[MEAN])

    return find


@pytest.fixture
def drop_quicker():
    """(settings or choices by flag) -> those without what a search gives to be quicker, which reported runs have not.

    Where it computes, how often it evaluates, and whether accuracy is measured after every few steps of fine-tuning.
    """

    def is_quicker(name):
        return name in ("runtime", "rounds_per_evaluation") or name in ("curve", "fine_tuning_curve")

    return lambda settings: {name: settings[name] for name in settings if not is_quicker(name)}


@pytest.fixture
def has_settings():
    """(flags, settings as text) -> whether they have each of them, of which there are some, with the same value."""

    def check(flags, settings):
        return bool(settings) and all(
            name in flags and read_value(flags[name]) == read_value(settings[name]) for name in settings
        )

    return check


@pytest.fixture
def list_unsearched_changes():
    """(argument, request) -> the flags by which what it stands for differs from the search's experiment unsearched."""

    def find(argument, request):
        values, own = flag_values(parse_config([argument])), flag_values(request.experiment.resolve())
        return [name for name in own if values[name] != own[name] and name not in request.space]

    return find


def read_value(cell):
    try:
        return float(cell)
    except ValueError:
        return cell
