"""What private updates cost: accuracy against epsilon, over the seeds. Imports no TensorFlow."""

import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launch.pages.plots.style import COLORS
from launch.runs.columns import EPSILON_SPENT, SUMMARY_FILE, TEST_ACCURACY
from launch.runs.run_records import RunRecord, read_json
from reproductions.engine.figures import Line, Panel, compute_curve, draw_panels
from reproductions.engine.page import compose_report
from reproductions.engine.paper import Paper
from reproductions.engine.tables import Report, Table, describe, make_frame, make_table, show, show_range
from tff_algos.rounds.privacy_accounting import Accounting

BY_LOSSES = "epsilon_by_losses"
MEASURED = ("budget", "rounds", EPSILON_SPENT, BY_LOSSES, "clip_norm", TEST_ACCURACY)
TITLE = "FedAvg on MNIST, 1,000 clients\nThin lines: runs as they spend their budget"


def list_evaluated(run: RunRecord) -> list[int]:
    """The rounds in which a run was evaluated, ascending; the last one ends it, unless it is still going on."""
    return sorted(round_num for round_num, row in run.rounds.items() if TEST_ACCURACY in row)


def measure(run: RunRecord) -> Mapping[str, Any]:
    """What the last evaluated round says, accuracy in per cent; nothing of a run that was never evaluated."""
    if not (evaluated := list_evaluated(run)):
        return {}
    epsilon, last = run.flags["dp_epsilon"], run.rounds[evaluated[-1]]
    return {
        "budget": epsilon or math.inf,
        "rounds": evaluated[-1],
        EPSILON_SPENT: f"{last[EPSILON_SPENT]:.4f}" if epsilon else "",
        BY_LOSSES: f"{account_by_losses(run, evaluated[-1]):.4f}" if epsilon else "",
        "clip_norm": f"{run.flags['dp_clip_norm']:g}" if epsilon else "",
        TEST_ACCURACY: 100 * last[TEST_ACCURACY],
    }


def account_by_losses(run: RunRecord, rounds: int) -> float:
    """What a run's noise cost by privacy loss distributions, whatever accountant it had; NaN without its noise."""
    privacy = read_json(run.path / SUMMARY_FILE).get("fedavg", {}).get("privacy", {})
    names = ("dp_delta", "num_clients", "cohort_size", "participation")
    accounting = Accounting(*(run.flags[name] for name in names))
    return accounting.compute_epsilon(privacy.get("noise_multiplier", math.nan), rounds)


def tabulate(frame: pd.DataFrame) -> Table:
    """A row for each epsilon that was run, those without privacy last."""
    columns = {"rounds": show_range, EPSILON_SPENT: "max", BY_LOSSES: "max", "clip_norm": "max"}
    columns[TEST_ACCURACY] = lambda percents: show(percents, "percent")
    found = frame.groupby("budget", as_index=False).agg({"seed": "size", **columns}).rename(columns={"seed": "seeds"})
    return make_table(found.assign(budget=["none" if math.isinf(each) else f"{each:g}" for each in found.budget]))


def build_private_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The table of accuracy against epsilon, and the figure."""
    sections = describe("private", {"results": tabulate(make_frame(runs, measure, MEASURED))})
    return compose_report(paper, sections, [run for run in runs if list_evaluated(run)], {})


def draw_private_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `private.png`: the accuracy at the last round against the budget, and each seed's way there."""
    frame = make_frame(runs, measure, MEASURED)
    budgets = sorted(set(frame.budget[frame.budget < math.inf]))
    *ends, without = [frame[TEST_ACCURACY][frame.budget == budget] for budget in (*budgets, math.inf)]
    lines = []
    for run in runs:
        if run.flags["dp_epsilon"] and (evaluated := list_evaluated(run)):
            rows = [run.rounds[round_num] for round_num in evaluated]
            spent, accuracies = (np.array([row[name] for row in rows]) for name in (EPSILON_SPENT, TEST_ACCURACY))
            color = COLORS[budgets.index(run.flags["dp_epsilon"]) % len(COLORS)]
            curve = compute_curve(np.log2(spent), 100 * accuracies[:, np.newaxis])
            lines.append(Line("_", curve, {"color": color, "linewidth": 0.9}))
    places = np.log2(budgets)
    style = {"color": "#000000", "marker": "o", "linestyle": ":"}
    lines.append(Line("at the last round", compute_curve(places, ends), style))
    levels = [Line("without privacy", compute_curve([0], [without]), {"color": COLORS[1], "linestyle": "--"})]
    axes = {"xlabel": "epsilon spent (delta 1e-5, a client more or less)", "ylabel": "test accuracy (%)"}
    axes |= {"xticks": places, "xticklabels": [f"{budget:g}" for budget in budgets]}
    return draw_panels([[Panel(lines, levels, axes)]], folder / "private.png", TITLE, (5.8, 3.6))


PAPER = Paper("private", build_private_report, draw=draw_private_figure, further_metrics=f"{EPSILON_SPENT}|clip_norm")
