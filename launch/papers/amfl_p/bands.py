"""Accuracy against fine-tuning steps: means over the seeds, and the 95 % intervals of these means as bands."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from launch.papers.amfl_p.experiments import BySeed
from launch.papers.engine.curves import BAND_ALPHA, GREY, collect_handles
from launch.papers.engine.intervals import Interval, estimate_mean, is_constant

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEVEL = 0.95
ON_BANDS = "means over the seeds and their 95 % intervals (Student's t)"
ByStep = Mapping[int, BySeed]  # accuracies in 0..1 by seed, after so many steps


class Band(NamedTuple):
    """A line: after each number of steps, in order, the mean accuracy in 0..1 and the ends of its interval."""

    steps: Sequence[int]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


def estimate_level(by_seed: BySeed) -> tuple[float, Interval]:
    """The mean over at least one seed and its interval; that of one seed, or of equal numbers, is the mean alone."""
    values = list(by_seed.values())
    mean = sum(values) / len(values)
    return mean, Interval(mean, mean) if is_constant(values) else estimate_mean(values, LEVEL)


def compute_band(by_step: ByStep) -> Band:
    """The line of what was measured; without places if nothing was."""
    steps = sorted(each for each, by_seed in by_step.items() if by_seed)
    levels = [estimate_level(by_step[each]) for each in steps]
    means, intervals = [mean for mean, _ in levels], [interval for _, interval in levels]
    return Band(steps, means, [each.low for each in intervals], [each.high for each in intervals])


def draw_band(ax: "Axes", places: Mapping[int, int], band: Band, label: str, **style: Any) -> None:
    """Draws the means as a line and the intervals around it; nothing for a band without places.

    Args:
      ax: the axes.
      places: where each number of steps lies on the axis.
      band: what to draw.
      label: in the legend.
      style: of the line, its colour among it.
    """
    if not band.steps:
        return
    x = [places[each] for each in band.steps]
    ax.fill_between(x, band.low, band.high, color=style["color"], alpha=BAND_ALPHA, linewidth=0)
    ax.plot(x, band.mean, label=label, **style)


def draw_level(ax: "Axes", by_seed: BySeed, label: str) -> None:
    """Draws a result without steps as a line across the panel with its band; nothing without seeds."""
    if by_seed:
        mean, interval = estimate_level(by_seed)
        ax.axhspan(*interval, color=GREY, alpha=BAND_ALPHA, linewidth=0)
        ax.axhline(mean, color=GREY, linestyle=":", label=label)


def label_panels(figure: "Figure", axes: "np.ndarray", places: Mapping[int, int], label: str) -> None:
    """Names the steps below the last row of panels, which share them, and puts one legend of all below the figure."""
    for ax in axes[-1]:
        ax.set_xticks(range(len(places)), list(map(str, places)))
        ax.set_xlabel(label)
    handles = collect_handles(axes)
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=max(1, len(handles)))
