"""What private updates cost: accuracy against epsilon, over the seeds. Imports no TensorFlow."""

import pathlib
from collections.abc import Sequence

import numpy as np

from launch.plots.style import COLORS
from launch.runs.columns import EPSILON_SPENT, TEST_ACCURACY
from launch.runs.run_records import RunRecord
from reproductions.engine.figures import Line, Panel, compute_curve, draw_panels
from reproductions.engine.folder import read_toml
from reproductions.engine.markdown import Report, Table
from reproductions.engine.paper import Paper
from reproductions.engine.report import compose_report
from reproductions.engine.tables import Values, collect, count, describe, show, show_range

BUDGETS = read_toml("private", "tables.toml")["budget"]  # by experiment
NONE = "none"
ROUND, CLIP_NORM, PERCENT = "rounds", "clip_norm", "percent"
COLUMNS = ("budget", "seeds", ROUND, EPSILON_SPENT, CLIP_NORM, TEST_ACCURACY)
TITLE = "FedAvg on MNIST, 1,000 clients\nThin lines: runs as they spend their budget"


def list_evaluated(run: RunRecord) -> list[int]:
    """The rounds in which a run was evaluated, ascending; the last one ends it, unless it is still going on."""
    return sorted(round_num for round_num, row in run.rounds.items() if TEST_ACCURACY in row)


def measure(run: RunRecord) -> dict[str, float]:
    """What the last evaluated round says; nothing of a run that was never evaluated."""
    if not (evaluated := list_evaluated(run)):
        return {}
    last = run.rounds[evaluated[-1]]
    numbers = {ROUND: float(evaluated[-1]), PERCENT: 100 * last[TEST_ACCURACY]}
    if EPSILON_SPENT in last:
        numbers |= {EPSILON_SPENT: last[EPSILON_SPENT], CLIP_NORM: run.flags["dp_clip_norm"]}
    return numbers


def tabulate(values: Values) -> Table:
    """A row for each epsilon that was run, those without privacy last."""
    rows = []
    for experiment, budget in BUDGETS.items():
        accuracy, rounds, spent, clip_norm = (
            values.get((experiment, number), {}) for number in (PERCENT, ROUND, EPSILON_SPENT, CLIP_NORM)
        )
        if accuracy:
            shown = [f"{max(spent.values()):.4f}", f"{max(clip_norm.values()):g}"] if spent else ["", ""]
            rows.append([budget, count(accuracy), show_range(rounds.values()), *shown, show(accuracy, PERCENT)])
    return Table(COLUMNS, rows)


def build_private_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The table of accuracy against epsilon, and the figure."""
    sections = describe("private", {"results": tabulate(collect(runs, measure))})
    return compose_report(paper, sections, [run for run in runs if list_evaluated(run)], {})


def draw_private_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `private.png`: the accuracy at the last round against the budget, and each seed's way there."""
    values = collect(runs, measure)
    private = {name: float(budget) for name, budget in BUDGETS.items() if budget != NONE}
    colors = dict(zip(private, COLORS, strict=False))
    lines = []
    for run in runs:
        if run.experiment in private:
            rows = [run.rounds[round_num] for round_num in list_evaluated(run)]
            curve = compute_curve(
                np.log2([row[EPSILON_SPENT] for row in rows]), [[100 * row[TEST_ACCURACY]] for row in rows]
            )
            lines.append(Line("_", curve, {"color": colors[run.experiment], "linewidth": 0.9}))
    ends = [list(values.get((name, PERCENT), {}).values()) for name in BUDGETS]
    budgets = np.log2(list(private.values()))
    style = {"color": "#000000", "marker": "o", "linestyle": ":"}
    lines.append(Line("at the last round", compute_curve(budgets, ends[: len(private)]), style))
    levels = [Line("without privacy", compute_curve([0], ends[-1:]), {"color": COLORS[1], "linestyle": "--"})]
    axes = {"xlabel": "epsilon spent (delta 1e-5, a client more or less)", "ylabel": "test accuracy (%)"}
    axes |= {"xticks": budgets, "xticklabels": [f"{budget:g}" for budget in private.values()]}
    return draw_panels([[Panel(lines, levels, axes)]], folder / "private.png", TITLE, (5.8, 3.6))


PAPER = Paper("private", build_private_report, draw=draw_private_figure, further_metrics=f"{EPSILON_SPENT}|clip_norm")
