"""The flags of papers' experiments, as their runs have them, and what all searches of papers have alike."""

import pathlib

from launch.runs.run_records import resolve_experiment
from launch.settings.experiments import get_experiment, list_experiments
from launch.settings.run_config import flag_values


def read_flags(name, *arguments):
    """{flag: value} of the experiment of that name, with these arguments behind its own."""
    return flag_values(resolve_experiment(get_experiment(name), arguments))


def find_experiments(paper):
    """The experiments of a paper's folder."""
    return [each for each in list_experiments().values() if each.paper == paper]


def check_search(request, stem, objective, rounds, seeds=("100", "101", "102", "103", "104")):
    """Asserts that trials start from the experiment of that name, and are scored so, on seeds that are not reported."""
    output = pathlib.Path(f"docs/results/tuning/{stem}.csv")
    asked = (request.experiment.name, request.output, request.objective, request.rounds, request.seeds)
    assert asked == (stem, output, objective, rounds, seeds)
