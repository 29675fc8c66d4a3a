"""The figure of the league: on each problem the methods by their accuracy, with 95 % intervals over the seeds."""

import pathlib
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from launch.comparison.seed_statistics import compute_mean
from launch.plots.style import COLORS
from launch.runs.run_records import RunRecord
from reproductions.engine.figures import GREY, Panel, arrange, draw_panels, paint_means
from reproductions.engine.tables import Values, collect
from reproductions.league.measures import COMMON, MAJORITY, find_judged, find_values, measure, title_majority
from reproductions.league.problems import METHODS, PROBLEMS, SYSTEMS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS, TITLE_WIDTH = 3, 33  # the second in characters
TITLE = "The league: accuracy within the same bytes and seconds, mean over the seeds with 95 % intervals"
X_LABELS = {True: "common test set (%)", False: "own test data (%)"}
SYSTEM_COLOR, RIVAL_COLOR = COLORS[0], GREY


def draw_league(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `league.png`: a panel a problem that was run, its methods from best to worst, the four systems coloured."""
    values = collect(runs, measure)
    found = [problem for problem in PROBLEMS if find_judged(values, problem)]
    panels = [_build_panel(values, problem) for problem in found] or [Panel(axes={"title": "no problem"})]
    return draw_panels(arrange(panels, COLUMNS), folder / "league.png", TITLE, (4.4, 3.4))


def _build_panel(values: Values, problem: str) -> Panel:
    own = find_judged(values, problem)
    ordered = sorted(own, key=lambda method: compute_mean(own[method].values()))
    is_common = PROBLEMS[problem].get("judged_by") == COMMON
    majority = None if is_common else next(iter(find_values(values, problem, MAJORITY).values()), None)

    def paint(ax: "Axes") -> None:
        for place, method in enumerate(ordered):
            color = SYSTEM_COLOR if method in SYSTEMS else RIVAL_COLOR
            paint_means(ax, place, [100 * value for value in own[method].values()], color)
        if majority:
            level = 100 * compute_mean(majority.values())
            ax.axvline(level, linestyle=":", color="#000000", label=title_majority(problem))
        low, high = ax.get_xlim()
        ax.set_xlim(max(low, 0), min(high, 100))
        ax.set_yticks(range(len(ordered)), [METHODS[method] for method in ordered])
        for label, method in zip(ax.get_yticklabels(), ordered, strict=True):
            label.set_color(SYSTEM_COLOR if method in SYSTEMS else "#000000")

    title = textwrap.fill(PROBLEMS[problem]["title"], TITLE_WIDTH)
    return Panel(axes={"title": title, "xlabel": X_LABELS[is_common]}, paint=paint)
