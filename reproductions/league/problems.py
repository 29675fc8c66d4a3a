"""The words of the league's problems and methods, and how its experiments are called: `<method>_league_<problem>`."""

from collections.abc import Mapping
from typing import Any

from reproductions.engine.folder import read_toml

WORDS = read_toml("league", "league.toml")
PROBLEMS: Mapping[str, Mapping[str, Any]] = WORDS["problems"]
METHODS: Mapping[str, str] = WORDS["methods"]  # titles, in the order of the tables
INFIX = "_league_"


def name_experiment(method: str, problem: str) -> str:
    """The experiment of a method on a problem."""
    return f"{method}{INFIX}{problem}"


def name_tuned(method: str, problem: str) -> str:
    """The experiment whose trials choose the method's settings on a problem."""
    return name_experiment(method, PROBLEMS[problem].get("tuned_as", problem))


def split_name(experiment: str) -> tuple[str, str]:
    """(method, problem) of an experiment of the league."""
    method, _, problem = experiment.partition(INFIX)
    return method, problem
