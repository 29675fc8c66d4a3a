"""Figures of papers: panels of curves over several runs, each a mean over the seeds with a band either side."""

import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from launch.pages.comparison.seed_statistics import LEAST_SEEDS, compute_deviation, compute_mean, estimate_mean
from launch.pages.plots.label_placement import label_line_ends
from launch.pages.plots.style import (
    COLORS,
    LINES,
    MARKERS,
    STYLE,
    count_rounds,
    new_figure,
    save_figure,
    settle_ticks,
    span_values,
)
from launch.runs.columns import ROUND
from launch.runs.run_records import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY = "#777777"
BAND_ALPHA = 0.18
MOST_MARKERS = 10  # of a line, or nearly so
PANEL_GAP = 0.1  # inches beside a panel, so that the ends of two axes do not touch
LEVEL_END = 0.985  # of the width, where a level ends with its marker


class Curve(NamedTuple):
    """Means over the seeds at places on an axis, and half the width of the band around each.

    Fewer than LEAST_SEEDS have no band: there `spread` is NaN. `singles` has what each of two gave, elsewhere nothing.
    """

    places: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    singles: Sequence[Sequence[float]]


class Line(NamedTuple):
    """A curve and how it looks: its name in the legend, and what matplotlib calls the rest, a colour among it."""

    label: str
    curve: Curve
    style: Mapping[str, Any]


class Panel(NamedTuple):
    """One panel.

    Attributes:
      lines: curves; those without places are left out.
      levels: results that have no place, drawn across the panel: the curve of each has one value, or none.
      axes: what matplotlib's axes are set to, such as title, xlabel and xticks.
      paint: draws what is no curve; None for nothing.
      bounds: the least and the largest value that there can be, None: no such. The axis goes up to them, with room
        for a line that lies there; without any bound it goes as far as what is drawn.
    """

    lines: Sequence[Line] = ()
    levels: Sequence[Line] = ()
    axes: Mapping[str, Any] = {}
    paint: Callable[["Axes"], None] | None = None
    bounds: tuple[float | None, float | None] = (None, None)


def style_series(names: Iterable[str], colors: Mapping[str, str] | None = None, **further: Any) -> dict[str, dict]:
    """How the line of each name looks: markers and line styles in turn, and colours, unless `colors` has the name's."""
    return {
        name: {
            "color": (colors or {}).get(name, COLORS[i % len(COLORS)]),
            "marker": MARKERS[i % len(MARKERS)],
            "linestyle": LINES[i % len(LINES)],
            "markersize": 4,
            **further,
        }
        for i, name in enumerate(names)
    }


def paint_means(ax: "Axes", place: float, values: Sequence[float], color: str, marker: str = "o") -> None:
    """A mark at the mean of `values` and its 95 % interval, at the height `place`; nothing of no values.

    Fewer than LEAST_SEEDS have no interval; two of them have an open mark each.
    """
    if not values:
        return
    found = estimate_mean(values)
    half_width = None if found.count < LEAST_SEEDS else found.half_width
    if 1 < found.count < LEAST_SEEDS:
        ax.scatter(values, [place] * len(values), s=14, marker=marker, facecolors="none", edgecolors=color)
    ax.errorbar(found.mean, place, xerr=half_width, fmt=marker, color=color, markersize=4, capsize=2)


