"""What private updates cost: accuracy against epsilon, over the seeds. Imports no TensorFlow."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launch.plots.style import COLORS
from launch.runs.columns import EPSILON_SPENT, TEST_ACCURACY
from launch.runs.run_records import RunRecord
from reproductions.engine.figures import Line, Panel, compute_curve, draw_panels
from reproductions.engine.markdown import Report, Table
from reproductions.engine.paper import Paper
from reproductions.engine.report import compose_report
from reproductions.engine.tables import describe, make_frame, make_table, show, show_range

NONE = "none"  # the budget of runs without privacy
BUDGETS = ("1", "2", "4", "8", NONE)  # epsilon
MEASURED = ("budget", "rounds", EPSILON_SPENT, "clip_norm", TEST_ACCURACY)
TITLE = "FedAvg on MNIST, 1,000 clients\nThin lines: runs as they spend their budget"


def list_evaluated(run: RunRecord) -> list[int]:
    """The rounds in which a run was evaluated, ascending; the last one ends it, unless it is still going on."""
    return sorted(round_num for round_num, row in run.rounds.items() if TEST_ACCURACY in row)


def measure(run: RunRecord) -> Mapping[str, Any]:
    """What the last evaluated round says; nothing of a run that was never evaluated."""
    if not (evaluated := list_evaluated(run)):
        return {}
    epsilon, last = run.flags["dp_epsilon"], run.rounds[evaluated[-1]]
    return {
        "budget": f"{epsilon:g}" if epsilon else NONE,
        "rounds": evaluated[-1],
        EPSILON_SPENT: f"{last[EPSILON_SPENT]:.4f}" if epsilon else "",
        "clip_norm": f"{run.flags['dp_clip_norm']:g}" if epsilon else "",
        TEST_ACCURACY: last[TEST_ACCURACY],
    }


def tabulate(frame: pd.DataFrame) -> Table:
    """A row for each epsilon that was run, those without privacy last."""
    columns = {"rounds": show_range, EPSILON_SPENT: "max", "clip_norm": "max", TEST_ACCURACY: show}
    found = frame.groupby("budget", as_index=False)
    return make_table(found.agg({"seed": "size", **columns}).rename(columns={"seed": "seeds"}))


def build_private_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The table of accuracy against epsilon, and the figure."""
    sections = describe("private", {"results": tabulate(make_frame(runs, measure, MEASURED))})
    return compose_report(paper, sections, [run for run in runs if list_evaluated(run)], {})


def draw_private_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `private.png`: the accuracy at the last round against the budget, and each seed's way there."""
    frame = make_frame(runs, measure, MEASURED)
    ends = [100 * frame[TEST_ACCURACY][frame.budget == budget] for budget in BUDGETS]
    lines = []
    for run in runs:
        if run.flags["dp_epsilon"]:
            rows = [run.rounds[round_num] for round_num in list_evaluated(run)]
            spent, accuracies = (np.array([row[name] for row in rows]) for name in (EPSILON_SPENT, TEST_ACCURACY))
            color = COLORS[BUDGETS.index(f"{run.flags['dp_epsilon']:g}")]
            curve = compute_curve(np.log2(spent), 100 * accuracies[:, np.newaxis])
            lines.append(Line("_", curve, {"color": color, "linewidth": 0.9}))
    places = np.log2([float(budget) for budget in BUDGETS[:-1]])
    style = {"color": "#000000", "marker": "o", "linestyle": ":"}
    lines.append(Line("at the last round", compute_curve(places, ends[:-1]), style))
    levels = [Line("without privacy", compute_curve([0], ends[-1:]), {"color": COLORS[1], "linestyle": "--"})]
    axes = {"xlabel": "epsilon spent (delta 1e-5, a client more or less)", "ylabel": "test accuracy (%)"}
    axes |= {"xticks": places, "xticklabels": BUDGETS[:-1]}
    return draw_panels([[Panel(lines, levels, axes)]], folder / "private.png", TITLE, (5.8, 3.6))


PAPER = Paper("private", build_private_report, draw=draw_private_figure, further_metrics=f"{EPSILON_SPENT}|clip_norm")
