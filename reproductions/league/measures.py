"""What is measured in a run of the league. Imports no TensorFlow.

Every run of a problem ends within the same limits, in bytes, in virtual seconds and in rounds, so what counts is where
it ends.
"""

import functools
import re

from launch.runs.columns import BYTES_DOWN, BYTES_UP, MAJORITY_ACCURACY, NEW_CLIENTS, TOKEN_BASELINES, VIRTUAL_TIME_S
from launch.runs.run_records import RunRecord, read_summary
from launch.runs.task_columns import read_task_columns
from launch.settings.experiments import get_search, list_experiments
from reproductions.engine.tables import BySeed, Values
from reproductions.league.problems import METHODS, PROBLEMS, name_experiment, name_tuned, split_name

MAJORITY_TITLE = "each client's majority class"

# Shares of 1: on the clients' own test data, or on that of new clients where the problem is about them.
OWN, WORST_TENTH, COMMON, MAJORITY = "own", "worst_tenth", "common", "majority"
MEGABYTES, SECONDS, ROUNDS = "megabytes", "virtual_s", "rounds"
_RATES = re.compile(r"(\w*learning_rate)=([^|;]+(?:\|[^|;]+){2,})")  # of a search, the flag with three choices or more


@functools.cache
def read_rates(experiment: str) -> tuple[float | None, tuple[float, ...]]:
    """The learning rate that an experiment has from its trials, None before them, and the choices, ascending."""
    search = get_search(f"league/{name_tuned(*split_name(experiment))}")
    flag, choices = _RATES.search(search.flags["search"]).groups()
    chosen = list_experiments()[experiment].flags.get(flag)
    return chosen and float(chosen), tuple(sorted(map(float, choices.split("|"))))


def measure(run: RunRecord) -> dict[str, float]:
    """What a run that has ended says at its end; nothing of another."""
    summary, named = read_summary(run), split_name(run.experiment)
    if not summary or named is None:
        return {}
    task, last = read_task_columns(summary), run.rounds[max(run.rounds)]
    own, _, _, worst_tenth = task.statistics
    statistics = summary[NEW_CLIENTS if PROBLEMS[named[1]].get("new_clients") else "clients"]
    numbers = {
        OWN: statistics[own],
        WORST_TENTH: statistics[worst_tenth],
        COMMON: last.get(task.test),
        MAJORITY: statistics.get(MAJORITY_ACCURACY, summary.get(TOKEN_BASELINES, {}).get("bigram_accuracy")),
        MEGABYTES: sum(row[BYTES_DOWN] + row[BYTES_UP] for row in run.rounds.values()) / 1e6,
        SECONDS: last[VIRTUAL_TIME_S],
        ROUNDS: float(max(run.rounds)),
    }
    return {name: value for name, value in numbers.items() if value is not None}


def find_values(values: Values, problem: str, number: str) -> dict[str, BySeed]:
    """A number by method and seed, of the methods with runs on a problem, in the order of the tables."""
    found = {method: values.get((name_experiment(method, problem), number), {}) for method in METHODS}
    return {method: by_seed for method, by_seed in found.items() if by_seed}


def title_majority(problem: str) -> str:
    """What is said without a model."""
    return PROBLEMS[problem].get("majority", MAJORITY_TITLE)


def find_judged(values: Values, problem: str) -> dict[str, BySeed]:
    """By method and seed what a problem's methods are judged by: the clients' own test data, if it says no other."""
    return find_values(values, problem, PROBLEMS[problem].get("judged_by", OWN))


def list_missing(values: Values, problem: str) -> list[str]:
    """The methods of a problem without a run with some seed that other methods of it have."""
    judged = find_judged(values, problem)
    seeds = set().union(*judged.values())
    asked = [method for method in METHODS if name_experiment(method, problem) in list_experiments()]
    return [method for method in asked if set(judged.get(method, ())) != seeds]
