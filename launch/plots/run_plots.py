"""The PNG files of a run, which a person looks at first."""

import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from launch.plots.archetype_plots import draw_archetype_run
from launch.plots.event_plots import draw_events
from launch.plots.fine_tuning_plots import draw_fine_tuning
from launch.plots.label_placement import label_points
from launch.plots.resource_plots import draw_personal
from launch.plots.style import (
    COLORS,
    LINES,
    MARKERS,
    STYLE,
    count_rounds,
    draw_counts,
    label_names,
    new_figure,
    save_figure,
)
from launch.runs.columns import (
    ACCURACY,
    BYTES_DOWN,
    BYTES_UP,
    CLIENT,
    CLIENT_STEPS,
    CLIENT_TEST_ACCURACY,
    CLIENTS_FILE,
    CLUSTER,
    CONFIG_FILE,
    EPSILON_SPENT,
    EVENTS_FILE,
    FINE_TUNING_FILE,
    JOULES_TOTAL,
    METRICS_FILE,
    PLANE_X,
    PLANE_Y,
    PLOTS,
    RESOURCE,
    ROUND,
    TEST_ACCURACY,
    TEST_LOSS,
    TOTAL_DRIFT,
    TRAIN_LOSS,
    VIRTUAL_TIME_S,
    WITHIN_CLUSTER_DRIFT,
)
from launch.runs.run_records import read_columns, read_json, read_rows
from launch.settings.run_config import find_algorithm
from launch.settings.run_titles import describe_run, describe_split

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACCURACIES = {TEST_ACCURACY: "global test set", CLIENT_TEST_ACCURACY: "clients' own test splits"}
LOSSES = {TEST_LOSS: "global test set", TRAIN_LOSS: "training"}
DRIFTS = {TOTAL_DRIFT: "total", WITHIN_CLUSTER_DRIFT: "within clusters"}
MOST_NAMED_CLIENTS = 60
MOST_SHOWN_CLIENTS = 300  # each with a column of its own; more of them are counted
MOST_MARKED_ROUNDS = 30
LIGHTEST_SHADE = 0.25  # of the colour map: a single example must not look white, which stands for none


class _Axis(NamedTuple):
    """A horizontal axis: file name, label, and one value a round."""

    name: str
    label: str
    values: np.ndarray


def draw_run(run_dir: str | os.PathLike) -> list[pathlib.Path]:
    """Draws a run's tables into its folder `plots/`; returns the files written.

    Always accuracy and loss by round, by virtual time and by bytes. With the columns `joules_total` in `metrics.csv`,
    by joules, too; with `within_cluster_drift` and `total_drift`, the drift of the updates; with `epsilon_spent`,
    accuracy against epsilon; with `cluster`, `plane_x` and `plane_y` in `clients.csv`, the clusters; with
    `label_counts` and `class_names` in `config.json`, the partition; with `archetypes` there, accuracy by archetype and
    what became of FedCD's models; and what `events.csv` and `fine_tuning.csv` hold.

    Raises:
      RunRecordError: there is no run to draw.
      FlagError: its algorithm is the user's own and cannot be used.
      OSError: a file cannot be read or written.
    """
    run_dir = pathlib.Path(run_dir)
    config = read_json(run_dir / CONFIG_FILE)
    flags, data = config["flags"], config.get("data", {})
    title = describe_run(flags, data.get("dataset"))
    metrics = read_columns(run_dir / METRICS_FILE)
    plots = run_dir / PLOTS
    written = [
        _draw_progress(metrics, axis, _name_losses(flags), title, plots / f"by_{axis.name}.png")
        for axis in _list_axes(metrics)
    ]
    if DRIFTS.keys() <= metrics.keys():
        written.append(_draw_drift(metrics, title, plots / "drift.png"))
    if EPSILON_SPENT in metrics:
        written.append(_draw_epsilon(metrics, title, plots / "epsilon.png"))
    if (run_dir / CLIENTS_FILE).exists():
        names, clients = _read_names(run_dir / CLIENTS_FILE), read_columns(run_dir / CLIENTS_FILE)
        if {ACCURACY, RESOURCE, CLIENT_STEPS} <= clients.keys():
            written.append(draw_personal(clients, title, plots / "personal.png"))
        if {CLUSTER, PLANE_X, PLANE_Y} <= clients.keys():
            written.append(_draw_clusters(clients, names, title, plots / "clusters.png"))
        if {"label_counts", "class_names"} <= data.keys():
            written.append(plots / "partition.png")
            counts = np.array(data["label_counts"])
            draw_partition(
                counts,
                data["class_names"],
                names[: len(counts)],
                written[-1],
                describe_split(flags, data.get("dataset")),
            )
    if (run_dir / FINE_TUNING_FILE).exists():
        written.append(draw_fine_tuning(read_rows(run_dir / FINE_TUNING_FILE), title, plots / "fine_tuning.png"))
    if data.get("archetypes") or "live_models" in metrics:
        written += draw_archetype_run(run_dir, data.get("archetypes"), flags, metrics, title)
    if (run_dir / EVENTS_FILE).exists():
        written += draw_events(run_dir / EVENTS_FILE, title, plots)
    return written