def compute_curve(places: Sequence[float], values: Sequence[Sequence[float]], has_intervals: bool = False) -> Curve:
    """The curve of `values`, at each place those of the seeds; a place without any is left out.

    The band is the sample deviation or, if asked for, the 95 % interval of the mean.
    """
    found = [(place, each) for place, each in zip(places, values, strict=True) if len(each)]
    means = [compute_mean(each) for _, each in found]

    def spread(each: Sequence[float]) -> float:
        if len(each) < LEAST_SEEDS:
            return np.nan
        return estimate_mean(each).half_width if has_intervals else compute_deviation(each) or 0.0

    singles = [list(each) if 1 < len(each) < LEAST_SEEDS else [] for _, each in found]
    return Curve(
        np.array([place for place, _ in found]), np.array(means), np.array([spread(each) for _, each in found]), singles
    )


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
    """Draws the mean as a line, and the band around it or open marks of its seeds; nothing for one without places.

    Args:
      ax: the axes.
      curve: what to draw.
      label: in the legend.
      alpha: how opaque the band is.
      step: "post" for a value that stays until the next place; None for straight lines between places.
      style: of the line, its colour among it.
    """
    places, mean, spread, singles = curve
    if not len(places):
        return
    every = max(1, len(places) // MOST_MARKERS)
    drawn = {"markevery": every} if step is None else {"drawstyle": f"steps-{step}"}
    ax.fill_between(places, mean - spread, mean + spread, color=style["color"], alpha=alpha, linewidth=0, step=step)
    marked = [(place, value) for place, each in list(zip(places, singles, strict=True))[::every] for value in each]
    if marked:
        marker = style.get("marker") or MARKERS[0]
        ax.scatter(*zip(*marked, strict=True), s=10, marker=marker, facecolors="none", edgecolors=style["color"])
    ax.plot(places, mean, label=label, **style, **drawn)


def arrange(panels: Sequence[Panel], width: int) -> list[list[Panel | None]]:
    """Rows of so many panels, of which the last one is filled up with empty places; of none, one that is not run."""
    places = [*panels] or [Panel()]
    places += [None] * (-len(places) % width)
    return [places[start : start + width] for start in range(0, len(places), width)]


def draw_panels(
    rows: Sequence[Sequence[Panel | None]],
    path: pathlib.Path,
    title: str,
    size: tuple[float, float] = (3.4, 2.9),
    name_lines: Callable[["Figure", np.ndarray], None] | None = None,
    style: Mapping[str, Any] = {},
    **share: Any,
) -> pathlib.Path:
    """Draws rows of panels; a panel in which nothing is drawn says that it was not run.

    Args:
      rows: of equal lengths; None leaves a place empty.
      path: the PNG file.
      title: of the whole figure.
      size: width and height of a panel, in inches.
      name_lines: names the lines on a figure's axes, an array; None: one legend below all does.
      style: matplotlib's settings that differ from those of all figures.
      share: sharex and sharey of the panels.
    """
    import matplotlib

    with matplotlib.rc_context({**STYLE, **style}):
        figure = new_figure(size[0] * len(rows[0]) + 0.6, size[1] * len(rows) + 0.9)
        figure.get_layout_engine().set(w_pad=PANEL_GAP)
        axes = figure.subplots(len(rows), len(rows[0]), squeeze=False, **share)
        for ax, panel in zip(axes.flat, (panel for row in rows for panel in row), strict=True):
            if panel is None:
                ax.set_axis_off()
            else:
                _draw_panel(ax, panel)
        figure.suptitle(title)
        (name_lines or _add_legend)(figure, axes)
        settle_ticks(figure)
        return save_figure(figure, path)


def _draw_panel(ax: "Axes", panel: Panel) -> None:
    for label, curve, style in panel.lines:
        draw_curve(ax, curve, label, **style)
    if panel.paint is not None:
        panel.paint(ax)
    if not (ax.lines or ax.images):
        ax.text(0.5, 0.5, "not run", transform=ax.transAxes, ha="center", va="center", color=GREY)
    for label, curve, style in panel.levels:
        for mean, spread in zip(curve.mean, curve.spread, strict=True):
            if np.isfinite(spread):
                ax.axhspan(mean - spread, mean + spread, color=style["color"], alpha=BAND_ALPHA, linewidth=0)
            ax.axhline(mean, xmax=LEVEL_END if style.get("marker") else 1, label=label, markevery=[1], **style)
    if panel.bounds != (None, None):
        seen = [each for each in (*panel.bounds, *ax.dataLim.intervaly) if each is not None and np.isfinite(each)]
        ax.set_ylim(span_values(np.array(seen), panel.bounds))
    ax.set(**panel.axes)
    if ax.get_xlabel() == ROUND:
        count_rounds(ax)


def name_line_ends(figure: "Figure", axes: np.ndarray) -> None:
    """Names each line at its end."""
    # The layout must be settled before labels look for free space.
    figure.draw_without_rendering()
    for ax in axes.flat:
        label_line_ends(ax)


def _add_legend(figure: "Figure", axes: np.ndarray) -> None:
    """The entries of all panels below them, the first of each label."""
    handles: dict[str, Any] = {}
    for ax in axes.flat:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=len(handles))
