"""Figure 3 of the FedSiKD paper from our runs: accuracy by round, a panel for each data set and alpha."""

import itertools
import pathlib
from collections.abc import Mapping, Sequence

from launch.papers.engine.collection import PRINTED, TUNED, Place
from launch.papers.engine.figures import Line, Panel, compute_curve_by_round, draw_panels, style_series
from launch.papers.fedsikd.measures import ALPHAS, DATA_NAMES, HAR_WINDOWS, NAMES, group_places
from launch.runs.columns import TEST_ACCURACY
from launch.runs.run_records import RunRecord
from launch.settings.algorithms import ALGORITHMS

NUM_COLUMNS = 4
TITLE = "FedSiKD, Figure 3 with our runs: test accuracy by round, mean over n seeds and one deviation either side"
STYLES = style_series(NAMES, {algo: ALGORITHMS[algo].color for algo in NAMES}, linestyle="-")


def draw_fedsikd_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `figure_3.png`: the mean over the seeds, and a band of one deviation either side.

    What the paper's figure does not have, HAR's windows and tuned runs, has panels where there are runs, these last.
    """
    by_place = group_places(runs)
    panels: list[Panel | None] = []
    for preset, dataset, alpha in itertools.product((PRINTED, TUNED), DATA_NAMES, ALPHAS):
        drawn = {algo: keep_longest(by_place.get(Place(preset, dataset, alpha, algo), [])) for algo in NAMES}
        if any(drawn.values()) or (preset == PRINTED and dataset != HAR_WINDOWS):
            tuned = ", tuned" if preset == TUNED else ""
            title = f"{DATA_NAMES[dataset]}, alpha = {alpha}{tuned}{_count_seeds(drawn)}"
            lines = [Line(NAMES[a], compute_curve_by_round(drawn[a], TEST_ACCURACY), STYLES[a]) for a in NAMES]
            label = "" if len(panels) % NUM_COLUMNS else "test accuracy"
            panels.append(Panel(lines, axes={"title": title, "xlabel": "round", "ylabel": label}))
    panels += [None] * (-len(panels) % NUM_COLUMNS)
    rows = [panels[i : i + NUM_COLUMNS] for i in range(0, len(panels), NUM_COLUMNS)]
    # By row, since a row holds the settings of one data set, and two data sets have accuracies far apart.
    return draw_panels(rows, folder / "figure_3.png", TITLE, sharey="row")


def _count_seeds(curves: Mapping[str, Sequence[RunRecord]]) -> str:
    counts = sorted({len(runs) for runs in curves.values() if runs})
    return f", n = {' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))}" if counts else ""


def keep_longest(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """The runs with the most rounds: a mean over other seeds from some round on would look like a change."""
    most = max((len(run.rounds) for run in runs), default=0)
    return [run for run in runs if len(run.rounds) == most]
