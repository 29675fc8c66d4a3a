"""The search spaces of AMFL-P's comparisons: methods that are compared have as many trials, on seeds of their own."""

import pathlib
import re

import pytest

from launch.reports.amfl_p.experiments import CHOSEN_ON, DEFAULT_ALGOS, FINISHES, PLACES, STARTS
from launch.runs.run_records import EXPERIMENTS, list_flagfiles, resolve_flagfile
from launch.settings.run_config import find_idle
from launch.tuning.grid_search import build_tasks, draw_trials
from launch.tuning.request import parse_request
from launch.tuning.search_space import parse_search

ROOT = pathlib.Path(__file__).parents[2]
SPACES = sorted((EXPERIMENTS / "amfl_p" / "tuning").glob("*.flags"))
NUM_TRIALS = 12


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


def read(stem):
    return parse_request([f"--flagfile=launch/experiments/amfl_p/tuning/{stem}.flags"])


def draw(request):
    return draw_trials(request.space, request.num_trials)


def test_every_start_finish_and_default_has_its_space():
    cells = {f"start_{start}_{finish}_building_medium" for start in STARTS for finish in FINISHES}
    cells |= {f"defaults_{algo}_{place}" for algo in DEFAULT_ALGOS for place in CHOSEN_ON}
    assert {path.stem for path in SPACES} == cells | {"local_training_building_medium"}


@pytest.mark.parametrize("stem", [path.stem for path in SPACES])
def test_a_space_can_be_run_and_is_as_large_as_the_others(stem):
    """Reported seeds are 0 to 19; a test split scores nothing."""
    request = read(stem)
    assert (len(draw(request)), request.seeds) == (NUM_TRIALS, ("100", "101", "102", "103", "104"))
    assert request.experiment.stem == stem and request.output == pathlib.Path(f"docs/results/tuning/{stem}.csv")
    assert request.objective == "client_validation_accuracy" and request.rounds is None
    assert len(build_tasks(request._replace(seeds=("100",)))) == NUM_TRIALS


@pytest.mark.parametrize("algo", DEFAULT_ALGOS)
def test_defaults_are_chosen_among_the_same_trials_on_all_data(algo):
    first, *others = (read(f"defaults_{algo}_{place}") for place in CHOSEN_ON)
    assert all(draw(other) == draw(first) for other in others)


def read_choices(stem):
    """The choices by what a flag is called without its algorithm."""
    lines = (EXPERIMENTS / "amfl_p" / "tuning" / f"{stem}.flags").read_text().splitlines()
    (search,) = [line.removeprefix("--search=") for line in lines if line.startswith("--search=")]
    return {re.sub("^(amfl_p|fine_tuning|fedavg|local_only)_", "", name): choices
            for name, choices in parse_search(search).items()}  # fmt: skip


def test_what_two_methods_share_has_the_same_choices():
    for stems in (
        [f"start_{start}_{finish}_building_medium" for start in STARTS for finish in FINISHES],
        [f"defaults_{algo}_building_medium" for algo in DEFAULT_ALGOS],
    ):
        seen = {}
        for name, choices in ((name, each) for stem in stems for name, each in read_choices(stem).items()):
            assert seen.setdefault(name, choices) == choices, name
        assert "batch_size" in seen and "fine_tuning_learning_rate" in seen


def test_only_runs_without_flags_follow_the_defaults_that_are_chosen():
    """Kept runs of all others, in all papers, still count when the trials have given new defaults."""
    searched = {algo: read(f"defaults_{algo}_{CHOSEN_ON[0]}").space.keys() for algo in DEFAULT_ALGOS}
    following = {}
    for path in list_flagfiles():
        config = resolve_flagfile(path)
        given = {line.lstrip("-").partition("=")[0] for line in path.read_text().splitlines() if line.startswith("-")}
        if left := searched.get(config.algo, set()) - given - find_idle(config).keys():
            following[path.stem] = left
    assert {stem: left for stem, left in following.items() if not stem.startswith("defaults_")} == {}
    assert len(following) == len(DEFAULT_ALGOS) * len(PLACES)
