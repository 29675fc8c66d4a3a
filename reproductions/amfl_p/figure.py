"""AMFL-P's figures: the paper's own and its tables as curves; accuracy against fine-tuning steps in our comparisons."""

import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from launch.pages.plots.personal_plots import compute_bin_means
from launch.runs import columns
from launch.runs.run_records import RunRecord
from launch.settings.algorithms import ALGORITHMS
from reproductions.amfl_p import measures
from reproductions.amfl_p.measures import ACCURACY, ALGOS, AXES, LEVELS, STEPS, TABLE_1_LEVEL
from reproductions.amfl_p.pooled_reference import read_pooled
from reproductions.engine.collection import PRINTED, TUNED
from reproductions.engine.figures import (
    GREY,
    Line,
    Panel,
    compute_curve,
    compute_curve_by_round,
    draw_panels,
    style_series,
)

PRESET_TITLES = {PRINTED: "the paper's rates", TUNED: "tuned"}
TITLE = (
    f"AMFL-P and its baselines on the simulated building ({TABLE_1_LEVEL} heterogeneity but for the second column), "
    "mean over seeds and one deviation either side"
)
STYLES = style_series(ALGOS, {algo: ALGORITHMS[algo].color for algo in ALGOS})
START_STYLES = style_series(AXES["few_shot_start"])
START_STYLES["maml"] = START_STYLES["maml1"]
LEVEL_STYLE = {"color": GREY, "linestyle": ":"}


