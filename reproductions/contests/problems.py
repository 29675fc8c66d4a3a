"""The league's problems as contests.toml has them. Imports no TensorFlow."""

from collections.abc import Mapping
from typing import Any

from launch.contests.problem import COMMON, OWN
from launch.runs.columns import NEW_CLIENTS
from launch.runs.task_columns import TaskColumns
from reproductions.engine.collection import read_toml

CONTESTS: Mapping[str, Mapping[str, Any]] = read_toml("contests", "contests.toml")
ALL = "all"
PROBLEMS = tuple(name for name in CONTESTS if name != ALL)
NEW = "new"  # judged by clients that took no part


def read_words(name: str) -> Mapping[str, Any]:
    """What is written of a problem, and of the one that it is like but for some words and flags."""
    words = CONTESTS[name]
    if "like" not in words:
        return words
    like = CONTESTS[words["like"]]
    return {**like, **words, "flags": [*like["flags"], *words["but"]]}


def name_judged(name: str) -> str:
    """What the methods of a problem are judged by: OWN, NEW or COMMON."""
    return read_words(name).get("judged", OWN)


def name_clients(name: str) -> str:
    """Where a run's summary has the clients that the problem is about."""
    return NEW_CLIENTS if name_judged(name) == NEW else "clients"


def find_judged(
    name: str, task: TaskColumns, summary: Mapping[str, Any], last: Mapping[str, float | None]
) -> float | None:
    """What a run that has ended is judged by, larger is better; None if it has none.

    Args:
      name: of the problem.
      task: of the run.
      summary: of the run.
      last: the columns of its last round.
    """
    own = summary.get(name_clients(name), {}).get(task.statistics[0])
    value = last.get(task.test) if name_judged(name) == COMMON else own
    return None if value is None else task.sign * value
