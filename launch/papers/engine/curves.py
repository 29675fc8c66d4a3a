"""Curves over several runs: the mean over the seeds with a band of one deviation either side."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from launch.plots.style import COLORS, LINES, MARKERS, STYLE, count_rounds, new_figure, save_figure
from launch.runs.columns import TEST_ACCURACY
from launch.runs.run_records import RunRecord
from launch.settings.algorithms import ALGORITHMS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY = "#777777"
BAND_ALPHA = 0.18
COLOR_OF_NAME = {algorithm.title: algorithm.color for algorithm in ALGORITHMS.values()}


class Curve(NamedTuple):
    """Means over the seeds and their sample deviations (0 where there is one seed) at places on an axis."""

    places: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray


class Panel(NamedTuple):
    """One panel of a comparison: for each label the runs of its seeds.

    A label "name, variant" has the colour of "name" and a line style of its own.
    """

    title: str
    runs: Mapping[str, Sequence[RunRecord]]


def compute_curve(places: Sequence[float], values: Sequence[Sequence[float]]) -> Curve:
    """The curve of `values`, at each place those of one or more seeds."""
    mean = [np.mean(each) for each in values]
    deviation = [np.std(each, ddof=1) if len(each) > 1 else 0.0 for each in values]
    return Curve(np.array(places), np.array(mean), np.array(deviation))


def compute_curve_by_round(
    runs: Sequence[RunRecord], column: str, last_round: int | None = None, of_all: bool = False
) -> Curve:
    """The curve of a column of `metrics.csv`.

    Args:
      runs: of one experiment.
      column: its name.
      last_round: where the curve ends at the latest.
      of_all: whether a round needs a value of every run, or counts with those that it has.
    """
    by_round: dict[int, list[float]] = {}
    for run in runs:
        for round_num, metrics in run.rounds.items():
            if column in metrics and (last_round is None or round_num <= last_round):
                by_round.setdefault(round_num, []).append(metrics[column])
    rounds = sorted(round_num for round_num, values in by_round.items() if not of_all or len(values) == len(runs))
    return compute_curve(rounds, [by_round[round_num] for round_num in rounds])


def draw_curve(
    ax: "Axes", curve: Curve, label: str, alpha: float = BAND_ALPHA, step: str | None = None, **style: Any
) -> None:
    """Draws the mean as a line and the band around it; nothing for a curve without places.

    Args:
      ax: the axes.
      curve: what to draw.
      label: in the legend.
      alpha: how opaque the band is.
      step: "post" for a value that stays until the next place; None for straight lines between places.
      style: of the line, its colour among it.
    """
    places, mean, deviation = curve
    if not len(places):
        return
    steps = {} if step is None else {"drawstyle": f"steps-{step}"}
    color = style["color"]
    ax.fill_between(places, mean - deviation, mean + deviation, color=color, alpha=alpha, linewidth=0, step=step)
    ax.plot(places, mean, label=label, **style, **steps)


def say_not_run(ax: "Axes") -> None:
    """Writes across an empty panel that there is nothing to show."""
    ax.text(0.5, 0.5, "not run", transform=ax.transAxes, ha="center", va="center", color=GREY)


def collect_handles(axes: np.ndarray) -> dict[str, Any]:
    """The legend entries of all panels, {label: handle}, the first of each label."""
    handles: dict[str, Any] = {}
    for ax in axes.flat:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    return handles


def draw_comparison(panels: Sequence[Panel], path: pathlib.Path, title: str = "") -> pathlib.Path:
    """Draws test accuracy by round, a panel a setting: the mean over seeds and a band of one deviation either side.

    A panel without runs says so. Panels lie in rows of four.

    Args:
      panels: in reading order; a label has the same colour in all.
      path: the PNG file.
      title: of the whole figure.
    """
    import matplotlib

    styles = _style_labels([label for panel in panels for label in panel.runs])
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    with matplotlib.rc_context(STYLE):
        figure = new_figure(3.4 * columns + 0.6, 2.9 * rows + 0.9)
        # By row, since a row holds the settings of one data set, and two data sets have accuracies far apart.
        axes = figure.subplots(rows, columns, squeeze=False, sharey="row")
        for ax, panel in zip(axes.flat, panels, strict=False):
            for label, runs in panel.runs.items():
                curve = compute_curve_by_round(runs, TEST_ACCURACY)
                # About ten markers a line, however long it is.
                every = max(1, len(curve.places) // 10)
                draw_curve(ax, curve, label, markersize=4, markevery=every, **styles[label])
            ax.set(title=panel.title, xlabel="round")
            count_rounds(ax)
            if not ax.lines:
                say_not_run(ax)
                ax.set_xticks([])
        for ax in axes.flat[len(panels) :]:
            ax.set_axis_off()
        for ax in axes[:, 0]:
            ax.set_ylabel("test accuracy")
        _add_shared_legend(figure, axes, list(styles))
        figure.suptitle(title)
        return save_figure(figure, path)


def _style_labels(labels: Sequence[str]) -> dict[str, dict[str, str]]:
    """How each label is drawn: each name has a marker and a colour of its own, each of its variants a line style.

    The name of an algorithm has the algorithm's colour. The labels come in the order of the legend: a name, its
    variants, the next name.
    """
    names: dict[str, list[str]] = {}
    for label in labels:
        variants = names.setdefault(label.split(", ")[0], [])
        if label not in variants:
            variants.append(label)
    styles = {}
    for i, (name, variants) in enumerate(names.items()):
        color = COLOR_OF_NAME.get(name, COLORS[i % len(COLORS)])
        # The name itself comes first and gets the solid line and the filled marker.
        for k, label in enumerate(sorted(variants, key=lambda label: label != name)):
            styles[label] = {
                "color": color,
                "marker": MARKERS[i % len(MARKERS)],
                "linestyle": LINES[k % len(LINES)],
                "markerfacecolor": "white" if k else color,
            }
    return styles


def _add_shared_legend(figure: "Figure", axes: np.ndarray, order: Sequence[str]) -> None:
    handles = collect_handles(axes)
    labels = [label for label in order if label in handles]
    if labels:
        figure.legend([handles[label] for label in labels], labels, loc="outside lower center", ncols=len(labels))
