"""AMFL-P's figures: the paper's own and its tables as curves; accuracy against fine-tuning steps in our comparisons."""

import itertools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from launch.plots.personal_plots import compute_bin_means
from launch.runs import columns
from launch.runs.run_records import RunRecord, read_columns
from launch.settings.algorithms import ALGORITHMS
from reproductions.amfl_p.measures import (
    ACCURACY,
    ALGOS,
    AMFL_P,
    AXES,
    DATASET,
    FEDAVG,
    FINE_TUNING,
    LEVELS,
    OF_SENSORS,
    PLACES,
    RANDOM,
    TABLE_1_LEVEL,
    TRAINED,
    count_mean_steps,
    counts,
    find,
    find_few_shot,
    find_line,
    leave_out_seen,
    measure,
)
from reproductions.amfl_p.pooled_reference import read_pooled_accuracies
from reproductions.engine.collection import PRINTED, TUNED, Place, group_runs
from reproductions.engine.figures import (
    GREY,
    Curve,
    Line,
    Panel,
    compute_curve,
    compute_curve_by_round,
    draw_panels,
    style_series,
)
from reproductions.engine.tables import BySeed, collect

Runs = Mapping[tuple[str, str], Sequence[RunRecord]]  # by algorithm and level

PRESET_TITLES = {PRINTED: "the paper's rates", TUNED: "tuned"}
PANEL_TITLES = ("by round (Figure 1)", "by heterogeneity (Table 2)", "by resources", "by fine-tuning steps")
PANEL_LABELS = ("round", "heterogeneity", "resources R_i (fifths of the devices)",
                "fine-tuning steps (AMFL-P: fifths of the devices)")  # fmt: skip
TITLE = (
    f"AMFL-P and its baselines on the simulated building ({TABLE_1_LEVEL} heterogeneity but for the second column), "
    "mean over seeds and one deviation either side"
)
STYLES = style_series(ALGOS, {algo: ALGORITHMS[algo].color for algo in ALGOS})
START_STYLES = style_series(AXES["few_shot_start"])
START_STYLES["maml"] = START_STYLES["maml1"]
LEVEL_STYLE = {"color": GREY, "linestyle": ":"}


