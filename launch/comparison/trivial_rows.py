"""Rows beside the groups that no model was trained for: what giving always the most frequent class reaches.

They follow from the runs' data alone, so each run has them in its summary.json. They belong to no group and win against
none. The page does the same in `trivial.js`. Imports no TensorFlow.
"""

from collections.abc import Sequence

import numpy as np

from launch.comparison.compared_run import ComparedRun
from launch.comparison.groups import Group, find_differing_flags, group_runs
from launch.comparison.versions import DATA_VERSION
from launch.runs.columns import ROUND
from launch.runs.data_versions import DATA_FLAGS


def find_differing_data(runs: Sequence[ComparedRun]) -> list[str]:
    """The flags of data, the seed aside, that have several values among the runs that have them."""
    return sorted({*DATA_FLAGS, DATA_VERSION}.intersection(find_differing_flags(runs)))


def list_trivial_groups(runs: Sequence[ComparedRun], column: str) -> list[Group]:
    """The rows of a column, as groups of runs whose every round has the row's result; for each data a row of its own.

    Without them where no run knows such results of this column.
    """
    splits = group_runs(runs, find_differing_data(runs))
    groups = []
    for split in splits:
        for title in dict.fromkeys(title for run in split.runs for title in run.trivial.get(column, ())):
            members = [
                _hold(run, column, run.trivial[column][title])
                for run in split.runs
                if title in run.trivial.get(column, ())
            ]
            groups.append(Group(title if len(splits) == 1 else f"{title}, {split.label}", members))
    return groups


def _hold(run: ComparedRun, column: str, value: float) -> ComparedRun:
    rounds = run.columns[ROUND]
    return run._replace(columns={ROUND: rounds, column: np.full(len(rounds), value)})