def draw_partition(
    label_counts: np.ndarray,
    class_names: Sequence[str],
    client_names: Sequence[str],
    path: str | os.PathLike,
    title: str = "",
) -> None:
    """Draws how many examples of each label each client has, and above it how many examples in all.

    Of many clients it is drawn how many of them have so many examples and so many labels.

    Args:
      label_counts: integers, shape (clients, classes).
      class_names: one a class.
      client_names: one a client.
      path: the PNG file.
      title: what was divided, and how.
    """
    import matplotlib
    from matplotlib.colors import ListedColormap, LogNorm

    counts = np.asarray(label_counts)
    num_clients, num_classes = counts.shape
    heading = f"{title}\n{num_clients:,} clients, {counts.sum():,} train examples".strip()
    if num_clients > MOST_SHOWN_CLIENTS:
        _draw_large_partition(counts, class_names, pathlib.Path(path), heading)
        return
    with matplotlib.rc_context(STYLE):
        figure = new_figure(min(5 + 0.16 * num_clients, 14), 2.6 + 0.24 * num_classes)
        grid = figure.add_gridspec(2, 2, height_ratios=(1, 0.22 * num_classes), width_ratios=(40, 1))
        heat = figure.add_subplot(grid[1, 0])
        totals = figure.add_subplot(grid[0, 0], sharex=heat)
        totals.bar(np.arange(num_clients), counts.sum(axis=1), color="#777777", width=0.8)
        totals.set(ylabel="examples", title=heading)
        totals.grid(visible=False, axis="x")
        totals.tick_params(labelbottom=False)
        shades = ListedColormap(matplotlib.colormaps["YlGnBu"](np.linspace(LIGHTEST_SHADE, 1, 256)))
        # A logarithmic scale needs two bounds that differ, even if there is no example.
        scale = LogNorm(vmin=1, vmax=max(2, counts.max()))
        # Masked, since 0 has no logarithm: what is masked stays white.
        image = heat.imshow(np.ma.masked_equal(counts.T, 0), aspect="auto", cmap=shades, norm=scale)
        figure.colorbar(image, cax=figure.add_subplot(grid[1, 1]), label="examples (white: none)", format="{x:,.0f}")
        heat.grid(visible=False)
        heat.set_yticks(np.arange(num_classes), label_names(class_names))
        _name_clients(heat, client_names)
        heat.set(ylabel="label")
        save_figure(figure, pathlib.Path(path))


