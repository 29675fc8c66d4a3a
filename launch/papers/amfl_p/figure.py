"""The AMFL-P paper's figure and tables as curves, over the runs of a comparison."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from launch.papers.amfl_p.claims import ACCURACY, AMFL_P, DATASET, FEDAVG, FINE_TUNING, LEVELS, ROWS, TABLE_1_LEVEL
from launch.papers.amfl_p.factorial_figure import draw_factorial_figure
from launch.papers.amfl_p.few_shot_figure import draw_few_shot_figure
from launch.papers.amfl_p.pooled_reference import read_pooled_accuracies
from launch.papers.amfl_p.report import count_mean_steps, find_place
from launch.papers.engine.collection import PRINTED, TUNED, Place, group_runs
from launch.papers.engine.curves import GREY, collect_handles, compute_curve, compute_curve_by_round, draw_curve
from launch.plots.resource_plots import compute_bin_means
from launch.plots.style import LINES, MARKERS, STYLE, new_figure, save_figure
from launch.runs import columns
from launch.runs.run_records import RunRecord, read_columns
from launch.settings.algorithms import ALGORITHMS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRESET_TITLES = {PRINTED: "the paper's rates", TUNED: "tuned"}
STYLES = {
    algo: {"color": ALGORITHMS[algo].color, "marker": MARKERS[i], "linestyle": LINES[i % len(LINES)], "markersize": 4}
    for i, algo in enumerate(ROWS)
}


def draw_amfl_p_figures(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws the paper's figure and, if they have runs, those of our comparisons; returns the path of the former."""
    draw_factorial_figure(runs, folder)
    draw_few_shot_figure(runs, folder)
    return draw_amfl_p_figure(runs, folder)


def draw_amfl_p_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Figure 1 and Table 2 as curves, accuracy against resources and against steps; a row of panels a preset."""
    import matplotlib

    by_place = group_runs(runs, find_place)
    with matplotlib.rc_context(STYLE):
        figure = new_figure(15, 7)
        axes = figure.subplots(len(PRESET_TITLES), 4, sharey=True)
        for row, (preset, preset_title) in zip(axes, PRESET_TITLES.items(), strict=True):
            chosen = {
                (algo, level): by_place.get(Place(preset, DATASET, level, algo), [])
                for algo in ROWS
                for level in LEVELS
            }
            medium = {algo: chosen[algo, TABLE_1_LEVEL] for algo in ROWS}
            _draw_by_round(row[0], medium)
            _draw_by_level(row[1], chosen)
            _draw_by_resource(row[2], medium)
            _draw_by_steps(row[3], medium)
            row[0].set_ylabel(f"{preset_title}\naccuracy, clients' own later days")
        for ax, title in zip(
            axes[0], ("by round (Figure 1)", "by heterogeneity (Table 2)", "by resources", "by fine-tuning steps"),
            strict=True,
        ):  # fmt: skip
            ax.set_title(title)
        handles = collect_handles(axes)
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=max(1, len(handles)))
        figure.suptitle(
            f"AMFL-P and its baselines on the simulated building ({TABLE_1_LEVEL} heterogeneity but for the second "
            "column), mean over seeds and one deviation either side"
        )
        return save_figure(figure, folder / "amfl_p.png")


def _draw_by_round(ax: "Axes", runs: Mapping[str, Sequence[RunRecord]]) -> None:
    for algo, members in runs.items():
        draw_curve(ax, compute_curve_by_round(members, ACCURACY), ROWS[algo], **STYLES[algo])
    ax.set_xlabel("round")


def _final(run: RunRecord) -> float:
    return run.rounds[max(run.rounds)].get(ACCURACY, np.nan)


def _draw_by_level(ax: "Axes", chosen: Mapping[tuple[str, str], Sequence[RunRecord]]) -> None:
    for algo in ROWS:
        levels = [i for i, level in enumerate(LEVELS) if chosen[algo, level]]
        curve = compute_curve(levels, [[_final(run) for run in chosen[algo, LEVELS[i]]] for i in levels])
        draw_curve(ax, curve, ROWS[algo], **STYLES[algo])
    pooled = read_pooled_accuracies()
    levels = [i for i, level in enumerate(LEVELS) if level in pooled]
    if levels:
        means = [np.mean(list(pooled[LEVELS[i]].values())) for i in levels]
        ax.plot(levels, means, color=GREY, linestyle=":", label="pooled reference: trees that know the sensor")
    ax.set_xticks(range(len(LEVELS)), LEVELS)
    ax.set_xlabel("heterogeneity")


def _draw_fifths(ax: "Axes", runs: Sequence[RunRecord], column: str) -> None:
    """AMFL-P's accuracy against a column of clients.csv, over the clients of all runs that have the file."""
    paths = [run.path / columns.CLIENTS_FILE for run in runs]
    tables = [read_columns(path) for path in paths if path.is_file()]
    if tables and column in tables[0]:
        values = (np.concatenate([table[name] for table in tables]) for name in (column, columns.ACCURACY))
        ax.plot(*compute_bin_means(*values), label=ROWS[AMFL_P], **STYLES[AMFL_P])


def _draw_by_resource(ax: "Axes", runs: Mapping[str, Sequence[RunRecord]]) -> None:
    _draw_fifths(ax, runs[AMFL_P], columns.RESOURCE)
    for algo in (FINE_TUNING, FEDAVG):
        if runs[algo]:
            level = np.mean([_final(run) for run in runs[algo]])
            ax.axhline(level, color=STYLES[algo]["color"], linestyle=STYLES[algo]["linestyle"], label=ROWS[algo])
    ax.set_xlabel("resources R_i (fifths of the devices)")


def _draw_by_steps(ax: "Axes", runs: Mapping[str, Sequence[RunRecord]]) -> None:
    _draw_fifths(ax, runs[AMFL_P], columns.CLIENT_STEPS)
    for algo in (FINE_TUNING, FEDAVG):
        if runs[algo]:
            steps, accuracies = [count_mean_steps(run) for run in runs[algo]], [_final(run) for run in runs[algo]]
            ax.plot(np.mean(steps), np.mean(accuracies), label=ROWS[algo], **STYLES[algo])
    ax.set_xlabel("fine-tuning steps (AMFL-P: fifths of the devices)")