def draw_amfl_p_figures(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws the paper's figure and, if they have curves, those of our comparisons; returns the path of the former.

    The former is of Figure 1 and Table 2, and of accuracy against resources and against steps; a row a preset.
    """
    frame = measures.make_runs(runs)
    found = measures.make_curves(frame, "start_").reset_index()
    found[["start", "finish"]] = found.variant.str.extract("start_(.+)_(.+)")
    _draw_by_steps(
        folder / "amfl_p_factorial.png",
        "Start and finish, each with its own tuned rate and batch (simulated building)",
        {finish: f"finish: {title}" for finish, title in AXES["finish"].items()},
        {level: f"{level} heterogeneity" for level in LEVELS} | {"structured": "structured (for no claim)"},
        AXES["start"],
        found.groupby(["finish", "setting", "start", "steps"])[ACCURACY].agg(list),
        lambda finish, degree: frame[ACCURACY].get(("local_training", degree), ()),
    )
    few_shot = measures.make_curves(frame, "few_shot_")
    found = few_shot.rename(lambda variant: variant.removeprefix("few_shot_"), level="variant")
    _draw_by_steps(
        folder / "amfl_p_few_shot.png",
        "Few readings, one finish for all starts (simulated building, medium)",
        AXES["sensors"],
        AXES["readings"],
        AXES["few_shot_start"],
        found.groupby(["sensors", "setting", "variant", "steps"]).agg(list),
        lambda sensors, readings: frame[f"accuracy_of_{sensors}"].dropna().get(("few_shot_local", readings), ()),
    )
    placed = measures.place_runs(frame, few_shot, read_pooled())
    rows = [_list_panels(placed[placed.preset == preset]) for preset in PRESET_TITLES]
    for (first, *_), title in zip(rows, PRESET_TITLES.values(), strict=True):
        first.axes["ylabel"] = f"{title}\naccuracy, clients' own later days"
    for panel in rows[-1]:
        del panel.axes["title"]  # which stands above
    return draw_panels(rows, folder / "amfl_p.png", TITLE, (3.4, 3.2), sharey=True)


def _draw_by_steps(
    path: pathlib.Path,
    title: str,
    down: Mapping[str, str],
    across: Mapping[str, str],
    starts: Mapping[str, str],
    found: pd.Series,
    find_local: Callable[[str, str], Sequence[float]],
) -> None:
    """Accuracy against fine-tuning steps, a line a start, local training across; nothing without any line.

    Rows of panels, columns and lines have names and titles. `found` has lists of accuracies, one a seed, by row,
    column, line and steps; `find_local` gives those of local training by row and column.
    """
    measured = sorted(found.index.unique("steps"))
    # Evenly spaced, since steps grow roughly by a factor.
    places = range(len(measured))

    def make_panel(row: str, column: str) -> Panel:
        axes = {"xticks": places, "xticklabels": measured}
        axes |= {"title": across[column]} if row == next(iter(down)) else {"xlabel": "fine-tuning steps at most"}
        axes |= {"ylabel": f"{down[row]}\naccuracy on own later days"} if column == next(iter(across)) else {}
        lines = []
        for start, name in starts.items():
            accuracies = [found.get((row, column, start, steps), ()) for steps in measured]
            lines.append(Line(name, compute_curve(places, accuracies, has_intervals=True), START_STYLES[start]))
        level = compute_curve([0], [find_local(row, column)], has_intervals=True)
        return Panel(lines, [Line("local training, all rounds", level, LEVEL_STYLE)], axes)

    if measured:
        panels = [[make_panel(row, column) for column in across] for row in down]
        on_bands = "means over the seeds and their 95 % intervals (Student's t)"
        draw_panels(panels, path, f"{title}: {on_bands}", sharex=True, sharey=True)


def _list_panels(placed: pd.DataFrame) -> list[Panel]:
    """By round, by level, by resources, by steps; of a preset's rows of `place_runs`."""
    places = range(len(LEVELS))
    levels = {"xticks": places, "xticklabels": LEVELS}
    accuracies = placed.groupby(["algo", "setting"])[ACCURACY].agg(list)
    pooled = compute_curve(places, [[np.mean(accuracies["pooled_reference", level])] for level in LEVELS])
    medium = placed[placed.setting == TABLE_1_LEVEL]
    runs = {algo: medium.run[medium.algo == algo] for algo in ALGOS}
    means = medium[medium.algo.isin(["fine_tuning", "fedavg"])].groupby("algo")[[ACCURACY, STEPS]].mean()
    others = [_make_line(algo, [each[STEPS]], [[each[ACCURACY]]]) for algo, each in means.iterrows()]
    return [
        Panel(
            [Line(ALGOS[algo], compute_curve_by_round(runs[algo], ACCURACY), STYLES[algo]) for algo in ALGOS],
            axes={"title": "by round (Figure 1)", "xlabel": "round"},
        ),
        Panel(
            [_make_line(algo, places, [accuracies.get((algo, level), ()) for level in LEVELS]) for algo in ALGOS]
            + [Line("pooled reference: trees that know the sensor", pooled, LEVEL_STYLE)],
            axes={**levels, "title": "by heterogeneity (Table 2)", "xlabel": "heterogeneity"},
        ),
        Panel(
            _list_fifths(runs["amfl_p"], columns.RESOURCE),
            levels=others,
            axes={"title": "by resources", "xlabel": "resources R_i\n(fifths of the devices)"},
        ),
        Panel(
            _list_fifths(runs["amfl_p"], columns.CLIENT_STEPS) + others,
            axes={"title": "by fine-tuning steps", "xlabel": "fine-tuning steps\n(AMFL-P: fifths of the devices)"},
        ),
    ]


def _make_line(algo: str, places: Sequence[float], values: Sequence[Sequence[float]]) -> Line:
    return Line(ALGOS[algo], compute_curve(places, values), STYLES[algo])


def _list_fifths(runs: Iterable[RunRecord], column: str) -> list[Line]:
    """AMFL-P's accuracy against a column of clients.csv, over the clients of all runs that have the file."""
    tables = [table for table in map(measures.read_clients, runs) if column in table]
    if not tables:
        return []
    values = (np.concatenate([table[name] for table in tables]) for name in (column, columns.ACCURACY))
    places, means = compute_bin_means(*values)
    return [_make_line("amfl_p", places, means[:, None])]
