"""What a sweep and a search say at their end: means with intervals, and whether two differ."""

import shlex
from collections.abc import Mapping, Sequence

from launch.console.progress import say
from launch.console.shown_text import format_count
from launch.pages.comparison.compared_run import SEED, ComparedRun, is_on_disk, read_compared_run
from launch.pages.comparison.groups import are_of_one_data
from launch.pages.comparison.results import LAST, describe_metric, read_result
from launch.pages.comparison.seed_statistics import (
    LEAST_SEEDS,
    LOSS,
    WIN,
    Difference,
    Estimate,
    compare_by_seed,
    estimate_mean,
)
from launch.runs.columns import SUMMARY_FILE
from launch.runs.run_records import RunRecordError
from launch.runs.task_columns import TaskColumns, format_value
from launch.sweeps.tasks import Task

MOST_ROWS = 12
INDENT = " " * len("results  ")


def format_estimate(estimate: Estimate | Difference, is_signed: bool = False) -> str:
    """A mean with its interval, as "0.8378 [0.7850, 0.8906]"; of a difference with signs."""

    def write(value: float) -> str:
        return f"{'+' if is_signed and value >= 0 else ''}{format_value(value)}"

    ends = "" if estimate.low is None else f" [{write(estimate.low)}, {write(estimate.high)}]"
    return f"{write(estimate.mean)}{ends}"


def describe_difference(first: Mapping, second: Mapping, sign: int) -> str:
    """The first minus the second over the seeds that both have, and whether the first is better; "" without any.

    Args:
      first, second: {seed: result}.
      sign: 1 if a larger result is better, -1 if a lower one is.
    """
    found = compare_by_seed(first, second)
    if not found.count:
        return ""
    gain, loss = (WIN, LOSS) if sign > 0 else (LOSS, WIN)
    verdict = "better" if gain in found.verdict else "worse" if loss in found.verdict else "undecided"
    if found.count < LEAST_SEEDS:
        verdict = f"undecided, {format_count(found.count, 'seed')} cannot tell"
    return f"{format_estimate(found, is_signed=True)}: {verdict}"


def say_results(tasks: Sequence[Task]) -> None:
    """Prints the main metric of finished runs by what they were made from, the best first, and what to do next.

    Runs of several tasks have a list for each, since what measures one says nothing of another.
    """
    by_task: dict[TaskColumns, dict[str, list[ComparedRun]]] = {}
    for name, found in _read_runs(tasks).items():
        if found:
            by_task.setdefault(found[0].task, {})[name] = found
    best = [runs[name][0] for runs in by_task.values() if (name := _say_task(runs))]
    if not best:
        return
    commands = [f"python -m launch.compare --runs={shlex.quote(str(tasks[0].run_dir.parents[1]))}"]
    commands += [f"python -m launch.export --run_dir={shlex.quote(str(run.path))}" for run in best if is_on_disk(run)]
    say(f"next     {f'{chr(10)}{INDENT}'.join(commands)}")


def _say_task(runs: Mapping[str, Sequence[ComparedRun]]) -> str:
    """Prints the results of the runs of one task, by what they were made from; returns the best, "" if none has any."""
    metric = describe_metric([run for found in runs.values() for run in found], "")
    values: dict[str, dict[int, float]] = {}
    for name, found in runs.items():
        results = {int(run.flags[SEED]): read_result(run, metric.column, LAST, metric.is_low_better) for run in found}
        values[name] = {seed: result for seed, result in results.items() if result is not None}
    rows = {name: estimate_mean(found.values(), bounds=metric.bounds) for name, found in values.items() if found}
    sign = -1 if metric.is_low_better else 1
    names = sorted(rows, key=lambda name: -sign * rows[name].mean)
    if not names:
        return ""
    say(f"results  {metric.title} after the last round, mean and 95 % interval over the seeds")
    width = max(map(len, names[:MOST_ROWS]))
    for name in names[:MOST_ROWS]:
        say(f"{INDENT}{name:<{width}}  {format_estimate(rows[name]):<24}  {format_count(rows[name].count, 'seed')}")
    if names[MOST_ROWS:]:
        say(f"{INDENT}and {len(names) - MOST_ROWS} more")
    if len(names) > 1 and are_of_one_data([*runs[names[0]], *runs[names[1]]]):
        lead = describe_difference(values[names[0]], values[names[1]], sign)
        say(f"{INDENT}{names[0]} against {names[1]}, by seed: {lead or 'no seed in common'}")
    return names[0]


def _read_runs(tasks: Sequence[Task]) -> dict[str, list[ComparedRun]]:
    """The finished runs of each recipe; what cannot be read is left out, as it is from a comparison."""
    runs: dict[str, list[ComparedRun]] = {}
    for task in tasks:
        places = [task.run_dir, *(each / task.archived_path for each in task.finished)]
        path = next((each for each in places if (each / SUMMARY_FILE).exists()), None)
        found = runs.setdefault(task.recipe.name, [])
        try:
            if path is not None:
                found.append(read_compared_run(path, task.name))
        except RunRecordError:
            continue
    return runs
