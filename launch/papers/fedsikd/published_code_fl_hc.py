"""FL+HC's printed rows beside one reading of what the published scripts do for them. Imports no TensorFlow."""

import itertools

from datasets.catalog import get_title
from launch.papers.engine.markdown import Table
from launch.papers.fedsikd.published_code import (
    ALPHAS,
    DATASETS,
    FL_HC,
    ROUNDS,
    Place,
    Replay,
    get_runs,
    get_values,
    read_printed_values,
)
from launch.runs.columns import TEST_ACCURACY, TEST_LOSS

LAST = "the last"


def tabulate_fl_hc(replay: Replay) -> Table:
    """A row a data set and alpha: accuracies and losses as printed, and the least and greatest of the splits."""
    accuracies, losses = (read_printed_values(metric) for metric in (TEST_ACCURACY, TEST_LOSS))
    lines = []
    for dataset, alpha in itertools.product(DATASETS, ALPHAS):
        key, place = (dataset, alpha, "FL+HC"), Place(dataset, alpha, FL_HC)
        row, loss = [accuracies[key][round_num] for round_num in ROUNDS], losses[key]
        ends = [f"{loss[round_num]:.2f}" for round_num in (ROUNDS[0], ROUNDS[-1], max(loss))]
        found = [_span(replay, place, metric) for metric in (TEST_ACCURACY, TEST_LOSS)]
        shown = [_format_span(min(row), max(row), 100, ".1f"), _format_span(*found[0], 100, ".1f"), *ends]
        lines.append([get_title(dataset), alpha, *shown, _format_span(*found[1], 1, ".2f")])
    columns = ["data", "alpha", "accuracy (%), rounds 1 to 5, printed", "replay"]
    columns += ["loss, round 1, printed", "round 5", LAST, "rounds 1 to 5, replay"]
    return Table(columns, lines)


def _span(replay: Replay, place: Place, metric: str) -> tuple[float, float] | tuple[None, None]:
    """The least and greatest value of any round of any split."""
    values = [value for run in get_runs(replay, place) for value in get_values(run, metric)]
    return (min(values), max(values)) if values else (None, None)


def _format_span(low: float | None, high: float | None, factor: float, form: str) -> str:
    if low is None:
        return "not computed"
    return f"{format(factor * low, form)} to {format(factor * high, form)}"
