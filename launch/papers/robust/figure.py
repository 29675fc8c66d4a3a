"""The figure of aggregators under attack: a line an aggregator, over the attacks."""

import pathlib
from collections.abc import Sequence

from launch.papers.engine.figures import Line, Panel, compute_curve, draw_panels, style_series
from launch.papers.engine.tables import collect
from launch.papers.robust.measures import AGGREGATORS, ATTACKS, find_results, measure
from launch.runs.run_records import RunRecord

TITLE = "FedAvg on MNIST, 10 of 50 clients attack\nMean over the seeds, bands: sample deviation"


def draw_robust_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `robust.png`: test accuracy after the last round against the attack, a line an aggregator."""
    values, places = collect(runs, measure), range(len(ATTACKS))
    styles = style_series(AGGREGATORS)
    lines = [
        Line(
            title,
            compute_curve(places, [list(each.values()) for each in find_results(values, name).values()]),
            styles[name],
        )
        for name, title in AGGREGATORS.items()
    ]
    axes = {"ylabel": "test accuracy (%)", "xticks": list(places), "xticklabels": list(ATTACKS.values())}
    two_rows = {"legend.fontsize": "small"}
    return draw_panels([[Panel(lines, axes=axes)]], folder / "robust.png", TITLE, (7.4, 4.0), style=two_rows)
