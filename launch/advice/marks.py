"""What is suspicious about a method's runs, in words: it did nothing, or its settings lie at an end of what was tried.

A method may have lost only because it had no chance. A reader should see that before believing the table.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from launch.advice.decision import FEDAVG
from launch.advice.measures import BYTES, TIME, Measured
from launch.console.shown_text import format_count
from launch.contests.contest import Outcome
from launch.contests.methods import GROUPS, Method
from launch.sweeps.tuning.search_space import LOG, Choices, Range

FEWEST_ROUNDS = 3
EDGE = 0.05  # of a range
LIMITS = {BYTES: "bytes", TIME: "time"}


def list_marks(measured: Sequence[Measured], outcome: Outcome) -> dict[str, list[str]]:
    """{method: its marks}, of those that have any."""
    fedavg = next((each for each in measured if each.name == FEDAVG), None)
    methods = {each.method.name: each.method for each in outcome.entered}
    marks = {}
    for each in measured:
        found = [*_mark_runs(each, fedavg), *_mark_settings(each, methods.get(each.name))]
        if found:
            marks[each.name] = found
    return marks


def _mark_runs(measured: Measured, fedavg: Measured | None) -> Iterator[str]:
    if measured.role == GROUPS and measured.models:
        alike = [seed for seed, number in measured.models.items() if number == 1]
        if len(alike) == len(measured.models):
            yield "all clients ended with one model: it made no groups"
        elif alike:
            yield f"with {format_count(len(alike), 'seed')} of {len(measured.models)} it made no groups"
    if measured.is_federated and 0 < measured.cost.rounds <= FEWEST_ROUNDS:
        limit = measured.cost.limit
        why = f", since its {LIMITS[limit]} were used up" if limit == BYTES else ""
        why = ", since its time was used up" if limit == TIME else why
        yield f"it had {format_count(round(measured.cost.rounds), 'round')}{why}"
    if fedavg is not None and measured is not fedavg and measured.is_federated and _is_same(measured, fedavg):
        yield "every result is exactly FedAvg's: what it does beside that had no effect"


def _is_same(first: Measured, second: Measured) -> bool:
    seeds = first.tests.keys() & second.tests.keys()
    return bool(seeds) and all(
        first.tests[seed] == second.tests[seed] and first.validations.get(seed) == second.validations.get(seed)
        for seed in seeds
    )


def _mark_settings(measured: Measured, method: Method | None) -> Iterator[str]:
    space: Mapping[str, Choices | Range] = method.space if method else {}
    for name, values in space.items():
        if name in measured.settings and (end := _find_end(values, measured.settings[name])):
            yield f"the best {name} is at the {end} end of what was tried ({measured.settings[name]})"


def _find_end(values: Choices | Range, chosen: str) -> str:
    """ "lower" or "upper" if a number lies there; "" for all others, and at 0, below which nothing is."""
    try:
        number = float(chosen)
        if isinstance(values, Range):
            low, high, place = values.low, values.high, number
            if values.kind == LOG:
                low, high, place = math.log(low), math.log(high), math.log(number)
            share = (place - low) / (high - low)
        else:
            numbers = sorted(map(float, values))
            if len(numbers) < 3:
                return ""
            share = 0.0 if number == numbers[0] else 1.0 if number == numbers[-1] else 0.5
    except (ValueError, ZeroDivisionError):
        return ""
    if share <= EDGE:
        return "lower" if number else ""
    return "upper" if share >= 1 - EDGE else ""