def _draw_large_partition(counts: np.ndarray, class_names: Sequence[str], path: pathlib.Path, heading: str) -> None:
    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure = new_figure(12, max(3.6, 1.4 + 0.22 * len(class_names)))
        examples, held, labels = figure.subplots(1, 3)
        draw_counts(examples, counts.sum(axis=1), color=COLORS[0])
        examples.set(xlabel="train examples of a client", ylabel="clients")
        draw_counts(held, (counts > 0).sum(axis=1), color=COLORS[2], rwidth=0.8)
        held.xaxis.get_major_locator().set_params(integer=True)
        held.set(xlabel="labels that a client has", ylabel="clients")
        labels.barh(class_names, counts.sum(axis=0), color="#777777")
        labels.invert_yaxis()
        labels.set(xlabel="train examples of all clients", ylabel="label")
        labels.grid(visible=False, axis="y")
        figure.suptitle(heading)
        save_figure(figure, path)


def _list_axes(metrics: Mapping[str, np.ndarray]) -> list[_Axis]:
    seconds = metrics[VIRTUAL_TIME_S]
    sent_bytes = np.cumsum(metrics[BYTES_DOWN] + metrics[BYTES_UP])
    time_unit, time_size = _pick_unit(seconds, (("s", 1), ("min", 60), ("h", 3600), ("days", 86400)))
    byte_unit, byte_size = _pick_unit(sent_bytes, (("bytes", 1), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)))
    axes = [
        _Axis("round", "round", metrics[ROUND]),
        _Axis("virtual_time", f"virtual time ({time_unit})", seconds / time_size),
        _Axis("bytes", f"sent both ways, all clients ({byte_unit})", sent_bytes / byte_size),
    ]
    if JOULES_TOTAL in metrics:
        joules = metrics[JOULES_TOTAL]
        unit, size = _pick_unit(joules, (("J", 1), ("kJ", 1e3), ("MJ", 1e6), ("GJ", 1e9)))
        axes.append(_Axis("joules", f"energy, all clients ({unit})", joules / size))
    return axes


def _pick_unit(values: np.ndarray, units: Sequence[tuple[str, float]]) -> tuple[str, float]:
    """The largest unit in which the largest value is at least 2."""
    largest = np.nanmax(values, initial=0)
    return next((unit for unit in reversed(units) if largest >= 2 * unit[1]), units[0])


