"""The figures of the FedCD paper from our runs, in one picture: by archetype, change, bits, and models by bias."""

import pathlib
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from datasets.archetypes import SUCCESSES, compute_hypergeometric_shares
from datasets.partition_settings import DROP, MERGE
from launch.papers.engine.collection import Place, group_runs
from launch.papers.engine.figures import compute_curve, compute_curve_by_round, draw_curve, say_not_run
from launch.papers.fedcd.authors_run import read_authors_run
from launch.papers.fedcd.measures import (
    ACCURACY,
    AUTHORS,
    AUTHORS_SMALL,
    BASE,
    BIASES,
    BITS,
    COMPARED_ROUNDS,
    FEDAVG,
    FEDCD,
    FULL,
    HIERARCHICAL,
    HYPERGEOMETRIC,
    LATE,
    LONG,
    META_ARCHETYPES,
    NAMES,
    NUM_ARCHETYPES,
    PAPER,
    SHARED,
    SIZES,
    SMALL,
    find_place,
    group_whole_runs,
    is_evaluated,
    is_whole,
    keep_one_data_set,
    list_megabytes,
    list_real_seconds,
)
from launch.plots.archetype_plots import paint_preferences, read_preferences, style_archetypes
from launch.plots.style import COLORS, LINES, MARKERS, STYLE, count_rounds, new_figure, save_figure
from launch.runs.archetype_metrics import CHANGE, MIXED, name_accuracy
from launch.runs.columns import CONFIG_FILE, EVENTS_FILE
from launch.runs.run_records import RunRecord, read_json
from launch.settings.algorithms import ALGORITHMS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

META = {
    HIERARCHICAL: [int(archetype in META_ARCHETYPES[1]) for archetype in range(NUM_ARCHETYPES[HIERARCHICAL])],
    HYPERGEOMETRIC: [0] * NUM_ARCHETYPES[HYPERGEOMETRIC],
}
FIGURES = {HIERARCHICAL: ("Figure 1a", "Figure 1b", "Figure 2"), HYPERGEOMETRIC: ("Figure 4a", "Figure 4b", "Figure 5")}
LINES_OF = {FEDCD: LINES[0], FEDAVG: LINES[1]}
COLUMNS = 4
LONG_LABEL = 20  # characters: three such labels do not fit side by side below a panel
DRAWN_FIRST = (AUTHORS, AUTHORS_SMALL, SMALL, FULL, PAPER)  # the largest that has several seeds on 2 cores comes first
MODEL_COLUMNS = {"live_models": "live", "preferred_models": "preferred", MIXED: "preferred across meta-archetypes"}
Runs = Mapping[Place, Sequence[RunRecord]]


def choose_size(by_place: Runs, partition: str = HIERARCHICAL, settings: Collection[str] = (BASE,)) -> str:
    """The size that is drawn: the first in `DRAWN_FIRST` with runs of these settings, of both algorithms if any has."""
    algos = {
        size: {place.algo for place in by_place if place[:2] == (size, partition) and place.setting in settings}
        for size in DRAWN_FIRST
    }
    return max(DRAWN_FIRST, key=lambda size: len(algos[size])) if any(algos.values()) else SMALL


