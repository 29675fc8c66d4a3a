"""Figure 3 of the FedSiKD paper from our runs: accuracy by round, a panel for each data set and alpha."""

import itertools
import pathlib
from collections.abc import Sequence

from launch.runs.columns import TEST_ACCURACY
from launch.runs.run_records import RunRecord
from launch.settings.algorithms import ALGORITHMS
from reproductions.engine.collection import PRINTED, TUNED, Place, group_runs
from reproductions.engine.figures import (
    Line,
    Panel,
    arrange,
    compute_curve_by_round,
    draw_panels,
    keep_longest,
    style_series,
)
from reproductions.engine.tables import show_range
from reproductions.fedsikd.measures import ALPHAS, AXES, HAR_WINDOWS, NAMES, find_place

NUM_COLUMNS = 4
TITLE = "FedSiKD, Figure 3 with our runs: test accuracy by round, mean over n seeds and one deviation either side"
STYLES = style_series(NAMES, {algo: ALGORITHMS[algo].color for algo in NAMES}, linestyle="-")


def draw_fedsikd_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `figure_3.png`: the mean over the seeds, and a band of one deviation either side.

    What the paper's figure does not have, HAR's windows and tuned runs, has panels where there are runs, these last.
    """
    by_place = group_runs(runs, find_place)
    panels = []
    for preset, dataset, alpha in itertools.product((PRINTED, TUNED), AXES["data"], ALPHAS):
        drawn = {algo: keep_longest(by_place.get(Place(preset, dataset, alpha, algo), [])) for algo in NAMES}
        if any(drawn.values()) or (preset == PRINTED and dataset != HAR_WINDOWS):
            seeds = show_range(len(each) for each in drawn.values() if each)
            tuned = ", tuned" if preset == TUNED else ""
            title = f"{AXES['data'][dataset]}, alpha = {alpha}{tuned}" + (f", n = {seeds}" if seeds else "")
            lines = [Line(NAMES[a], compute_curve_by_round(drawn[a], TEST_ACCURACY), STYLES[a]) for a in NAMES]
            label = "" if len(panels) % NUM_COLUMNS else "test accuracy"
            panels.append(Panel(lines, axes={"title": title, "xlabel": "round", "ylabel": label}))
    # By row, since a row holds the settings of one data set, and two data sets have accuracies far apart.
    return draw_panels(arrange(panels, NUM_COLUMNS), folder / "figure_3.png", TITLE, sharey="row")
