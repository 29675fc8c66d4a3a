"""What is suspicious about a method's runs, in words: it did nothing, or its settings lie at an end of what was tried.

A method may have lost only because it had no chance. A reader should see that before believing the table.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from launch.advice.choices import FEDAVG
from launch.advice.measures import BYTES, TIME, Measured
from launch.console.shown_text import format_count
from launch.contests.contest import Entered, Outcome
from launch.contests.methods import ALONE, GROUPS, Method
from launch.pages.comparison.seed_statistics import compute_mean
from launch.sweeps.tuning.search_space import UPPER, Choices, Range, find_end

FEWEST_ROUNDS = 3
# Settings by which a model that nobody else helps is trained further.
LONGER = ("learning_rate", "epochs", "steps")
LIMITS = {BYTES: "bytes", TIME: "time"}


def list_marks(measured: Sequence[Measured], outcome: Outcome, rising: Collection[str] = ()) -> dict[str, list[str]]:
    """{method: its marks}, of those that have any; `rising` are the names that `list_rising` gives."""
    fedavg = next((each for each in measured if each.name == FEDAVG), None)
    methods = {each.method.name: each.method for each in outcome.entered}
    marks = {}
    for each in measured:
        found = [*_mark_runs(each, fedavg), *_mark_settings(each, methods.get(each.name))]
        if each.name in rising:
            found.append("it was still improving: with longer training it may be better than it looks here")
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
        if name in measured.settings and (end := find_end(values, measured.settings[name])):
            yield f"the best {name} is at the {end} end of what was tried ({measured.settings[name]})"


def list_rising(outcome: Outcome, margin: float) -> tuple[str, ...]:
    """Names of the methods that train alone, and that more training might make clearly better.

    Runs are evaluated at their end only. So it is seen by the chosen trial: its whole run is clearly better than its
    short one, or its rate is at the upper end of what was tried. Where there are no short runs, it is the longer choice
    of those that were tried.

    Args:
      outcome: of the contest.
      margin: a difference that hardly matters.
    """
    return tuple(
        each.method.name for each in outcome.entered if each.method.role == ALONE and _is_rising(each, outcome, margin)
    )


def _is_rising(entered: Entered, outcome: Outcome, margin: float) -> bool:
    chosen = next((trial for trial in entered.trials if trial.settings == entered.chosen), None)
    if chosen is None:
        return False
    short, whole = chosen.scores
    both = short.keys() & whole.keys() if outcome.plan.is_halved else ()
    if both and outcome.problem.task.sign * compute_mean(whole[seed] - short[seed] for seed in both) > margin:
        return True
    for name in (name for name in LONGER if name in chosen.settings):
        values, value = entered.method.space.get(name), chosen.settings[name]
        if isinstance(values, Range):
            if find_end(values, value) == UPPER:
                return True
            continue
        # The longer choice says nothing if no trial had another one.
        tried = {trial.settings.get(name, value) for trial in entered.trials}
        if not both and values and len(tried) > 1 and value == max(values, key=float):
            return True
    return False