def draw_fedcd_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `fedcd.png`: a row for each experiment, one for bits, biases and preferences, one for sizes and costs.

    Accuracies by archetype and preferences are of the first seed, since a mean over seeds would hide their swings; the
    other curves are means over the seeds, with a band of one deviation either side. Figures 2 and 5 are of the longest
    runs. Printed Figures 1b and 4b have FedCD's curves among FedAvg's, which would hide both here.
    """
    import matplotlib

    by_place = group_whole_runs(runs)
    size = choose_size(by_place)
    # Twelve panels in one picture: smaller titles fit, and fewer dots keep the file small.
    with matplotlib.rc_context({**STYLE, "axes.titlesize": 10, "savefig.dpi": 85}):
        figure = new_figure(19, 18.5)
        axes = figure.subplots(4, COLUMNS)
        for row, partition in zip(axes, (HIERARCHICAL, HYPERGEOMETRIC), strict=False):
            of_row = choose_size(by_place, partition)
            by_algo = {algo: by_place.get(Place(of_row, partition, BASE, algo), ()) for algo in NAMES}
            _draw_experiment(row[:3], partition, by_algo)
            if partition == HIERARCHICAL:
                _draw_models(row[3], by_algo[FEDCD])
            else:
                _draw_shares(row[3], by_algo[FEDCD])
            for ax in row if any(by_algo.values()) else ():
                ax.set_title(_name_size(ax.get_title(), of_row, size))
        bits = {f"{each} bits": BASE if each == "32" else f"{each}bits" for each in ("32", *BITS)}
        of_bits = choose_size(by_place, settings=set(bits.values()) - {BASE})
        _draw_variants(axes[2, 0], by_place, of_bits, bits, ACCURACY)
        _draw_bits_of_fedavg(axes[2, 0], by_place, of_bits, bits)
        axes[2, 0].set(title=_name_size("Figure 6: bits", of_bits, size), ylabel="mean accuracy of devices")
        biases = {f"bias {each}": f"bias{each}" for each in BIASES}
        for ax, column, title in (
            (axes[2, 1], "active_models", "Figure 8: active models on all devices"),
            (axes[2, 2], "score_deviation", "Figure 9: mean deviation of a device's scores"),
        ):
            of_biases = choose_size(by_place, settings=biases.values())
            _draw_variants(ax, by_place, of_biases, biases, column)
            ax.set_title(_name_size(title, of_biases, size))
        _draw_preferences(axes[2, 3], by_place.get(Place(size, HIERARCHICAL, BASE, FEDCD), ()))
        _draw_sizes(axes[3, :2], group_runs(filter(is_evaluated, keep_one_data_set(runs)), find_place))
        _draw_costs(axes[3, 2:], {algo: by_place.get(Place(size, HIERARCHICAL, BASE, algo), ()) for algo in NAMES})
        for ax in axes.flat:
            _finish(ax)
        datasets = {run.dataset for place, members in by_place.items() if place.preset == size for run in members}
        named = ", ".join(sorted(datasets)) or "cifar10"
        figure.suptitle(
            f"FedCD on {named}, {SIZES[size]}: the first seed by archetype, else the mean over the seeds and one "
            "deviation either side"
        )
        return save_figure(figure, folder / "fedcd.png")


def _name_size(title: str, size: str, usual: str) -> str:
    """A panel's title, with its size below it if that is not the one that the whole figure names."""
    return title if size == usual else f"{title}\n({SIZES[size]})"


def _finish(ax: "Axes") -> None:
    if ax.images:
        return
    if not ax.lines:
        say_not_run(ax)
        ax.set(xticks=[], yticks=[])
        return
    if not ax.get_xlabel():
        ax.set_xlabel("round")
    ax.set_ylim(bottom=0)
    count_rounds(ax)
    _add_legend(ax)


def _add_legend(ax: "Axes") -> None:
    """Below the axes, since the curves leave no corner free; row by row."""
    handles, labels = ax.get_legend_handles_labels()
    if not labels:
        return
    # As many columns as fit below a panel; of ten archetypes, five belong together.
    is_by_archetype = all(map(str.isdigit, labels))
    columns = 2 if max(map(len, labels)) > LONG_LABEL else 3
    if is_by_archetype:
        columns = 6 if len(labels) == 6 else 5
    # matplotlib fills a legend column by column.
    order = [i for column in range(columns) for i in range(column, len(labels), columns)]
    ax.legend(
        [handles[i] for i in order],
        [labels[i] for i in order],
        loc="upper center",
        bbox_to_anchor=(0.5, -0.14),
        fontsize=8,
        ncols=columns,
        title="archetype" if is_by_archetype else None,
        title_fontsize=8,
        columnspacing=1.2,
    )


