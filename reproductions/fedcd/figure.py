"""The figures of the FedCD paper from our runs, in one picture: by archetype, change, bits, and models by bias."""

import functools
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from datasets.archetypes import SUCCESSES, compute_hypergeometric_shares
from datasets.partition_settings import DROP, MERGE
from launch.pages.plots.archetype_plots import paint_preferences, read_preferences, style_archetypes
from launch.pages.plots.style import COLORS, LINES, MARKERS, count_values
from launch.runs.archetype_metrics import CHANGE, MIXED, name_accuracy
from launch.runs.columns import CONFIG_FILE, EVENTS_FILE, ROUND
from launch.runs.run_records import RunRecord, read_json
from launch.settings.algorithms import ALGORITHMS
from reproductions.engine.figures import Line, Panel, compute_curve, compute_curve_by_round, draw_panels, style_series
from reproductions.engine.tables import select
from reproductions.fedcd.measures import (
    ACCURACY,
    AUTHORS,
    AXES,
    BASE,
    CIFAR10,
    COMPARED_ROUNDS,
    FEDAVG,
    FEDCD,
    GROUPS,
    HIERARCHICAL,
    HYPERGEOMETRIC,
    LATE,
    LONG,
    NAMES,
    NUM_ARCHETYPES,
    SIZES,
    SMALL,
    TEXTS,
    add_up_costs,
    choose_runs,
    make_runs,
    read_authors_run,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = {HIERARCHICAL: ("Figure 1a", "Figure 1b", "Figure 2"), HYPERGEOMETRIC: ("Figure 4a", "Figure 4b", "Figure 5")}
STYLES = {
    algo: {"color": ALGORITHMS[algo].color, "linestyle": LINES[i], "marker": MARKERS[i], "markersize": 3}
    for i, algo in enumerate(NAMES)
}
LONG_LABEL = 20  # characters: three such labels do not fit side by side below a panel
MODEL_COLUMNS = {"live_models": "live", "preferred_models": "preferred", MIXED: "preferred across meta-archetypes"}
NUM_CLASSES = 10
SHOWN = "the first seed by archetype, else the mean over the seeds and one deviation either side"
LAST = COMPARED_ROUNDS[HIERARCHICAL]  # of most panels


def draw_fedcd_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `fedcd.png`: a row for each experiment, one for bits, biases and preferences, one for sizes and costs.

    Accuracies by archetype and preferences are of the first seed, since a mean over seeds would hide their swings; the
    other curves are means over the seeds, with a band of one deviation either side. Figures 2 and 5 are of the longest
    runs. Printed Figures 1b and 4b have FedCD's curves among FedAvg's, which would hide both here.
    """
    chosen = choose_runs(make_runs(runs))
    frame = chosen[chosen.whole]
    size = choose_size(frame)
    own = select(frame, preset=size, dataset=HIERARCHICAL, setting=BASE)
    by_algo = {algo: own.run[own.algo == algo] for algo in NAMES}
    lines = _list_lines({label: (by_algo[FEDCD], column) for column, label in MODEL_COLUMNS.items()})
    models = _make_panel("Models of hierarchical archetypes", "models", lines)._replace(paint=count_values)
    rows = [
        [*_list_experiment(frame, HIERARCHICAL, size), models],
        [*_list_experiment(frame, HYPERGEOMETRIC, size), _show_shares(frame, size)],
        [*_list_variants(frame, size), _show_preferences(by_algo[FEDCD])],
        [
            *_list_sizes(chosen),
            _show_costs("What travels, hierarchical", "MB a round, both directions", by_algo, "megabytes"),
            _show_costs("Time, hierarchical", "seconds a round, real", by_algo, "real_s"),
        ],
    ]
    data = ", ".join(sorted(set(frame.data[frame.preset == size]))) or CIFAR10
    title = f"FedCD on {data}, {SIZES[size]}: {SHOWN}"
    # Sixteen panels in one picture: smaller titles fit, and fewer dots keep the file small.
    style = {"axes.titlesize": 10, "savefig.dpi": 85}
    return draw_panels(rows, folder / "fedcd.png", title, (4.6, 4.4), add_legends, style)


def choose_size(frame: pd.DataFrame, partition: str = HIERARCHICAL, settings: Iterable[str] = (BASE,)) -> str:
    """The size that is drawn: the first with runs of these settings, of both algorithms if any has."""
    own = frame[(frame.dataset == partition) & frame.setting.isin([*settings])]
    algos = own.groupby("preset").algo.nunique().reindex(TEXTS["drawn_first"], fill_value=0)
    return algos.idxmax() if algos.any() else SMALL


def add_legends(figure: "Figure", axes: np.ndarray) -> None:
    """A legend below each panel, since the curves leave no corner free; row by row."""
    for ax in axes.flat:
        handles, labels = ax.get_legend_handles_labels()
        if labels and not ax.images:
            # As many columns as fit below a panel; of ten archetypes, five belong together.
            columns, title = 2 if max(map(len, labels)) > LONG_LABEL else 3, None
            if all(map(str.isdigit, labels)):
                columns, title = 6 if len(labels) == 6 else 5, "archetype"
            # matplotlib fills a legend column by column.
            order = [i for column in range(columns) for i in range(column, len(labels), columns)]
            below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14), "fontsize": 8, "title_fontsize": 8}
            handles, labels = ([each[i] for i in order] for each in (handles, labels))
            ax.legend(handles, labels, ncols=columns, title=title, columnspacing=1.2, **below)


def _make_panel(
    title: str,
    ylabel: str,
    lines: Sequence[Line],
    size: str = "",
    usual: str = "",
    bounds: tuple[float, float | None] = (0, None),
    **axes: Any,
) -> Panel:
    """A panel whose title has its size below it if that is not the one that the whole figure names."""
    title = title if size == usual else f"{title}\n({SIZES[size]})"
    return Panel(lines, axes={"title": title, "xlabel": ROUND, "ylabel": ylabel, **axes}, bounds=bounds)


def _list_lines(drawn: Mapping[str, tuple[pd.Series, str]], last: int = LAST, **style: Any) -> list[Line]:
    """A line for each label's runs and column, up to a round.

    It ends where the shortest of its runs does: past that, a mean would jump.
    """
    styles = style_series(drawn, **{"alpha": 0.15, "linewidth": 1.4, "markersize": 3, **style})
    curves = {label: compute_curve_by_round(*each, last, of_all=True) for label, each in drawn.items()}
    return [Line(label, curve, styles[label]) for label, curve in curves.items()]


def _list_experiment(frame: pd.DataFrame, partition: str, usual: str) -> list[Panel]:
    """FedCD by archetype, FedAvg by archetype, and the change of both."""
    size, last, figures = choose_size(frame, partition), COMPARED_ROUNDS[partition], FIGURES[partition]
    groups = [int(i in GROUPS[partition].get("meta_1", ())) for i in range(NUM_ARCHETYPES[partition])]
    panels, changes = [], []
    for algo, figure in zip(NAMES, figures, strict=False):
        own = select(frame, preset=size, dataset=partition, setting=BASE, algo=algo)
        lines = [
            Line(
                str(i),
                compute_curve_by_round(own.run.head(1), name_accuracy(i), last),
                {"linewidth": 1.2, "marker": MARKERS[COLORS.index(style["color"])], "markersize": 3, **style},
            )
            for i, style in enumerate(style_archetypes(groups))
        ]
        title = f"{figure}: {NAMES[algo]}, {partition}"
        panels.append(_make_panel(title, "accuracy by archetype", lines, size, usual, bounds=(0, 1)))
        # A mean over other seeds from some round on would look like a change.
        longest = own.run[own.rounds == own.rounds.max()]
        label = f"{NAMES[algo]}, {len(longest)} seed{'s' if len(longest) > 1 else ''}"
        changes += _list_lines({label: (longest, CHANGE)}, max(last, LONG), **STYLES[algo])
    title = f"{figures[2]}: change of a device's accuracy"
    return [*panels, _make_panel(title, "mean change in a round", changes, size, usual)]


def _show_shares(frame: pd.DataFrame, usual: str) -> Panel:
    """Figure 3: what share of a device's images has which label in these runs; without any, as printed."""
    size = choose_size(frame, HYPERGEOMETRIC)
    runs = select(frame, preset=size, dataset=HYPERGEOMETRIC, setting=BASE, algo=FEDCD).run
    printed = {"hypergeometric_draws": NUM_CLASSES, "hypergeometric_last_outcome": DROP}
    flags = runs.iloc[0].flags if len(runs) else printed
    # Runs of earlier versions have no outcome without a label.
    draws, last = flags["hypergeometric_draws"], flags.get("hypergeometric_last_outcome", MERGE)
    lines = []
    for i, successes in enumerate(SUCCESSES):
        shares = compute_hypergeometric_shares(successes, draws, NUM_CLASSES, last)
        style = {"color": COLORS[i], "marker": MARKERS[i], "markersize": 4, "linewidth": 1.2}
        lines.append(Line(f"{i}: K = {successes}", compute_curve(range(NUM_CLASSES), shares[:, None]), style))
    title = f"Figure 3: hypergeometric archetypes, n = {draws}"
    axes = {"xlabel": "label", "xticks": range(0, NUM_CLASSES, 2)}
    return _make_panel(title, "share of a device's images", lines, size if len(runs) else usual, usual, **axes)


def _list_variants(frame: pd.DataFrame, usual: str) -> list[Panel]:
    """Bits, FedAvg's curves in the colours of FedCD's, and two columns of FedCD by bias."""
    of_bits, of_biases = (choose_size(frame, settings=AXES[axis]) for axis in ("bits", "bias"))
    frame = select(frame, dataset=HIERARCHICAL)
    lines = []
    for algo, prefix, style in ((FEDCD, "", {}), (FEDAVG, f"{NAMES[FEDAVG]}, ", {"linestyle": ":"})):
        own = select(frame, preset=of_bits, algo=algo)
        bits = {BASE: "32 bits", **AXES["bits"]}
        drawn = {f"{prefix}{label}": (own.run[own.setting == each], ACCURACY) for each, label in bits.items()}
        lines += _list_lines(drawn, **style)
    panels = [_make_panel("Figure 6: bits", "mean accuracy of devices", lines, of_bits, usual)]
    own = select(frame, preset=of_biases, algo=FEDCD)
    for column, title in (
        ("active_models", "Figure 8: active models on all devices"),
        ("score_deviation", "Figure 9: mean deviation of a device's scores"),
    ):
        lines = _list_lines({label: (own.run[own.setting == bias], column) for bias, label in AXES["bias"].items()})
        panels.append(_make_panel(title, "", lines, of_biases, usual))
    return panels


def _show_preferences(runs: pd.Series) -> Panel:
    """Figure 7, of the first seed; without its events the axes stay empty."""
    axes = {"title": "Figure 7: which model each device prefers"}
    for run in runs.head(1):
        archetypes = read_json(run.path / CONFIG_FILE).get("data", {}).get("archetypes")
        if archetypes and (run.path / EVENTS_FILE).exists():
            preferences = read_preferences(run.path / EVENTS_FILE)
            paint = functools.partial(paint_preferences, preferences=preferences, archetypes=archetypes)
            return Panel(axes=axes, paint=paint)
    return Panel(axes=axes)


def _list_sizes(frame: pd.DataFrame) -> list[Panel]:
    """FedCD's accuracy and its changes by size, of shorter runs as well, beside the run that the authors print."""
    chosen = {}
    places = {label: (size, BASE) for size, label in SIZES.items()}
    for label, (size, setting) in (places | {"medium, one schedule for all": (AUTHORS, "shared")}).items():
        own = select(frame, preset=size, dataset=HIERARCHICAL, setting=setting, algo=FEDCD)
        # A run that was interrupted would cut the curve of the others.
        chosen[label] = own.run[own.whole if own.whole.any() else own.rounds == own.rounds.max()]
    panels = []
    for column, what, ylabel in (
        (ACCURACY, "accuracy", "mean accuracy of devices"),
        (CHANGE, "change of a device's accuracy", "mean change in a round"),
    ):
        lines = _list_lines({label: (runs, column) for label, runs in chosen.items()}, LATE)
        theirs = compute_curve_by_round([read_authors_run()], column)
        lines.append(Line("the authors' printed run", theirs, {"color": "black", "linewidth": 1.2}))
        panels.append(_make_panel(f"FedCD, hierarchical: {what}", ylabel, lines))
    return panels


def _show_costs(title: str, ylabel: str, by_algo: Mapping[str, pd.Series], cost: str) -> Panel:
    """What a round costs, mean over the seeds, of the hierarchical experiment; without runs that do not say it."""
    lines = []
    for algo, runs in by_algo.items():
        totals = pd.DataFrame([add_up_costs(run)[cost].loc[:LAST] for run in runs]).dropna().T
        by_round = totals.diff().fillna(totals)
        lines.append(Line(NAMES[algo], compute_curve(by_round.index, by_round.to_numpy()), STYLES[algo]))
    return _make_panel(title, ylabel, lines)
