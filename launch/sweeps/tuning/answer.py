"""What a search says of itself: a line a trial, at the end the best trials beside the settings that all start from."""

import itertools
import pathlib
import shlex
from collections.abc import Mapping, Sequence

from launch.console.progress import say
from launch.pages.comparison.seed_statistics import (
    Estimate,
    compute_mean,
    estimate_mean,
)
from launch.runs.task_columns import TaskColumns, find_bounds, format_value
from launch.settings.run_config import flag_values
from launch.settings.setting_names import read_name
from launch.sweeps.answers import INDENT, describe_difference, format_estimate
from launch.sweeps.tuning.request import Request
from launch.sweeps.tuning.search_space import describe_settings, find_start
from launch.sweeps.tuning.trials import Outcome, Scores, name_seeds, rank
from models.task_kinds import TASK_KINDS

FRESH_SEEDS = 5
MOST_ROWS = 5
RUNS = pathlib.PurePath("runs")  # of what is trained after a search


def say_trial(label: str, scores: Scores, num_done: int, count: int) -> None:
    """A line for a trial that has all its scores."""
    say(f"[{num_done}/{count}] {label}: {format_value(compute_mean(scores.values()))}")


def name_flagfile(request: Request) -> pathlib.Path:
    """Where the best settings go. A sweep calls its runs after the file, so that it has a name of its own."""
    algorithm, name = request.experiment.algorithm, request.experiment.name
    return request.folder / f"{algorithm.name if request.is_plain and algorithm else name}_tuned.flags"


def say_best(
    request: Request,
    outcomes: Sequence[Outcome],
    confirmed: Mapping[int, Scores],
    best: Outcome,
    described: str,
    most_rows: int = MOST_ROWS,
) -> None:
    """Prints the best trials, the best one beside the settings that all start from, and where both are.

    Args:
      request: what was asked for.
      outcomes: all trials.
      confirmed: the scores of the best on further seeds, which count instead, if there are any.
      best: one of the outcomes.
      described: how many trials there were, and what chose them.
      most_rows: trials that are shown.
    """
    scores = confirmed if request.confirm_seeds else {each.number: each.scores for each in outcomes}
    seeds = request.confirm_seeds or request.seeds
    ranked = [each for each in rank(outcomes, request.sign) if len(scores.get(each.number, ())) == len(seeds)]
    ranked.sort(key=lambda each: -request.sign * compute_mean(scores[each.number].values()))
    over = f"mean and 95 % interval over {name_seeds(seeds)}"
    say(f"{'trial':>7}  {request.experiment.name}: {request.objective}, {over}")
    for each in ranked[:most_rows]:
        shown = format_estimate(_estimate(request, scores[each.number]))
        say(f"{each.number:>7}  {shown:<24}  {describe_settings(each.settings)}")
    found = format_estimate(_estimate(request, scores[best.number]))
    say(f"best     trial {best.number}: {describe_settings(best.settings)}; {request.objective} {found}")
    if start := _describe_start(request, outcomes, scores, best):
        say(f"default  {start}")
    say(f"files    {name_flagfile(request)} has the best settings")
    say(f"{INDENT}{request.output} has {described}")


def say_next(requests: Sequence[Request]) -> None:
    """Prints the command that trains the best of each search on seeds that were not searched."""
    used = {int(seed) for request in requests for seed in (*request.seeds, *request.confirm_seeds)}
    first = next(i for i in itertools.count(0, FRESH_SEEDS) if used.isdisjoint(range(i, i + FRESH_SEEDS)))
    files = ",".join(str(name_flagfile(request)) for request in requests)
    request = requests[0]
    algorithm = request.experiment.algorithm
    name = request.experiment.name
    if request.is_plain and algorithm:
        name = name.removeprefix(f"{algorithm.name}_")
    flags = [f"--flagfiles={files}", f"--seeds={first}-{first + FRESH_SEEDS - 1}", f"--runs_dir={RUNS / name}"]
    say("next     train the best on seeds that were not searched, and report these:")
    say(f"{INDENT}python -m launch.sweep {shlex.join(flags)}")


def _estimate(request: Request, scores: Scores) -> Estimate:
    bounds = find_bounds([TaskColumns(kind) for kind in TASK_KINDS.values()])
    return estimate_mean(scores.values(), bounds=bounds[request.objective])


def _describe_start(request: Request, outcomes: Sequence[Outcome], scores: Mapping[int, Scores], best: Outcome) -> str:
    """The settings that all trials start from, their score, and whether the best is better; "" where none is known."""
    config = request.experiment.resolve(request.arguments)
    flags, algorithm = flag_values(config), request.experiment.algorithm
    values = {name: flags.get(read_name(name, algorithm) if algorithm else name, "") for name in request.space}
    point = find_start(request.space, values)
    # Without a point of the space they are trial 0, where they were tried.
    own = next((each for each in outcomes if each.settings == (point or {})), None)
    if own is None:
        return ""
    if own.number == best.number:
        return "is the best: no trial has a better mean"
    theirs = scores.get(own.number, {})
    lead = describe_difference(scores[best.number], theirs, request.sign)
    if not lead:
        return ""
    return f"{describe_settings(values)}; {format_estimate(_estimate(request, theirs))}; the best differs by {lead}"