def _draw_experiment(axes: Sequence["Axes"], partition: str, by_algo: Mapping[str, Sequence[RunRecord]]) -> None:
    """FedCD by archetype, FedAvg by archetype, and the change of both."""
    last = COMPARED_ROUNDS[partition]
    for ax, algo, figure in zip(axes, (FEDCD, FEDAVG), FIGURES[partition], strict=False):
        _draw_archetypes(ax, partition, by_algo[algo], last)
        ax.set(title=f"{figure}: {NAMES[algo]}, {partition}", ylabel="accuracy by archetype", ylim=(0, 1))
    for algo, runs in by_algo.items():
        # A curve goes only as far as all of its runs, so the shorter ones would cut it off.
        most = max((len(run.rounds) for run in runs), default=0)
        longest = [run for run in runs if len(run.rounds) == most]
        if longest:
            label = f"{NAMES[algo]}, {len(longest)} seed{'s' if len(longest) > 1 else ''}"
            style = {"color": ALGORITHMS[algo].color, "linestyle": LINES_OF[algo]}
            _draw_column(axes[2], longest, CHANGE, max(last, LONG), label, style)
    axes[2].set(title=f"{FIGURES[partition][2]}: change of a device's accuracy", ylabel="mean change in a round")


def _draw_archetypes(ax: "Axes", partition: str, runs: Sequence[RunRecord], last: int) -> None:
    for i, style in enumerate(style_archetypes(META[partition]) if runs else ()):
        rounds, mean, _ = compute_curve_by_round(runs[:1], name_accuracy(i), last)
        ax.plot(rounds, mean, label=str(i), linewidth=1.2, **style)


def _draw_column(
    ax: "Axes", runs: Sequence[RunRecord], column: str, last: int, label: str, style: Mapping[str, str]
) -> None:
    """A column up to a round, or as far as all runs go: past that, a mean would jump where a run ends."""
    curve = compute_curve_by_round(runs, column, last, of_all=True)
    draw_curve(ax, curve, label, alpha=0.15, linewidth=1.4, **style)


def _draw_sizes(axes: Sequence["Axes"], by_place: Runs) -> None:
    """FedCD's accuracy and its changes by size, of shorter runs as well, beside the run that the authors print."""
    drawn = [(label, Place(size, HIERARCHICAL, BASE, FEDCD)) for size, label in SIZES.items()]
    drawn.append(("medium, one schedule for all", Place(AUTHORS, HIERARCHICAL, SHARED, FEDCD)))
    for i, (label, place) in enumerate(drawn):
        runs = by_place.get(place, ())
        most = max((len(run.rounds) for run in runs), default=0)
        # A run that was interrupted would cut the curve of the others.
        chosen = list(filter(is_whole, runs)) or [run for run in runs if len(run.rounds) == most]
        for ax, column in zip(axes, (ACCURACY, CHANGE), strict=True):
            if chosen:
                _draw_column(ax, chosen, column, LATE, label, _style_series(i))
    theirs = read_authors_run()
    rounds = range(1, len(theirs.accuracies) + 1)
    style = {"color": "black", "linewidth": 1.2, "label": "the authors' printed run"}
    axes[0].plot(rounds, [value / 100 for value in theirs.accuracies], **style)
    axes[1].plot(rounds[1:], [value / 100 for value in theirs.changes[1:]], **style)
    axes[0].set(title="FedCD, hierarchical: accuracy", ylabel="mean accuracy of devices")
    axes[1].set(title="FedCD, hierarchical: change of a device's accuracy", ylabel="mean change in a round")


