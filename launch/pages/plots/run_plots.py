"""The PNG files of a run, which a person looks at first."""

import os
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np

from launch.pages.plots.archetype_plots import draw_archetype_run, list_drawn_columns
from launch.pages.plots.event_plots import REAL, VIRTUAL, draw_events
from launch.pages.plots.label_placement import label_points
from launch.pages.plots.partition_plots import (
    MOST_NAMED_CLIENTS,
    MOST_SHOWN_CLIENTS,
    draw_partition,
    draw_sizes,
    shorten_names,
)
from launch.pages.plots.personal_plots import draw_client_rounds, draw_fine_tuning, draw_personal
from launch.pages.plots.progress_plots import (
    LOSSES,
    MOST_MARKED_ROUNDS,
    Axis,
    draw_progress,
    draw_series,
    list_axes,
    name_reached,
)
from launch.pages.plots.style import (
    COLORS,
    MARKERS,
    PNG,
    count_rounds,
    count_values,
    draw_figure,
    smooth,
    start_at_zero,
    write_formats,
)
from launch.runs import columns
from launch.runs.client_rounds import read_clients_by_round
from launch.runs.column_titles import title_column
from launch.runs.run_records import read_columns, read_config, read_rows
from launch.runs.task_columns import TaskColumns, read_task_columns
from launch.settings.run_flags import NO_PLOTS
from launch.settings.run_titles import are_live, describe_devices, describe_run, describe_split
from tff_algos.protocol import COMMON_METRICS

DRIFTS = {columns.TOTAL_DRIFT: "total", columns.WITHIN_CLUSTER_DRIFT: "within clusters"}
MOST_PANELS, PANELS_A_ROW = 24, 3  # of columns that an algorithm, or a part of a user's, adds


def draw_run(run_dir: str | os.PathLike) -> list[pathlib.Path]:
    """Draws a run's tables into its folder `plots/`; returns the files written.

    Always the task's main metric and the loss by round, by virtual time and by bytes. With the columns `joules_total`
    in `metrics.csv`, by joules, too; with `within_cluster_drift` and `total_drift`, the drift of the updates; with
    `epsilon_spent`, the metric against epsilon; with `cluster`, `plane_x` and `plane_y` in `clients.csv`, the clusters;
    with `label_counts` and `class_names` in `config.json`, the partition, without counts the sizes of the clients;
    with `archetypes` there, accuracy by archetype and what became of FedCD's models; all further columns of
    `metrics.csv`; and what `events.csv`, `clients_by_round.csv.gz` and `fine_tuning.csv` hold.
    Formats and smoothing are those of the flags.

    Raises:
      RunRecordError: there is no run to draw.
      FlagError: its algorithm is the user's own and cannot be used.
      OSError: a file cannot be read or written.
    """
    run_dir = pathlib.Path(run_dir)
    config = read_config(run_dir)
    flags, data = config["flags"], config.get("data", {})
    if flags.get("plot_formats") == NO_PLOTS:
        return []
    with write_formats(flags.get("plot_formats", PNG).split(",")):
        window = flags.get("plot_smoothing", 0)
        task = read_task_columns(data)
        devices = describe_devices(config)
        title = describe_run(flags, data.get("dataset"), devices)
        metrics = read_columns(run_dir / columns.METRICS_FILE)
        plots = run_dir / columns.PLOTS
        # A student's training loss has a part that its test loss lacks.
        is_distilled = flags.get("label_weight", 1) < 1
        losses = LOSSES | ({columns.TRAIN_LOSS: "training (with distillation)"} if is_distilled else {})
        written = [
            draw_progress(metrics, axis, task, losses, title, plots / f"by_{axis.name}.png", window)
            for axis in list_axes(metrics)
        ]
        if DRIFTS.keys() <= metrics.keys():
            written.append(_draw_drift(metrics, title, plots / "drift.png"))
        if columns.EPSILON_SPENT in metrics:
            written.append(_draw_epsilon(metrics, task, title, plots / "epsilon.png"))
        own = list_own_columns(metrics, task)
        if own:
            written.append(_draw_own_columns(metrics, own, title, plots / "own_columns.png", window))
        if (run_dir / columns.CLIENTS_FILE).exists():
            names, clients = _read_names(run_dir / columns.CLIENTS_FILE), read_columns(run_dir / columns.CLIENTS_FILE)
            if {task.of_client, columns.RESOURCE, columns.CLIENT_STEPS} <= clients.keys():
                written.append(draw_personal(clients, task, title, plots / "personal.png"))
            if {columns.CLUSTER, columns.PLANE_X, columns.PLANE_Y} <= clients.keys():
                written.append(_draw_clusters(clients, names, title, plots / "clusters.png"))
            if {"label_counts", "class_names"} <= data.keys():
                split = describe_split(flags, data.get("dataset"), devices)
                path, counts = plots / "partition.png", np.array(data["label_counts"])
                if counts.size and task.kind.is_labelled_by_class:
                    draw_partition(counts, data["class_names"], names[: len(counts)], path, split)
                else:  # how many examples each client has in all
                    num_members = int(data.get(columns.NUM_CLIENTS, len(names)))
                    draw_sizes(clients[columns.NUM_TRAIN][:num_members], names[:num_members], path, split)
                written.append(path)
        if (run_dir / columns.CLIENTS_BY_ROUND_FILE).exists():
            table = read_clients_by_round(run_dir / columns.CLIENTS_BY_ROUND_FILE)
            written.append(draw_client_rounds(table, task, title, plots / "clients_by_round.png"))
        if (run_dir / columns.FINE_TUNING_FILE).exists():
            written.append(
                draw_fine_tuning(read_rows(run_dir / columns.FINE_TUNING_FILE), task, title, plots / "fine_tuning.png")
            )
        if data.get("archetypes") or "live_models" in metrics:
            written += draw_archetype_run(run_dir, data.get("archetypes"), flags, metrics, title)
        if (run_dir / columns.EVENTS_FILE).exists():
            clients = _read_names(run_dir / columns.CLIENTS_FILE) if (run_dir / columns.CLIENTS_FILE).exists() else []
            time_label = REAL if are_live(devices) else VIRTUAL
            written += draw_events(run_dir / columns.EVENTS_FILE, title, plots, clients, time_label)
        return written


