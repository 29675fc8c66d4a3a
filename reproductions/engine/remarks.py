"""What a reader of a report must know of single runs: which had a subset of their data, and which diverged."""

import math
from collections.abc import Sequence

from launch.runs.columns import TEST_ACCURACY, TEST_LOSS
from launch.runs.run_records import RunRecord


def list_remarks(runs: Sequence[RunRecord]) -> list[str]:
    """A sentence for each; [] if there is nothing to say."""
    return [*_name_subsets(runs), *_name_diverged(runs)]


def _name_subsets(runs: Sequence[RunRecord]) -> list[str]:
    subsets = sorted({(run.flags["dataset"], run.dataset) for run in runs if run.dataset != run.flags["dataset"]})
    return [
        f"Not on the whole data set: {sum(run.dataset == subset for run in runs)} of the runs with `--dataset={name}` "
        f"had {subset}."
        for name, subset in subsets
    ]


def _name_diverged(runs: Sequence[RunRecord]) -> list[str]:
    """Runs that have a loss that is no finite number."""
    lines = []
    for run in runs:
        evaluated = {number: row for number, row in run.rounds.items() if TEST_ACCURACY in row}
        if lost := [number for number, row in evaluated.items() if not math.isfinite(row.get(TEST_LOSS, math.nan))]:
            lines.append(
                f"Diverged: {run.experiment}, seed {run.flags['seed']}: the test loss is no finite number in "
                f"{len(lost)} of {len(run.rounds)} rounds, first in round {min(lost)}. All its accuracies count."
            )
    return lines
