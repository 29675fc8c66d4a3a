"""The factorial's figure: accuracy against fine-tuning steps, a line a start, a panel for each degree and finish."""

import pathlib
from collections.abc import Sequence

from launch.papers.amfl_p.bands import ON_BANDS, compute_band, draw_band, draw_level, label_panels
from launch.papers.amfl_p.experiments import (
    DEGREES,
    FEDAVG,
    FINISH_TITLES,
    FINISHES,
    LOCAL_RUNS,
    MAML,
    RANDOM,
    START_TITLES,
    STARTS,
    STRUCTURED,
    group_by_name,
    read_final,
    take_accuracies,
)
from launch.papers.amfl_p.factorial import FIGURE, collect_factorial_curves
from launch.papers.engine.curves import say_not_run
from launch.plots.style import COLORS, LINES, MARKERS, STYLE, new_figure, save_figure
from launch.runs.run_records import RunRecord

# As in the few-shot figure, where MAML has three lines.
STYLES = {
    start: {"color": COLORS[i], "marker": MARKERS[i], "linestyle": LINES[i % len(LINES)]}
    for start, i in {FEDAVG: 0, MAML: 1, RANDOM: 4}.items()
}


def draw_factorial_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path | None:
    """Draws the curves with their bands, local training beside; None if no run of the factorial has a curve."""
    import matplotlib

    curves = collect_factorial_curves(runs)
    if not curves:
        return None
    local = group_by_name(runs, LOCAL_RUNS, read_final)
    measured = sorted({steps for by_step in curves.values() for steps in by_step})
    places = {steps: i for i, steps in enumerate(measured)}  # evenly spaced, since they grow roughly by a factor
    with matplotlib.rc_context(STYLE):
        figure = new_figure(14, 6.4)
        axes = figure.subplots(len(FINISHES), len(DEGREES), sharex=True, sharey=True)
        for row, finish in zip(axes, FINISHES, strict=True):
            for ax, degree in zip(row, DEGREES, strict=True):
                for start in STARTS:
                    band = compute_band(curves.get((start, finish, degree), {}))
                    draw_band(ax, places, band, START_TITLES[start], markersize=4, **STYLES[start])
                if not ax.lines:
                    say_not_run(ax)
                draw_level(ax, take_accuracies(local.get((degree,), {})), "local training, all rounds")
            row[0].set_ylabel(f"finish: {FINISH_TITLES[finish]}\naccuracy on own later days")
        for ax, degree in zip(axes[0], DEGREES, strict=True):
            ax.set_title(f"{degree} (for no claim)" if degree == STRUCTURED else f"{degree} heterogeneity")
        label_panels(figure, axes, places, "fine-tuning steps at most")
        figure.suptitle(f"Start and finish, each with its own tuned rate and batch (simulated building): {ON_BANDS}")
        return save_figure(figure, folder / FIGURE)
