"""Figure 3 of the FedSiKD paper from our runs: accuracy by round, a panel for each data set and alpha."""

import itertools
import pathlib
from collections.abc import Mapping, Sequence

from launch.papers.engine.collection import PRINTED, TUNED, Place
from launch.papers.engine.curves import Panel, draw_comparison
from launch.papers.fedsikd.measures import ALPHAS, DATA_NAMES, HAR_WINDOWS, NAMES, group_places
from launch.runs.run_records import RunRecord


def draw_fedsikd_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `figure_3.png`: the mean over the seeds, and a band of one deviation either side.

    What the paper's figure does not have, HAR's windows and tuned runs, has panels where there are runs, these last.
    """
    by_place = group_places(runs)
    panels = []
    for preset, dataset, alpha in itertools.product((PRINTED, TUNED), DATA_NAMES, ALPHAS):
        curves = {
            name: keep_longest(by_place.get(Place(preset, dataset, alpha, algo), [])) for algo, name in NAMES.items()
        }
        if any(curves.values()) or (preset == PRINTED and dataset != HAR_WINDOWS):
            tuned = ", tuned" if preset == TUNED else ""
            panels.append(Panel(f"{DATA_NAMES[dataset]}, alpha = {alpha}{tuned}{_count_seeds(curves)}", curves))
    title = "FedSiKD, Figure 3 with our runs: test accuracy by round, mean over n seeds and one deviation either side"
    return draw_comparison(panels, folder / "figure_3.png", title)


def _count_seeds(curves: Mapping[str, Sequence[RunRecord]]) -> str:
    counts = sorted({len(runs) for runs in curves.values() if runs})
    return f", n = {' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))}" if counts else ""


def keep_longest(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """The runs with the most rounds: a mean over other seeds from some round on would look like a change."""
    most = max((len(run.rounds) for run in runs), default=0)
    return [run for run in runs if len(run.rounds) == most]
