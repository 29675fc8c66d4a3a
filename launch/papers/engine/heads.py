"""What runs gave, in the heads of their flagfiles: "# Ours: test accuracy ...". Imports no TensorFlow."""

import itertools
import pathlib
import re
from collections.abc import Collection, Iterable, Sequence

from launch.papers.engine.collection import summarize
from launch.papers.engine.markdown import format_measured, format_seeds
from launch.papers.engine.provenance import wrap_comment
from launch.runs.columns import CLIENT_TEST_ACCURACY, TEST_ACCURACY
from launch.runs.run_records import RunRecord, find_flagfile, resolve_flagfile

_OURS = re.compile(r"^# Ours: .*\n(?:# (?!Cost: ).*\n)*(?=# Cost: )", re.MULTILINE)
_NAMES = {TEST_ACCURACY: "test accuracy", CLIENT_TEST_ACCURACY: "the clients' own test accuracy"}


def compose_heads(runs: Iterable[RunRecord], metric: str, told: Collection[int]) -> dict[pathlib.Path, str]:
    """The flagfiles of runs, each with its text in which the head says what they gave.

    Args:
      runs: each experiment and seed once. An experiment that was never evaluated is left out.
      metric: the column that is told, of accuracies.
      told: the rounds after which, beside the last one that all seeds have.
    """
    composed = {}
    for experiment, group in itertools.groupby(sorted(runs, key=_order), key=lambda run: run.experiment):
        path = find_flagfile(experiment)
        text = path.read_text(encoding="utf-8")
        if result := _describe(list(group), metric, told, resolve_flagfile(path).rounds):
            lines = wrap_comment(f"Ours: {result}.")
            composed[path] = _OURS.sub(lambda _, lines=lines: "".join(f"{line}\n" for line in lines), text, count=1)
    return composed


def _order(run: RunRecord) -> tuple[str, int]:
    return run.experiment, run.flags["seed"]


def _describe(runs: Sequence[RunRecord], metric: str, told: Collection[int], num_rounds: int) -> str:
    """Mean and deviation over the seeds; "" if no round was evaluated in all of them."""
    by_run = [{number: row[metric] for number, row in run.rounds.items() if metric in row} for run in runs]
    shared = set.intersection(*map(set, by_run))
    if not shared:
        return ""
    last = max(shared)
    levels = [
        f"{format_measured(metric, summarize([rounds[number] for rounds in by_run]))} % after round {number}"
        for number in sorted({*shared.intersection(told), last})
    ]
    seeds = [run.flags["seed"] for run in runs]
    result = f"{_NAMES[metric]} {' and '.join(levels)}, seed{'s' if len(seeds) > 1 else ''} {format_seeds(seeds)}"
    subsets = sorted({run.dataset for run in runs if run.dataset != run.flags["dataset"]})
    result += f"; data: {', '.join(subsets)}" if subsets else ""
    return result + (f"; of {num_rounds} rounds {last} have been run" if last < num_rounds else "")
