"""Figure 3 of the FedSiKD paper from our runs: accuracy by round, a panel for each data set and alpha."""

import pathlib
from collections.abc import Sequence

from launch.reports.collection import PRINTED, TUNED, Place, group_runs
from launch.reports.curves import Panel, draw_comparison
from launch.reports.fedsikd.claims import ALPHAS, LAST_ROUND, NAMES
from launch.reports.fedsikd.report import find_place
from launch.runs.run_records import RunRecord

LABELS = {PRINTED: "", TUNED: ", tuned"}


def draw_fedsikd_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `figure_3.png`: the mean over the seeds, and a band of one deviation either side."""
    by_place = group_runs(runs, find_place)
    panels = []
    for dataset in LAST_ROUND:
        for alpha in ALPHAS:
            curves = {
                name + label: by_place.get(Place(preset, dataset, alpha, algo), [])
                for preset, label in LABELS.items()
                for algo, name in NAMES.items()
            }
            panels.append(Panel(f"{dataset.upper()}, alpha = {alpha}", curves))
    title = "Figure 3: test accuracy by round, mean over seeds and one deviation either side"
    return draw_comparison(panels, folder / "figure_3.png", title)
