"""Curves of several runs in one figure: a panel a setting, a line an algorithm, mean and deviation over the seeds."""

import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from launch.plots.style import COLORS, LINES, MARKERS, STYLE, count_rounds, new_figure, save_figure
from launch.runs.columns import METRICS_FILE, TEST_ACCURACY
from launch.runs.run_records import read_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Curves(NamedTuple):
    """One panel of a comparison: for each label the run folders of its seeds.

    A label "name, variant" has the colour of "name" and a line style of its own.
    """

    title: str
    run_dirs: Mapping[str, Sequence[pathlib.Path]]


def draw_comparison(panels: Sequence[Curves], path: str | os.PathLike, title: str = "") -> None:
    """Draws test accuracy by round, a panel a setting: the mean over seeds and a band of one deviation either side.

    A panel or a curve without runs says so. Panels lie in rows of four.

    Args:
      panels: in reading order; a label has the same colour in all.
      path: the PNG file.
      title: of the whole figure.
    """
    import matplotlib

    styles = _style_labels([label for panel in panels for label in panel.run_dirs])
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    with matplotlib.rc_context(STYLE):
        figure = new_figure(3.4 * columns + 0.6, 2.9 * rows + 0.9)
        axes = figure.subplots(rows, columns, squeeze=False, sharey="row")
        for ax, panel in zip(axes.flat, panels, strict=False):
            for label, run_dirs in panel.run_dirs.items():
                _draw_seeds(ax, label, styles[label], run_dirs)
            ax.set(title=panel.title, xlabel="round")
            count_rounds(ax)
            if not ax.lines:
                ax.text(0.5, 0.5, "not run", transform=ax.transAxes, ha="center", va="center", color="#777777")
                ax.set_xticks([])
        for ax in axes.flat[len(panels) :]:
            ax.set_axis_off()
        for ax in axes[:, 0]:
            ax.set_ylabel("test accuracy")
        _add_shared_legend(figure, axes, list(styles))
        figure.suptitle(title)
        save_figure(figure, pathlib.Path(path))


def _style_labels(labels: Sequence[str]) -> dict[str, dict[str, str]]:
    """How each label is drawn: a colour and marker for each name, a line style for each variant of it.

    In the order of the legend: a name, its variants, the next name.
    """
    names: dict[str, list[str]] = {}
    for label in labels:
        variants = names.setdefault(label.split(", ")[0], [])
        if label not in variants:
            variants.append(label)
    return {
        label: {
            "color": COLORS[i % len(COLORS)],
            "marker": MARKERS[i % len(MARKERS)],
            "linestyle": LINES[k % len(LINES)],
            "markerfacecolor": "white" if k else COLORS[i % len(COLORS)],
        }
        for i, (name, variants) in enumerate(names.items())
        for k, label in enumerate(sorted(variants, key=lambda label: label != name))
    }


def _draw_seeds(ax: "Axes", label: str, style: Mapping[str, str], run_dirs: Sequence[pathlib.Path]) -> None:
    """One curve: the mean over the runs that were evaluated in a round, and their deviation where there are two."""
    by_round: dict[int, list[float]] = {}
    for run_dir in run_dirs:
        metrics = read_columns(pathlib.Path(run_dir) / METRICS_FILE)
        for round_num, accuracy in zip(metrics["round"], metrics[TEST_ACCURACY], strict=True):
            if np.isfinite(accuracy):
                by_round.setdefault(int(round_num), []).append(accuracy)
    if not by_round:
        return
    rounds = sorted(by_round)
    mean = np.array([np.mean(by_round[round_num]) for round_num in rounds])
    spread = np.array([np.std(by_round[n], ddof=1) if len(by_round[n]) > 1 else 0.0 for n in rounds])
    every = max(1, len(rounds) // 10)
    ax.fill_between(rounds, mean - spread, mean + spread, color=style["color"], alpha=0.18, linewidth=0)
    ax.plot(rounds, mean, label=label, markersize=4, markevery=every, **style)


def _add_shared_legend(figure: "Figure", axes: np.ndarray, order: Sequence[str]) -> None:
    handles = {}
    for ax in axes.flat:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    labels = [label for label in order if label in handles]
    if labels:
        figure.legend([handles[label] for label in labels], labels, loc="outside lower center", ncols=len(labels))
