"""Plots of a run whose clients belong to archetypes: accuracy by archetype, and what becomes of FedCD's models.

Source: figures 1, 2, 4, 5 and 7 to 9 of Kopparapu et al. 2020.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from launch.pages.plots.style import COLORS, LINES, count_rounds, count_values, draw_figure, label_names, start_at_zero
from launch.runs.archetype_metrics import CHANGE, MIXED, name_accuracy
from launch.runs.columns import CLIENT, EVENTS_FILE, MODEL, PLOTS, PREFERS, ROUND, WHAT
from launch.runs.run_records import RunPath, read_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHORTEST_NAMED = 4  # rounds: shorter preferences have no room for the model's number
HIGHEST, MOST_NUMBERED = 14, 100  # inches; clients whose rows have room for a number
MODEL_SERIES = {
    "Models on the server": {"live_models": "live", "preferred_models": "preferred", MIXED: "of both meta-archetypes"},
    "Active models": {"active_models": "of all devices together"},
    "Score deviation": {"score_deviation": "mean over the devices"},
}


def style_archetypes(meta_archetypes: Sequence[int]) -> list[dict[str, str]]:
    """How the line of each archetype is drawn: a colour of its own in its group, a line style for each group."""
    seen: dict[int, int] = {}
    styles = []
    for group in meta_archetypes:
        place = seen[group] = seen.get(group, -1) + 1
        styles.append({"color": COLORS[place % len(COLORS)], "linestyle": LINES[group % len(LINES)]})
    return styles


def name_archetypes(names: Sequence[str]) -> list[str]:
    """Number and name; the name alone if it is the number."""
    return [name if name == str(i) else f"{i} {name}" for i, name in enumerate(label_names(names))]


def draw_archetypes(
    metrics: Mapping[str, np.ndarray], archetypes: Mapping[str, Any], title: str, path: pathlib.Path
) -> pathlib.Path:
    """Mean accuracy of each archetype's clients by round, and the mean size of the change of a client's accuracy.

    Args:
      metrics: the columns of a `metrics.csv`.
      archetypes: as in the run's `config.json`.
      title: the run.
      path: the PNG file.
    """
    with draw_figure(path, 10.5, 4) as figure:
        accuracy, change = figure.subplots(1, 2, width_ratios=(1.25, 1))
        styles = style_archetypes(archetypes["meta_archetypes"])
        for i, (name, style) in enumerate(zip(name_archetypes(archetypes["names"]), styles, strict=True)):
            _plot_known(accuracy, metrics[ROUND], metrics[name_accuracy(i)], label=name, linewidth=1.4, **style)
        accuracy.set(xlabel="round", ylabel="accuracy on the clients' own test splits", title="Mean by archetype")
        accuracy.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)
        _plot_known(change, metrics[ROUND], metrics[CHANGE], color=COLORS[0])
        change.set(xlabel="round", ylabel="mean size over the clients", title="Change from the round before")
        start_at_zero(change)
        for ax in (accuracy, change):
            count_rounds(ax)
        figure.suptitle(title)
    return path


def _plot_known(ax: "Axes", rounds: np.ndarray, values: np.ndarray, **style: Any) -> None:
    # A round that was not evaluated has no value. Left out, it does not break the line.
    known = np.isfinite(values)
    ax.plot(rounds[known], values[known], **style)


def draw_models(
    metrics: Mapping[str, np.ndarray], milestones: Sequence[int], title: str, path: pathlib.Path
) -> pathlib.Path:
    """By round: how many models there are, how many the devices have, and how much the devices' scores differ.

    Args:
      metrics: the columns of FedCD's `metrics.csv`.
      milestones: rounds after which models are cloned, each a dotted line.
      title: the run.
      path: the PNG file.
    """
    with draw_figure(path, 12, 3.8) as figure:
        axes = figure.subplots(1, len(MODEL_SERIES))
        for ax, (heading, series) in zip(axes, MODEL_SERIES.items(), strict=True):
            for i, (column, label) in enumerate(series.items()):
                if column in metrics:
                    _plot_known(ax, metrics[ROUND], metrics[column], label=label, color=COLORS[i], linestyle=LINES[i])
            start_at_zero(ax)
            for milestone in milestones:
                ax.axvline(milestone, color="#999999", linestyle=":", linewidth=1, zorder=0.5)
            ax.set(xlabel="round", title=heading)
            ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, fontsize=8)
            count_rounds(ax)
        for ax in axes[:2]:
            count_values(ax)
        # FedCD has it, an algorithm of somebody's own need not.
        if "max_active_models" in metrics:
            axes[1].set_title(f"Active models (at most {np.nanmax(metrics['max_active_models']):.0f} on a device)")
        figure.suptitle(f"{title}\ndotted: after these rounds all models are cloned")
    return path


def list_drawn_columns(metrics: Mapping[str, np.ndarray]) -> set[str]:
    """The columns of `metrics.csv` that the plots of this module show."""
    models = [column for series in MODEL_SERIES.values() for column in series] if has_models(metrics) else []
    of_archetypes = [
        name for name in metrics if name == name_accuracy(name.removeprefix("archetype_").removesuffix("_accuracy"))
    ]
    return {*models, CHANGE, MIXED, "max_active_models", *of_archetypes}


def has_models(metrics: Mapping[str, np.ndarray]) -> bool:
    """Whether these are the columns of an algorithm that makes and drops models, as FedCD does."""
    return {"live_models", "active_models"} <= metrics.keys()


def read_preferences(path: RunPath) -> np.ndarray:
    """The model that each client prefers after each round, from an `events.csv`; int64, shape (rounds, clients).

    A client without a row in a round, as in an archive, still prefers its last model; -1 before its first row.
    """
    rows = [(int(row[ROUND]), int(row[CLIENT]), int(row[MODEL])) for row in read_rows(path) if row[WHAT] == PREFERS]
    rounds, clients, models = np.array(rows, np.int64).reshape(-1, 3).T
    preferences = np.full((rounds.max(initial=0), 1 + clients.max(initial=-1)), -1)
    # Rows are in the order of rounds: each counts until the client's next.
    for round_num, client, model in zip(rounds, clients, models, strict=True):
        preferences[round_num - 1 :, client] = model
    return preferences


def draw_preferences(
    preferences: np.ndarray, archetypes: Mapping[str, Any], title: str, path: pathlib.Path
) -> pathlib.Path:
    """A heat map: which model each client prefers, clients by archetype over rounds; arguments of `paint_preferences`.

    Args:
      title: the run.
      path: the PNG file.
    """
    num_rounds, num_clients = preferences.shape
    with draw_figure(path, min(max(7.5, 4 + 0.14 * num_rounds), 14), min(1.8 + 0.17 * num_clients, HIGHEST)) as figure:
        ax = figure.add_subplot()
        paint_preferences(ax, preferences, archetypes)
        ax.set_title(f"{title}\nmodel with the highest score")
    return path


def paint_preferences(ax: "Axes", preferences: np.ndarray, archetypes: Mapping[str, Any]) -> None:
    """Paints on axes which model each client prefers.

    Args:
      ax: the axes.
      preferences: see `read_preferences`.
      archetypes: as in the run's `config.json`.
    """
    import matplotlib
    from matplotlib.colors import ListedColormap

    kinds = np.array(archetypes["of_clients"])
    # Stable: within an archetype the clients keep their order.
    order = np.argsort(kinds, kind="stable")
    models, indices = np.unique(preferences, return_inverse=True)
    # FedCD may make more models than there are colours of ours.
    palette = [*COLORS, *map(tuple, matplotlib.colormaps["tab20b"].colors)]
    shades = ListedColormap([palette[i % len(palette)] for i in range(len(models))])
    grid = indices.reshape(preferences.shape)[:, order].T
    num_clients, num_rounds = grid.shape
    # Columns are centred on their rounds, which count from 1; the first client is at the top.
    extent = (0.5, num_rounds + 0.5, num_clients - 0.5, -0.5)
    # With a single model, 0 to 0 would be no range.
    ax.imshow(
        grid, aspect="auto", interpolation="nearest", cmap=shades, extent=extent, vmin=0, vmax=max(1, shades.N - 1)
    )
    for client, row in enumerate(grid):
        starts = np.concatenate([[0], np.flatnonzero(np.diff(row)) + 1])  # of the stretches of one model
        for start, length in zip(starts, np.diff([*starts, num_rounds]), strict=True):
            if length >= SHORTEST_NAMED and num_clients <= MOST_NUMBERED:
                ax.text(start + 0.7, client, str(models[row[start]]), va="center", fontsize=6, color="white")
    # White lines divide the archetypes, wider ones the meta-archetypes.
    ends = np.flatnonzero(np.diff(kinds[order])) + 0.5
    groups = np.array(archetypes["meta_archetypes"])[kinds[order]]
    for end in ends:
        is_wide = groups[int(end - 0.5)] != groups[int(end + 0.5)]
        ax.axhline(end, color="white", linewidth=3 if is_wide else 1)
    middles = [np.flatnonzero(kinds[order] == kind).mean() for kind in range(len(archetypes["names"]))]
    ax.set_yticks(middles, name_archetypes(archetypes["names"]))
    ax.grid(visible=False)
    ax.set(xlabel="round", ylabel="clients by archetype")
    handles = [matplotlib.patches.Patch(color=shades(i)) for i in range(len(models))]
    ax.legend(handles, [str(model) for model in models], title="model", loc="center left", bbox_to_anchor=(1, 0.5))
    count_rounds(ax)


def draw_archetype_run(
    run_dir: pathlib.Path,
    archetypes: Mapping[str, Any] | None,
    flags: Mapping[str, Any],
    metrics: Mapping[str, np.ndarray],
    title: str,
) -> list[pathlib.Path]:
    """Draws what a run's `metrics.csv` says by archetype and, of a FedCD run, what became of its models."""
    plots = run_dir / PLOTS
    written = []
    if archetypes and {CHANGE, name_accuracy(0)} <= metrics.keys():
        written.append(draw_archetypes(metrics, archetypes, title, plots / "archetypes.png"))
    if has_models(metrics):
        listed = flags.get("milestones", "")
        milestones = [int(text) for text in listed.split(",") if text.strip()]
        written.append(draw_models(metrics, milestones, title, plots / "models.png"))
        if archetypes and (run_dir / EVENTS_FILE).exists():
            preferences = read_preferences(run_dir / EVENTS_FILE)
            written.append(draw_preferences(preferences, archetypes, title, plots / "preferences.png"))
    return written
