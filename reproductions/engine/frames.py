"""Tables of reports: the runs as one pandas frame, and how a cell made of some of its rows looks.

A frame has a row a run. A group of runs is a part of it, and what several runs of a seed are compared by is a series by
seed, so that pandas pairs them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import pandas as pd

from launch.runs.columns import TEST_ACCURACY
from launch.runs.run_records import RunRecord
from reproductions.engine.collection import summarize
from reproductions.engine.markdown import Table, format_measured

EXPERIMENT, SEED = "experiment", "seed"


def make_frame(
    runs: Iterable[RunRecord], measure: Callable[[RunRecord], Mapping[str, Any]], columns: Iterable[str] = ()
) -> pd.DataFrame:
    """A row for each run in which something is measured: its experiment, its seed, and what `measure` finds.

    Args:
      runs: any, each experiment and seed once.
      measure: run -> what is measured in it, by name.
      columns: names that the frame has even where no run has them.
    """
    rows = [{EXPERIMENT: run.experiment, SEED: run.flags[SEED], **found} for run in runs if (found := measure(run))]
    found = dict.fromkeys((EXPERIMENT, SEED, *columns, *(name for row in rows for name in row)))
    return pd.DataFrame(rows, columns=list(found))


def make_table(frame: pd.DataFrame) -> Table:
    """A frame of cells that are text already."""
    return Table(list(frame.columns), frame.astype(str).to_numpy().tolist())


def show(values: Collection[float], metric: str = TEST_ACCURACY, absent: str = "not run") -> str:
    """Mean and sample deviation, accuracies in per cent: "74.12 ± 1.03"."""
    return format_measured(metric, summarize(list(values)) if len(values) else None, absent)


def show_range(values: Iterable[float]) -> str:
    """The smallest and the largest: "3 to 5", "3" if they are the same, "" without any."""
    ordered = sorted(values)
    return " to ".join(f"{number:g}" for number in dict.fromkeys((ordered[0], ordered[-1]))) if ordered else ""
