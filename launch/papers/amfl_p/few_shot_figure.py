"""The few-shot figure: accuracy against fine-tuning steps, a line a start, a panel for each number of readings."""

import pathlib
from collections.abc import Sequence

from launch.papers.amfl_p.bands import ON_BANDS, compute_band, draw_band, draw_level, label_panels
from launch.papers.amfl_p.experiments import READINGS
from launch.papers.amfl_p.few_shot import FIGURE, GROUPS, STARTS, collect_curves, select_curve
from launch.papers.engine.curves import say_not_run
from launch.plots.style import COLORS, LINES, MARKERS, STYLE, new_figure, save_figure
from launch.runs.run_records import RunRecord


def draw_few_shot_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path | None:
    """Draws the curves with their bands; None if there are no few-shot runs among `runs`."""
    import matplotlib

    curves = collect_curves(runs)
    if not curves.by_place:
        return None
    places = {steps: i for i, steps in enumerate(curves.steps)}  # evenly spaced, since they grow roughly by a factor
    with matplotlib.rc_context(STYLE):
        figure = new_figure(14, 6.4)
        axes = figure.subplots(len(GROUPS), len(READINGS), sharex=True, sharey=True)
        for row, (group, group_title) in zip(axes, GROUPS.items(), strict=True):
            for ax, readings in zip(row, READINGS, strict=True):
                for i, (start, title) in enumerate(STARTS.items()):
                    band = compute_band(select_curve(curves, start, readings, group))
                    style = {"color": COLORS[i], "marker": MARKERS[i], "linestyle": LINES[i % len(LINES)]}
                    draw_band(ax, places, band, title, markersize=4, **style)
                if not ax.lines:
                    say_not_run(ax)
                draw_level(ax, curves.local.get((readings, group), {}), "local training, all rounds")
            row[0].set_ylabel(f"{group_title}\naccuracy on own later days")
        for ax, readings in zip(axes[0], READINGS, strict=True):
            ax.set_title("all readings" if readings == "all" else f"{readings} readings a sensor")
        label_panels(figure, axes, places, "fine-tuning steps")
        figure.suptitle(f"Few readings, one finish for all starts (simulated building, medium): {ON_BANDS}")
        return save_figure(figure, folder / FIGURE)
