"""Runs in protocols that others published, beside the accuracies that they print. Imports no TensorFlow."""

import pathlib
import re
from collections.abc import Sequence

import pandas as pd

from launch.pages.comparison.seed_statistics import compute_mean
from launch.runs.columns import ROUND
from launch.runs.run_records import RunRecord
from launch.settings.experiments import get_experiment
from reproductions.engine.collection import read_toml
from reproductions.engine.figures import (
    Line,
    Panel,
    arrange,
    compute_curve,
    compute_curve_by_round,
    draw_panels,
    style_series,
)
from reproductions.engine.page import compose_report
from reproductions.engine.paper import Paper
from reproductions.engine.tables import Report, Table, describe, make_frame, show

TEXTS = read_toml("protocols", "tables.toml")
METHODS, PROTOCOLS = TEXTS["method"], TEXTS["protocol"]
JUDGED_BY = {f"{method}_{name}": each["judged_by"] for name, each in PROTOCOLS.items() for method in METHODS}
STYLES = style_series(METHODS, linestyle="-")
PERCENT = "percent"
COLUMNS = ("protocol", "method", "tested on", "rounds", "seeds", "printed", "ours", "difference")
PANELS_A_ROW = 2
TITLE = "Accuracy by round, mean over the seeds; dashed: printed for the last round"
PRINTED = re.compile(r"test accuracy ([\d.]+) %")


def count_rounds(experiment: str) -> int:
    """Of a whole run."""
    return int(get_experiment(experiment).flags["rounds"])


def read_printed(experiment: str) -> float | None:
    """The accuracy in per cent that is printed for an experiment; None if none is."""
    match = PRINTED.match(get_experiment(experiment).printed)
    return float(match[1]) if match else None


def is_finished(run: RunRecord) -> bool:
    """Whether the last round is there, and evaluated."""
    return JUDGED_BY[run.experiment] in run.rounds.get(count_rounds(run.experiment), {})


def measure(run: RunRecord) -> dict[str, float]:
    """The accuracy in per cent after the last round; nothing of a run that is not there yet."""
    if not is_finished(run):
        return {}
    return {PERCENT: 100 * run.rounds[count_rounds(run.experiment)][JUDGED_BY[run.experiment]]}


def tabulate(frame: pd.DataFrame) -> Table:
    """A row for each protocol and method that was run."""
    rows = []
    for protocol, words in PROTOCOLS.items():
        for method, title in METHODS.items():
            name = f"{method}_{protocol}"
            found = frame[frame.experiment == name]
            if len(found):
                printed = read_printed(name)
                shown = (
                    ["", ""] if printed is None else [f"{printed:g}", f"{compute_mean(found[PERCENT]) - printed:+.2f}"]
                )
                ours = show(found[PERCENT], PERCENT)
                place = [words["title"], title, TEXTS["tested_on"][words["judged_by"]]]
                rows.append([*place, str(count_rounds(name)), str(len(found)), shown[0], ours, shown[1]])
    return Table(COLUMNS, rows)


def build_protocols_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The table of accuracies beside the printed ones, and the figure."""
    sections = describe("protocols", {"results": tabulate(make_frame(runs, measure))})
    return compose_report(paper, sections, [run for run in runs if is_finished(run)], {})


def draw_protocols_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `protocols.png`: accuracy by round, a panel a protocol that was run."""
    finished = [run for run in runs if is_finished(run)]
    panels = [panel for name in PROTOCOLS if (panel := _build_panel(finished, name))]
    return draw_panels(arrange(panels, PANELS_A_ROW), folder / "protocols.png", TITLE, (4.2, 3.0))


def _build_panel(runs: Sequence[RunRecord], protocol: str) -> Panel | None:
    """None if the protocol was not run, or has no curve: local training is tested once, at its end."""
    lines, levels = [], []
    judged_by = PROTOCOLS[protocol]["judged_by"]
    curved = [run for run in runs if sum(judged_by in row for row in run.rounds.values()) > 1]
    for method, title in METHODS.items():
        name = f"{method}_{protocol}"
        if own := [run for run in curved if run.experiment == name]:
            lines.append(Line(title, compute_curve_by_round(own, judged_by), STYLES[method]))
            printed = read_printed(name)
            level = compute_curve([0], [[] if printed is None else [printed / 100]])
            levels.append(Line("_", level, {**STYLES[method], "linestyle": "--"}))
    axes = {"title": PROTOCOLS[protocol]["title"], "xlabel": ROUND, "ylabel": judged_by.replace("_", " ")}
    return Panel(lines, levels, axes) if lines else None


PAPER = Paper("protocols", build_protocols_report, draw=draw_protocols_figure)