def _draw_progress(
    metrics: Mapping[str, np.ndarray], axis: _Axis, losses: Mapping[str, str], title: str, path: pathlib.Path
) -> pathlib.Path:
    """Accuracy and loss beside each other over one axis."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure = new_figure(9, 3.6)
        accuracy, loss = figure.subplots(1, 2)
        _draw_series(accuracy, metrics, axis, ACCURACIES)
        _draw_series(loss, metrics, axis, losses)
        accuracy.set(ylabel="accuracy", title="Accuracy", xlabel=axis.label)
        loss.set(ylabel="loss", title="Loss", xlabel=axis.label)
        for ax in (accuracy, loss):
            if axis.name == "round":
                count_rounds(ax)
            else:
                ax.set_xlim(left=0)
        figure.suptitle(title)
        return save_figure(figure, path)


def _draw_series(ax: "Axes", metrics: Mapping[str, np.ndarray], axis: _Axis, series: Mapping[str, str]) -> None:
    for i, (column, label) in enumerate(series.items()):
        values = metrics.get(column, np.array([]))
        seen = np.isfinite(values)
        if seen.any():
            # Markers show where a sparse series was measured; in a dense one they would hide the line.
            marker = MARKERS[i] if seen.sum() <= MOST_MARKED_ROUNDS else None
            style = {"color": COLORS[i], "marker": marker, "markersize": 4}
            ax.plot(axis.values[seen], values[seen], LINES[i], label=label, **style)
    if ax.lines:
        ax.legend()


def _draw_drift(metrics: Mapping[str, np.ndarray], title: str, path: pathlib.Path) -> pathlib.Path:
    import matplotlib

    axis = _Axis("round", "round", metrics[ROUND])
    with matplotlib.rc_context(STYLE):
        figure = new_figure(5.5, 3.6)
        ax = figure.subplots()
        _draw_series(ax, metrics, axis, DRIFTS)
        # Drift within clusters is 0 if each client is a cluster of its own; a logarithmic axis could not show that.
        if ax.lines and all(line.get_ydata().min() > 0 for line in ax.lines):
            _scale_by_ratio(ax)
        ax.set(xlabel="round", ylabel="mean squared distance")
        count_rounds(ax)
        ax.set_title(f"Drift of the clients' updates\n{title}")
        return save_figure(figure, path)


def _draw_epsilon(metrics: Mapping[str, np.ndarray], title: str, path: pathlib.Path) -> pathlib.Path:
    """Accuracy against epsilon as it is spent; only the rounds that were evaluated show."""
    import matplotlib

    axis = _Axis(EPSILON_SPENT, "epsilon spent", metrics[EPSILON_SPENT])
    with matplotlib.rc_context(STYLE):
        figure = new_figure(5.5, 3.6)
        ax = figure.subplots()
        _draw_series(ax, metrics, axis, ACCURACIES)
        ax.set_xlim(left=0)
        ax.set(xlabel=axis.label, ylabel="accuracy (not private)")
        ax.set_title(f"Accuracy against privacy\n{title}")
        return save_figure(figure, path)


def _draw_clusters(
    clients: Mapping[str, np.ndarray], names: Sequence[str], title: str, path: pathlib.Path
) -> pathlib.Path:
    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure = new_figure(7.4, 5)
        ax = figure.subplots()
        for i, cluster in enumerate(np.unique(clients[CLUSTER])):
            members = clients[CLUSTER] == cluster
            ax.scatter(
                clients[PLANE_X][members],
                clients[PLANE_Y][members],
                s=40 if len(names) <= MOST_SHOWN_CLIENTS else 6,
                color=COLORS[i % len(COLORS)],
                marker=MARKERS[i % len(MARKERS)],
                edgecolor="white",
                linewidth=0.6,
                label=f"{cluster:g} ({members.sum()})",
            )
        ax.set(xlabel="first principal component of the statistics", ylabel="second principal component")
        ax.set_title(f"Clients in the plane of their statistics\n{title}")
        ax.legend(title="cluster (clients)", loc="center left", bbox_to_anchor=(1, 0.5))
        if len(names) <= MOST_NAMED_CLIENTS:
            figure.draw_without_rendering()  # settles where the points are
            label_points(ax, np.column_stack([clients[PLANE_X], clients[PLANE_Y]]), _shorten(names))
        return save_figure(figure, path)


def _name_clients(ax: "Axes", client_names: Sequence[str]) -> None:
    """The clients' names on the horizontal axis; none if there are too many to read."""
    ax.set_xlabel("client")
    if len(client_names) > MOST_NAMED_CLIENTS:
        return
    names = _shorten(client_names)
    # Numbers fit side by side; names are turned upright.
    are_short = all(name.isdigit() for name in names)
    ax.set_xticks(np.arange(len(names)), names, fontsize=8, rotation=0 if are_short else 90)


def _shorten(client_names: Sequence[str]) -> Sequence[str]:
    """Client numbers if the names are only that, else the names."""
    numbers = [name.removeprefix("client_") for name in client_names]
    return numbers if all(number.isdigit() for number in numbers) else label_names(client_names)


def _read_names(path: pathlib.Path) -> list[str]:
    return [row[CLIENT] for row in read_rows(path)]


def _name_losses(flags: Mapping[str, Any]) -> dict[str, str]:
    """The labels of the losses: a student's training loss has a part that its test loss lacks."""
    is_distilled = flags.get(f"{find_algorithm(flags['algo']).name}_label_weight", 1) < 1
    return LOSSES | ({TRAIN_LOSS: "training (with distillation)"} if is_distilled else {})


def _scale_by_ratio(ax: "Axes") -> None:
    """A logarithmic vertical axis labelled with plain numbers, even if it spans less than a power of ten."""
    from matplotlib.ticker import LogFormatter

    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(LogFormatter())
    ax.yaxis.set_minor_formatter(LogFormatter())
    ax.grid(visible=True, which="both", axis="y")
