"""The figure of aggregators under attack: a panel an attack, its aggregators by their accuracy over the seeds."""

import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from launch.plots.style import COLORS
from launch.runs.run_records import RunRecord
from reproductions.engine.figures import GREY, Panel, draw_panels, paint_means
from reproductions.engine.tables import Values, collect
from reproductions.robust.measures import AGGREGATORS, ATTACKS, find_results, measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 3
TITLE = "FedAvg on MNIST, 10 of 50 clients attack: mean over the seeds with 95 % intervals"
MEAN_COLOR, ROBUST_COLOR = COLORS[1], GREY  # of the weighted mean, beside which the others are to be read


def draw_robust_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `robust.png`: test accuracy after the last round, a panel an attack and a row an aggregator."""
    values = collect(runs, measure)
    panels = [_build_panel(values, attack, title) for attack, title in ATTACKS.items()]
    rows = [panels[start : start + COLUMNS] for start in range(0, len(panels), COLUMNS)]
    return draw_panels(rows, folder / "robust.png", TITLE, (3.2, 2.4), sharex=True, sharey=True)


def _build_panel(values: Values, attack: str, title: str) -> Panel:
    def paint(ax: "Axes") -> None:
        for place, name in enumerate(reversed(AGGREGATORS)):
            by_seed = find_results(values, name)[attack]
            color = MEAN_COLOR if name == "mean" else ROBUST_COLOR
            paint_means(ax, place, list(by_seed.values()), color)
        ax.set_yticks(range(len(AGGREGATORS)), reversed(AGGREGATORS.values()))
        ax.set_xlim(0, 100)

    return Panel(axes={"title": title, "xlabel": "test accuracy (%)"}, paint=paint)