def _draw_costs(axes: Sequence["Axes"], by_algo: Mapping[str, Sequence[RunRecord]]) -> None:
    """What travels and how long a round lasts, mean over the seeds, of the hierarchical experiment."""
    last = COMPARED_ROUNDS[HIERARCHICAL]
    for algo, runs in by_algo.items():
        for ax, measure in zip(axes, (list_megabytes, list_real_seconds), strict=True):
            totals = [values for values in (measure(run)[:last] for run in runs) if values]
            if totals:
                by_round = np.diff(np.array(totals), axis=1, prepend=0.0)
                curve = compute_curve(range(1, by_round.shape[1] + 1), by_round.T)
                draw_curve(ax, curve, NAMES[algo], color=ALGORITHMS[algo].color, linestyle=LINES_OF[algo])
    axes[0].set(title="What travels, hierarchical", ylabel="MB a round, both directions")
    axes[1].set(title="Time, hierarchical", ylabel="seconds a round, real")


def _style_series(index: int) -> dict[str, str]:
    return {"color": COLORS[index % len(COLORS)], "linestyle": LINES[index % len(LINES)]}


def _draw_variants(ax: "Axes", by_place: Runs, size: str, variants: Mapping[str, str], column: str) -> None:
    """A curve for each variant of the hierarchical experiment that was run."""
    for i, (label, variant) in enumerate(variants.items()):
        runs = by_place.get(Place(size, HIERARCHICAL, variant, FEDCD), ())
        if runs:
            _draw_column(ax, runs, column, COMPARED_ROUNDS[HIERARCHICAL], label, _style_series(i))


def _draw_bits_of_fedavg(ax: "Axes", by_place: Runs, size: str, variants: Mapping[str, str]) -> None:
    """FedAvg's curves beside FedCD's in the same colours, where it was run with fewer bits."""
    by_label = {
        label: by_place.get(Place(size, HIERARCHICAL, variant, FEDAVG), ()) for label, variant in variants.items()
    }
    if not any(runs for label, runs in by_label.items() if variants[label] != BASE):
        return
    for i, (label, runs) in enumerate(by_label.items()):
        if runs:
            style = {"color": COLORS[i % len(COLORS)], "linestyle": ":"}
            _draw_column(ax, runs, ACCURACY, COMPARED_ROUNDS[HIERARCHICAL], f"{NAMES[FEDAVG]}, {label}", style)


def _draw_preferences(ax: "Axes", runs: Sequence[RunRecord]) -> None:
    """Figure 7, of the first seed; without its events the axes stay empty."""
    ax.set_title("Figure 7: which model each device prefers")
    for run in runs[:1]:
        archetypes = read_json(run.path / CONFIG_FILE).get("data", {}).get("archetypes")
        if archetypes and (run.path / EVENTS_FILE).exists():
            paint_preferences(ax, read_preferences(run.path / EVENTS_FILE), archetypes)


def _draw_models(ax: "Axes", runs: Sequence[RunRecord]) -> None:
    for i, (column, label) in enumerate(MODEL_COLUMNS.items()):
        if runs:
            _draw_column(ax, runs, column, COMPARED_ROUNDS[HIERARCHICAL], label, _style_series(i))
    ax.set(title="Models of hierarchical archetypes", ylabel="models")


def _draw_shares(ax: "Axes", runs: Sequence[RunRecord]) -> None:
    """Figure 3: what share of a device's images has which label in these runs; without any, as printed."""
    num_classes = 10
    flags = runs[0].flags if runs else {"hypergeometric_draws": num_classes, "hypergeometric_last_outcome": DROP}
    # Runs of earlier versions have no outcome without a label.
    draws, last = flags["hypergeometric_draws"], flags.get("hypergeometric_last_outcome", MERGE)
    for i, successes in enumerate(SUCCESSES):
        shares = compute_hypergeometric_shares(successes, draws, num_classes, last)
        ax.plot(shares, label=f"{i}: K = {successes}", color=COLORS[i], marker=MARKERS[i], markersize=4, linewidth=1.2)
    ax.set(
        title=f"Figure 3: hypergeometric archetypes, n = {draws}", xlabel="label", ylabel="share of a device's images"
    )