def _draw_drift(metrics: Mapping[str, np.ndarray], title: str, path: pathlib.Path) -> pathlib.Path:
    axis = Axis("round", "round", metrics[columns.ROUND])
    with draw_figure(path, 5.5, 3.6) as figure:
        ax = figure.subplots()
        draw_series(ax, metrics, axis, DRIFTS)
        # Drift within clusters is 0 if each client is a cluster of its own; a logarithmic axis could not show that.
        if ax.lines and all(line.get_ydata().min() > 0 for line in ax.lines):
            from matplotlib.ticker import LogFormatter  # plain numbers, even of less than a power of ten

            ax.set_yscale("log")
            ax.yaxis.set_major_formatter(LogFormatter())
            ax.yaxis.set_minor_formatter(LogFormatter())
            ax.grid(visible=True, which="both", axis="y")
        ax.set(xlabel="round", ylabel="mean squared distance")
        count_rounds(ax)
        ax.set_title(f"Drift of the clients' updates\n{title}")
    return path


def _draw_epsilon(metrics: Mapping[str, np.ndarray], task: TaskColumns, title: str, path: pathlib.Path) -> pathlib.Path:
    """The task's main metric against epsilon as it is spent; only the rounds that were evaluated show."""
    axis = Axis(columns.EPSILON_SPENT, "epsilon spent", metrics[columns.EPSILON_SPENT])
    with draw_figure(path, 5.5, 3.6) as figure:
        ax = figure.subplots()
        draw_series(ax, metrics, axis, name_reached(task))
        ax.set_xlim(left=0)
        ax.set(xlabel=axis.label, ylabel=f"{task.label} (not private)")
        ax.set_title(f"{task.heading} against privacy\n{title}")
    return path


def _draw_clusters(
    clients: Mapping[str, np.ndarray], names: Sequence[str], title: str, path: pathlib.Path
) -> pathlib.Path:
    with draw_figure(path, 7.4, 5) as figure:
        ax = figure.subplots()
        for i, cluster in enumerate(np.unique(clients[columns.CLUSTER])):
            members = clients[columns.CLUSTER] == cluster
            ax.scatter(
                clients[columns.PLANE_X][members],
                clients[columns.PLANE_Y][members],
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
            label_points(
                ax, np.column_stack([clients[columns.PLANE_X], clients[columns.PLANE_Y]]), shorten_names(names)
            )
    return path


def list_own_columns(metrics: Mapping[str, np.ndarray], task: TaskColumns) -> list[str]:
    """The columns of `metrics.csv` that no other plot shows or is drawn over: those that an algorithm adds."""
    drawn = {columns.ROUND, *COMMON_METRICS, *task.evaluation, *task.spread, *list_drawn_columns(metrics)}
    drawn |= {columns.EPSILON_SPENT, columns.JOULES, columns.JOULES_TOTAL}
    drawn |= DRIFTS.keys() if DRIFTS.keys() <= metrics.keys() else set()
    return [name for name, values in metrics.items() if name not in drawn and np.isfinite(values).any()][:MOST_PANELS]


def _read_names(path: pathlib.Path) -> list[str]:
    return [row[columns.CLIENT] for row in read_rows(path)]


def _draw_own_columns(
    metrics: Mapping[str, np.ndarray], names: Sequence[str], title: str, path: pathlib.Path, window: int
) -> pathlib.Path:
    """Columns by round, each in a panel of its own, since their units differ."""
    num_columns = min(PANELS_A_ROW, len(names))
    num_rows = -(-len(names) // num_columns)
    with draw_figure(path, 0.6 + 3.6 * num_columns, 0.8 + 2.4 * num_rows) as figure:
        panels = figure.subplots(num_rows, num_columns, squeeze=False).ravel()
        for ax, name in zip(panels, names, strict=False):
            seen = np.isfinite(metrics[name])
            rounds, values = metrics[columns.ROUND][seen], metrics[name][seen]
            if window > 1:
                ax.plot(rounds, values, color=COLORS[0], linewidth=0.8, alpha=0.4)
                ax.plot(rounds, smooth(values, window), color=COLORS[0])
            else:
                marker = "o" if len(values) <= MOST_MARKED_ROUNDS else None
                ax.plot(rounds, values, color=COLORS[0], marker=marker, markersize=4)
            if (values == np.round(values)).all():
                count_values(ax)
            if values.min() >= 0:
                start_at_zero(ax)
            count_rounds(ax)
            ax.set(title=title_column(name), xlabel="round")
        for ax in panels[len(names) :]:
            ax.set_axis_off()
        figure.suptitle(title)
    return path
