"""Figures 3 and 4 of asynchronous FL, accuracy by aggregation and by virtual time; and the tuned methods by time."""

import itertools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from launch.plots.style import COLORS, LINES
from launch.runs.run_records import RunRecord
from launch.settings.algorithms import ALGORITHMS
from reproductions.async_periodic.measures import (
    AXES,
    COMPARED_CASES,
    FEDAVG,
    FEDAVG_PROXIMAL,
    LAST_ROUND,
    PLACES,
    ROUNDING,
    TIME_BUDGET,
    TUNED_CASES,
    TUNED_METHODS,
    is_whole,
    list_accuracies,
    list_times,
    make_place,
)
from reproductions.engine.collection import Place, group_runs
from reproductions.engine.counted_runs import TUNED_SUFFIX
from reproductions.engine.figures import Curve, Line, Panel, compute_curve, draw_panels, name_line_ends

RunsOfPlaces = Mapping[Place, Sequence[RunRecord]]

KINDS = ("fresh", "old", "equal", FEDAVG, FEDAVG_PROXIMAL)  # of Figures 3 and 4, in this order
TITLES = AXES["weighting"] | AXES["fedavg"]
COLOR_OF_KIND = {
    **dict(zip(KINDS, COLORS, strict=False)),
    **dict.fromkeys((FEDAVG, FEDAVG_PROXIMAL), ALGORITHMS["fedavg"].color),
    **{algo: ALGORITHMS[algo].color for algo in AXES["never_waiting"]},
}
STYLES: Mapping[str, dict[str, Any]] = {
    kind: {"color": color, "linestyle": LINES[i % len(LINES)], "linewidth": 1.3, "alpha": 0.15}
    for i, (kind, color) in enumerate(COLOR_OF_KIND.items())
}
PAPER_FIGURES = dict(zip(COMPARED_CASES, ("Figure 3", "Figure 4"), strict=True))
LABEL_ROOM = 0.33  # right of the lines, of their width
ON_BANDS = "mean over seeds and one deviation either side"


def compute_accuracy_curve(runs: Sequence[RunRecord], is_by_time: bool) -> Curve:
    """The curve of accuracies in per cent by aggregation or by virtual time in T_max, up to where panels end.

    Args:
      runs: one or more, all with the same number of rounds; times are means over them.
      is_by_time: which of the two.
    """
    times = np.mean([list_times(run) for run in runs], axis=0)
    values = list(zip(*map(list_accuracies, runs), strict=True))
    places = times if is_by_time else 1.0 + np.arange(len(values))
    num_shown = int((places <= (TIME_BUDGET if is_by_time else LAST_ROUND) + ROUNDING).sum())
    return compute_curve(places[:num_shown], values[:num_shown])


def draw_async_figures(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `async_tuned.png`, if tuned runs are there, and `async.png`, whose path it returns.

    The former has the methods by virtual time with settings that nobody tuned, and beside it tuned. The latter has rows
    by data case and horizontal axis, columns by policy.
    """
    by_place = group_runs(filter(is_whole, runs), PLACES.get)
    if any(place.algo.endswith(TUNED_SUFFIX) for place in by_place):
        names = {kind: name for (_, kind), name in TUNED_METHODS.items()}
        rows = []
        for case in TUNED_CASES:
            titles = {"": f"{AXES['case'][case]}, not tuned", TUNED_SUFFIX: f"{AXES['case'][case]}, tuned"}
            places = {
                suffix: {kind: make_place(case, policy, kind + suffix) for policy, kind in TUNED_METHODS}
                for suffix in titles
            }
            rows.append([_make_panel(by_place, places[suffix], names, True, titles[suffix]) for suffix in titles])
        title = f"Asynchronous FL and others on its clock, MNIST: {ON_BANDS}"
        _draw(rows, folder / "async_tuned.png", title, (4.7, 2.8))
    rows = []
    for case, is_by_time in itertools.product(COMPARED_CASES, (False, True)):
        panels = []
        for policy in AXES["policy"]:
            title = f"{AXES['case'][case]}, {policy}" + ("" if is_by_time else f" ({PAPER_FIGURES[case]})")
            places = {kind: make_place(case, policy, kind) for kind in KINDS}
            panels.append(_make_panel(by_place, places, TITLES, is_by_time, title))
        rows.append(panels)
    return _draw(rows, folder / "async.png", f"Asynchronous FL on MNIST: {ON_BANDS}", (4.5, 3.2))


def _make_panel(
    by_place: RunsOfPlaces, places: Mapping[str, Place], names: Mapping[str, str], is_by_time: bool, title: str
) -> Panel:
    """A line for each kind whose place has runs."""
    last = TIME_BUDGET if is_by_time else LAST_ROUND
    # A model serves until the next aggregation, so accuracy over time is a step function.
    step = "post" if is_by_time else None
    lines = [
        Line(names[kind], compute_accuracy_curve(by_place[place], is_by_time), STYLES[kind] | {"step": step})
        for kind, place in places.items()
        if place in by_place
    ]
    axes = {"title": title, "xlabel": "virtual time (T_max)" if is_by_time else "aggregation"}
    return Panel(lines, axes=axes | {"xlim": (0, last * (1 + LABEL_ROOM)), "xticks": np.linspace(0, last, 5)})


def _draw(rows: Sequence[Sequence[Panel]], path: pathlib.Path, title: str, size: tuple[float, float]) -> pathlib.Path:
    for row in rows:
        row[0].axes["ylabel"] = "test accuracy (%)"
    return draw_panels(rows, path, title, size, name_line_ends, sharey="row")