def draw_amfl_p_figures(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws the paper's figure and, if they have curves, those of our comparisons; returns the path of the former."""
    runs = [run for run in runs if counts(run)]
    values = collect(runs, measure)
    finishes = {finish: f"finish: {title}" for finish, title in AXES["finish"].items()}
    degrees = {degree: f"{degree} heterogeneity" for degree in LEVELS} | {"structured": "structured (for no claim)"}
    # A random start's line is that from random weights: its run's model is of the one round that a run must have.
    factorial = {
        (finish, degree, start): find_line(values, f"start_{start}_{finish}", degree, kind)
        for finish, degree in itertools.product(finishes, degrees)
        for start, kind in {**dict.fromkeys(AXES["start"], TRAINED), RANDOM: RANDOM}.items()
    }
    local = {place: find(values, "local_training", place[1]) for place in itertools.product(finishes, degrees)}
    title = "Start and finish, each with its own tuned rate and batch (simulated building)"
    _draw_by_steps(folder / "amfl_p_factorial.png", title, finishes, degrees, AXES["start"], factorial, local)
    sensors, readings, starts = AXES["sensors"], AXES["readings"], AXES["few_shot_start"]
    few_shot = {
        (whose, number, start): find_few_shot(values, start, number, whose)
        for whose, number, start in itertools.product(sensors, readings, starts)
    }
    local = {
        (whose, number): find(values, "few_shot_local", number, OF_SENSORS[whose][0])
        for whose, number in itertools.product(sensors, readings)
    }
    title = "Few readings, one finish for all starts (simulated building, medium)"
    _draw_by_steps(folder / "amfl_p_few_shot.png", title, sensors, readings, starts, few_shot, local)
    return draw_amfl_p_figure(runs, folder / "amfl_p.png")


def _draw_by_steps(
    path: pathlib.Path,
    title: str,
    down: Mapping[str, str],
    across: Mapping[str, str],
    starts: Mapping[str, str],
    found: Mapping[tuple[str, str, str], Mapping[int, BySeed]],
    local: Mapping[tuple[str, str], BySeed],
) -> None:
    """Accuracy against fine-tuning steps, a line a start, local training across; nothing without any line.

    Rows of panels, columns and lines have names and titles; `found` has the accuracies of each by steps and seed,
    `local` those of local training.
    """
    measured = sorted({steps for line in found.values() for steps in line})
    places = range(len(measured))  # evenly spaced, since steps grow roughly by a factor

    def make_line(label: str, values: Sequence[BySeed], style: Mapping[str, Any]) -> Line:
        accuracies = [list(by_seed.values()) for by_seed in values]
        return Line(label, compute_curve(places[: len(values)], accuracies, has_intervals=True), style)

    def make_panel(row: str, column: str) -> Panel:
        axes = {"xticks": places, "xticklabels": measured}
        axes |= {"title": across[column]} if row == next(iter(down)) else {"xlabel": "fine-tuning steps at most"}
        axes |= {"ylabel": f"{down[row]}\naccuracy on own later days"} if column == next(iter(across)) else {}
        lines = [
            make_line(name, [found[row, column, start].get(steps, {}) for steps in measured], START_STYLES[start])
            for start, name in starts.items()
        ]
        return Panel(lines, [make_line("local training, all rounds", [local[row, column]], LEVEL_STYLE)], axes)

    if measured:
        panels = [[make_panel(row, column) for column in across] for row in down]
        on_bands = "means over the seeds and their 95 % intervals (Student's t)"
        draw_panels(panels, path, f"{title}: {on_bands}", sharex=True, sharey=True)


def draw_amfl_p_figure(runs: Sequence[RunRecord], path: pathlib.Path) -> pathlib.Path:
    """Figure 1 and Table 2 as curves, accuracy against resources and against steps; a row of panels a preset."""
    by_place = group_runs(runs, PLACES.get)
    rows = []
    for preset, preset_title in PRESET_TITLES.items():
        found = {
            (algo, level): by_place.get(Place(preset, DATASET, level, algo), []) for algo in ALGOS for level in LEVELS
        }
        pooled = [read_pooled_accuracies()[level] for level in LEVELS]
        pooled = map(leave_out_seen, pooled) if preset == TUNED else pooled
        panels = _list_panels(found, [list(by_seed.values()) for by_seed in pooled])
        for panel, title, label in zip(panels, PANEL_TITLES, PANEL_LABELS, strict=True):
            panel.axes.update({"xlabel": label} | ({"title": title} if preset == PRINTED else {}))
        panels[0].axes["ylabel"] = f"{preset_title}\naccuracy, clients' own later days"
        rows.append(panels)
    return draw_panels(rows, path, TITLE, sharey=True)


def _list_panels(found: Runs, pooled: Sequence[Sequence[float]]) -> list[Panel]:
    """By round, by level, by resources, by steps; of runs by level and algorithm, and of pooled trees by level."""
    ours = found[AMFL_P, TABLE_1_LEVEL]
    medium = {algo: found[algo, TABLE_1_LEVEL] for algo in ALGOS}
    others = {algo: runs for algo, runs in medium.items() if algo in (FINE_TUNING, FEDAVG) and runs}
    ends = {algo: [float(np.mean(_list_final(runs)))] for algo, runs in others.items()}
    steps = {algo: np.mean([count_mean_steps(run) for run in runs]) for algo, runs in others.items()}
    by_level = {algo: [_list_final(found[algo, level]) for level in LEVELS] for algo in ALGOS}
    reference = compute_curve(range(len(LEVELS)), [[np.mean(each)] for each in pooled])
    return [
        Panel([_make_line(algo, compute_curve_by_round(medium[algo], ACCURACY)) for algo in ALGOS], axes={}),
        Panel(
            [_make_line(algo, compute_curve(range(len(LEVELS)), by_level[algo])) for algo in ALGOS]
            + [Line("pooled reference: trees that know the sensor", reference, LEVEL_STYLE)],
            axes={"xticks": range(len(LEVELS)), "xticklabels": LEVELS},
        ),
        Panel(
            _list_fifths(ours, columns.RESOURCE),
            [_make_line(algo, compute_curve([0], [ends[algo]])) for algo in others],
            axes={},
        ),
        Panel(
            _list_fifths(ours, columns.CLIENT_STEPS)
            + [_make_line(algo, compute_curve([steps[algo]], [ends[algo]])) for algo in others],
            axes={},
        ),
    ]


def _make_line(algo: str, curve: Curve) -> Line:
    return Line(ALGOS[algo], curve, STYLES[algo])


def _list_final(runs: Sequence[RunRecord]) -> list[float]:
    return [run.rounds[max(run.rounds)].get(ACCURACY, np.nan) for run in runs]


def _list_fifths(runs: Sequence[RunRecord], column: str) -> list[Line]:
    """AMFL-P's accuracy against a column of clients.csv, over the clients of all runs that have the file."""
    paths = [run.path / columns.CLIENTS_FILE for run in runs]
    tables = [read_columns(path) for path in paths if path.is_file()]
    if not tables or column not in tables[0]:
        return []
    values = (np.concatenate([table[name] for table in tables]) for name in (column, columns.ACCURACY))
    places, means = compute_bin_means(*values)
    return [_make_line(AMFL_P, compute_curve(places, means[:, None]))]
