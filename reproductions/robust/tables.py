"""Aggregators under attack: accuracy by aggregator and attack, over the seeds. Imports no TensorFlow."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from launch.pages.plots.style import COLORS, MARKERS, span_values
from launch.runs.columns import TEST_ACCURACY
from launch.runs.run_records import RunRecord
from reproductions.engine.collection import read_toml
from reproductions.engine.figures import GREY, Panel, arrange, draw_panels, paint_means
from reproductions.engine.page import compose_report
from reproductions.engine.paper import Paper
from reproductions.engine.tables import Report, Table, describe, make_frame, show, show_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TEXTS = read_toml("robust", "tables.toml")
ATTACKS, AGGREGATORS = TEXTS["attack"], TEXTS["aggregator"]  # their words
NONE, WORST = "none", "worst"
ROUNDS = 20  # of a whole run
PERCENT = "percent"
MEASURED = ("aggregator", "attack", PERCENT)
COLUMNS = ("aggregator", "seeds", *ATTACKS, WORST)
TITLE = "FedAvg on MNIST, 10 of 50 clients attack: mean over the seeds with 95 % intervals"
PANELS_A_ROW = 3


def measure(run: RunRecord) -> Mapping[str, Any]:
    """The accuracy in per cent after the last round, and of what; nothing of a run that is not there yet."""
    if TEST_ACCURACY not in (last := run.rounds.get(ROUNDS, {})):
        return {}
    attack = run.experiment.removeprefix("fedavg_mnist_attack_").removesuffix(f"_{run.flags['aggregator']}")
    return {"aggregator": run.flags["aggregator"], "attack": attack, PERCENT: 100 * last[TEST_ACCURACY]}


def tabulate(frame: pd.DataFrame) -> Table:
    """A row for each aggregator that was run. The worst: of the seeds that were run under all attacks."""
    rows = []
    for aggregator, title in AGGREGATORS.items():
        own = frame[frame.aggregator == aggregator]
        by_attack = own.pivot(index="seed", columns="attack", values=PERCENT).reindex(columns=ATTACKS)
        if len(own):
            worst = by_attack.drop(columns=NONE).min(axis=1, skipna=False)
            cells = [show(by_attack[attack], PERCENT) for attack in ATTACKS]
            rows.append([title, show_range(own.groupby("attack").size()), *cells, show(worst, PERCENT)])
    return Table(COLUMNS, rows)


def build_robust_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The table of accuracy by aggregator and attack, and the figure."""
    sections = describe("robust", {"results": tabulate(make_frame(runs, measure, MEASURED))})
    return compose_report(paper, sections, [run for run in runs if measure(run)], {})


def draw_robust_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `robust.png`: test accuracy after the last round, a panel an attack and a row an aggregator."""
    frame = make_frame(runs, measure, MEASURED)
    panels = [_build_panel(frame[frame.attack == attack], title) for attack, title in ATTACKS.items()]
    return draw_panels(
        arrange(panels, PANELS_A_ROW), folder / "robust.png", TITLE, (3.2, 2.4), sharex=True, sharey=True
    )


def _build_panel(frame: pd.DataFrame, title: str) -> Panel:
    def paint(ax: "Axes") -> None:
        for place, name in enumerate(reversed(AGGREGATORS)):
            # The weighted mean, beside which the others are to be read.
            look = (COLORS[1], MARKERS[1]) if name == "mean" else (GREY, MARKERS[0])
            paint_means(ax, place, list(frame[PERCENT][frame.aggregator == name]), *look)
        ax.set_yticks(range(len(AGGREGATORS)), reversed(AGGREGATORS.values()))
        ax.set_xlim(span_values(np.array([0.0, 100.0]), (0, 100)))

    return Panel(axes={"title": title, "xlabel": "test accuracy (%)"}, paint=paint)


PAPER = Paper("robust", build_robust_report, draw=draw_robust_figure, further_metrics="num_attackers")
