"""The search spaces of asynchronous FL: methods that are compared have as many trials, on seeds of their own."""

import pathlib
import re

import pytest

from launch.reports.async_periodic.claims import TIME_BUDGET, TUNED_CASES, TUNED_KINDS
from launch.reports.async_periodic.measures import make_place, name_experiment
from launch.reports.async_periodic.report import LEGEND
from launch.runs.run_records import EXPERIMENTS, TUNED_SUFFIX, find_flagfile, resolve_flagfile
from launch.settings.run_config import flag_values
from launch.tuning.best_flagfile import write_best_flagfile
from launch.tuning.grid_search import build_tasks, compute_grid_size
from launch.tuning.request import parse_request
from launch.tuning.search_space import parse_search
from launch.tuning.trials import Outcome, State

ROOT = pathlib.Path(__file__).parents[2]
SPACES = sorted(path.stem for path in (EXPERIMENTS / "async_periodic" / "tuning").glob("*.flags"))
NUM_TRIALS = 12


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


def read_request(stem):
    return parse_request([f"--flagfile=launch/experiments/async_periodic/tuning/{stem}.flags"])


def read_choices(stem):
    """The choices by flag."""
    lines = (EXPERIMENTS / "async_periodic" / "tuning" / f"{stem}.flags").read_text().splitlines()
    (search,) = [line.removeprefix("--search=") for line in lines if line.startswith("--search=")]
    return parse_search(search)


def test_every_method_that_is_shown_tuned_has_its_space():
    tuned = {name_experiment(make_place(case, *place)) for case in TUNED_CASES for place in TUNED_KINDS}
    assert {f"{stem}{TUNED_SUFFIX}" for stem in SPACES} == tuned


@pytest.mark.parametrize("stem", SPACES)
def test_a_space_can_be_run_and_has_as_many_trials_as_the_others(stem):
    """Reported seeds are 0 to 19. Nothing is held out in the experiments, so that each trial says what is."""
    request = read_request(stem)
    assert (request.num_trials, request.seeds) == (NUM_TRIALS, ("100", "101", "102", "103", "104"))
    assert request.experiment.stem == stem and request.output == pathlib.Path(f"docs/results/tuning/{stem}.csv")
    assert request.objective == "validation_accuracy"
    # FedAvg is scored where it is compared: its round takes T_max, a period of the others a quarter of it.
    assert request.rounds == (TIME_BUDGET if stem.endswith("_synchronous") else None)
    tasks = build_tasks(request._replace(seeds=("100",)))
    assert len(tasks) == NUM_TRIALS and {task.config.validation_fraction for task in tasks.values()} == {0.1}


def test_what_all_methods_share_has_the_same_choices():
    rates = {
        tuple(choices)
        for stem in SPACES
        for name, choices in read_choices(stem).items()
        if name.endswith("_learning_rate") and "server" not in name
    }
    assert len(rates) == 1 and "0.01" in next(iter(rates)), "the printed one is among them"


def test_the_report_says_how_large_the_grids_are():
    sizes = {stem: compute_grid_size(read_request(stem).space) for stem in SPACES}
    names = {"fresh": "periodic aggregation", "synchronous": "FedAvg", "buffered": "FedBuff", "fed_async": "FedAsync"}
    for part, name in names.items():
        (size,) = [size for stem, size in sizes.items() if part in stem]
        assert re.search(rf"\b{size} (settings )?of {name}\b", " ".join(LEGEND.split()))


def list_unsearched_changes(tuned, request):
    """The flags by which a tuned flagfile differs from its experiment's though the search was not to change them."""
    values, own = (flag_values(resolve_flagfile(path)) for path in (tuned, request.experiment))
    searched = request.space.keys() - {"validation_fraction"}  # the reported runs train on all
    return [name for name in own if values[name] != own[name] and name not in searched]


@pytest.mark.parametrize("stem", SPACES)
def test_tuned_runs_hold_no_examples_out(stem, tmp_path):
    request = read_request(stem)
    made = tmp_path / "best.flags"
    best = Outcome(1, {name: choices[0] for name, choices in request.space.items()}, State.COMPLETE, {"100": 0.8})
    write_best_flagfile(made, request, best, None, "one trial")
    assert list_unsearched_changes(made, request) == ["validation_fraction"]
    made.write_text(made.read_text().replace("--validation_fraction=0.1", "--validation_fraction=0"))
    assert list_unsearched_changes(made, request) == []
    reported = find_flagfile(f"{stem}{TUNED_SUFFIX}")
    assert reported is None or list_unsearched_changes(reported, request) == []
