"""Plots of a search: the score of each trial and the best so far, and how much each searched flag mattered."""

import itertools
import pathlib
from collections.abc import Mapping, Sequence

from launch.pages.plots.style import COLORS, MARKERS, STYLE, new_figure, save_figure
from launch.sweeps.tuning.trials import Outcome, State

HISTORY_PLOT, IMPORTANCE_PLOT = "history.png", "importance.png"


def draw_history(path: pathlib.Path, outcomes: Sequence[Outcome], objective: str, sign: int = 1) -> None:
    """Draws the mean score of each complete trial, the best so far, and where pruned ones were stopped.

    `sign` is 1 if a larger score is better, -1 if a lower one is.
    """
    import matplotlib
    from matplotlib.ticker import MaxNLocator

    complete = [(each.number, each.mean) for each in outcomes if each.mean is not None]
    pruned = [(each.number, each.pruned[1]) for each in outcomes if each.state is State.PRUNED]
    with matplotlib.rc_context(STYLE):
        figure = new_figure(7, 4)
        ax = figure.subplots()
        if complete:
            numbers, means = zip(*complete, strict=True)
            best = list(itertools.accumulate(means, max if sign > 0 else min))
            end = max(each.number for each in outcomes)
            ax.step([*numbers, end], [*best, best[-1]], where="post", color=COLORS[0], label="best so far")
            ax.plot(numbers, means, MARKERS[0], color=COLORS[0], markersize=6, label="complete trial")
        if pruned:
            numbers, values = zip(*pruned, strict=True)
            label = "pruned trial, when it was stopped"
            ax.plot(numbers, values, MARKERS[1], color=COLORS[1], fillstyle="none", label=label)
        ax.set(xlabel="trial", ylabel=objective.replace("_", " "), title="Scores on validation examples")
        ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
        if complete or pruned:
            figure.legend(loc="outside lower center", ncols=3)
        save_figure(figure, path)


def draw_importance(path: pathlib.Path, importance: Mapping[str, float], objective: str) -> None:
    """Draws a bar for each searched flag: its share of the importance of all, the largest on top."""
    import matplotlib

    ranked = sorted(importance.items(), key=lambda pair: pair[1])
    names, shares = zip(*ranked, strict=True)
    with matplotlib.rc_context(STYLE):
        figure = new_figure(7, 1.4 + 0.35 * len(names))
        ax = figure.subplots()
        bars = ax.barh(range(len(names)), shares, color=COLORS[0], height=0.7)
        ax.bar_label(bars, labels=[f"{share:.2f}" for share in shares], padding=3)
        ax.set_yticks(range(len(names)), names)
        ax.grid(visible=False, axis="y")
        ax.set_xlim(0, max(shares) * 1.12 or 1)
        ax.set(xlabel="share of the importance of all", title=f"What {objective.replace('_', ' ')} depends on")
        save_figure(figure, path)
