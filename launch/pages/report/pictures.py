"""The pictures of a run's page, each with what it is and what it says to somebody who does not see it."""

import base64
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from launch.pages.comparison.compared_run import SECONDS, TOTAL_BYTES, ComparedRun
from launch.pages.plots.progress_plots import LOSSES, Axis, Level, list_axes, name_reached, sketch_progress
from launch.pages.plots.run_plots import list_own_columns
from launch.pages.report.answer import Answer, read_last
from launch.pages.report.words import UNKNOWN, count, show_cell, show_metric
from launch.runs import columns
from launch.runs.column_titles import title_column
from launch.runs.task_columns import PERCENT

METRIC, LOSS = "metric", "loss"
AXIS_WORDS = {
    "round": "rounds",
    "virtual_time": "time of the devices",
    "bytes": "bytes sent",
    "joules": "energy",
    columns.EPSILON_SPENT: "privacy spent",
}
# Of the PNG files, in the order in which the page shows them: section and caption. Those that the sketches show are
# left out, and what is not named here is shown under its file's name.
CLIENTS, DEVICES, TRAINING = "clients", "devices", "training"
CAPTIONS = {
    "partition": (CLIENTS, "What the clients' train examples are"),
    "personal": (CLIENTS, "What each client's own model reaches"),
    "clients_by_round": (CLIENTS, "How the clients' results spread, by round"),
    "clusters": (CLIENTS, "Clients by cluster"),
    "fine_tuning": (CLIENTS, "Results by steps of fine-tuning"),
    "archetypes": (CLIENTS, "Results by kind of client"),
    "preferences": (CLIENTS, "Which model each client prefers"),
    "timeline": (DEVICES, "What the devices did, and when"),
    "participation": (DEVICES, "How old the updates were, and whose they were"),
    "models": (TRAINING, "How many models there were"),
    "drift": (TRAINING, "How far the clients' updates lie apart"),
    "own_columns": (TRAINING, "What the algorithm tells of itself, by round"),
}
SHADED = ("partition", "preferences", "timeline")  # where a colour stands for a number or a state
SKETCHED = ("by_round", "by_virtual_time", "by_bytes", "by_joules", "epsilon")


class Sketch(NamedTuple):
    """A picture of the run's progress: `METRIC` or `LOSS` against an axis.

    Attributes:
      result: which of both.
      axis: by the name of an `Axis`.
      source: the picture, as the address of an image.
      alt: what it says.
    """

    result: str
    axis: str
    source: str
    alt: str


class Picture(NamedTuple):
    """A plot of the run's folder.

    Attributes:
      section: where the page shows it.
      caption: what it is.
      source: the picture, as the address of an image.
      alt: what it says.
      has_shades: whether its colours must stay as they are.
    """

    section: str
    caption: str
    source: str
    alt: str
    has_shades: bool


def sketch_run(run: ComparedRun, answer: Answer) -> list[Sketch]:
    """The main metric, then the loss, each against every axis that the run has."""
    if not {columns.VIRTUAL_TIME_S, columns.BYTES_DOWN, columns.BYTES_UP} <= run.columns.keys():
        axes = [Axis("round", "round", run.columns[columns.ROUND])]
    else:
        axes = list_axes(run.columns)
    if columns.EPSILON_SPENT in run.columns:
        axes.append(Axis(columns.EPSILON_SPENT, "epsilon spent", run.columns[columns.EPSILON_SPENT]))
    task, window = run.task, run.asked.get("plot_smoothing")
    unit = " (%)" if task.metric.unit == PERCENT else f" ({task.metric.unit})" if task.metric.unit else ""
    level = Level(answer.trivial[0].value, answer.trivial[0].label) if answer.trivial else None
    kinds = [(METRIC, name_reached(task), f"{task.title}{unit}", level), (LOSS, LOSSES, "loss", None)]
    sketches = []
    for result, series, label, shown_level in kinds:
        there = {column: name for column, name in series.items() if read_last(run, column) is not None}
        for axis in axes if there else ():
            svg = sketch_progress(
                run.columns, axis, there, label, window if isinstance(window, int) else 0, shown_level
            )
            alt = _describe_progress(run, result, there, axis, shown_level)
            sketches.append(Sketch(result, axis.name, _embed(svg.encode(), "svg+xml"), alt))
    return sketches


def _embed(content: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def _describe_progress(
    run: ComparedRun, result: str, series: Mapping[str, str], axis: Axis, level: Level | None
) -> str:
    """For example "Accuracy against rounds. Global test set: 39.3 % in round 1, 83.6 % in round 6."."""

    def show(value: float) -> str:
        return show_metric(value, run.task) if result == METRIC else show_cell(value)

    heading = run.task.heading if result == METRIC else "Loss"
    sentences = [f"{heading} against {AXIS_WORDS.get(axis.name, axis.label)}."]
    rounds = run.columns[columns.ROUND]
    for column, name in series.items():
        known = np.flatnonzero(np.isfinite(run.columns[column]))
        ends = dict.fromkeys([known[0], known[-1]])
        told = ", ".join(f"{show(float(run.columns[column][i]))} in round {rounds[i]:.0f}" for i in ends)
        sentences.append(f"{name[:1].upper()}{name[1:]}: {told}.")
    if level:
        sentences.append(f"{level.label[:1].upper()}{level.label[1:]}: {show(level.value)}.")
    return " ".join(sentences)


def list_pictures(run: ComparedRun, pictures: Mapping[str, bytes]) -> list[Picture]:
    """The plots of the run's folder that the sketches do not show.

    Args:
      run: the run.
      pictures: PNG files by name.
    """
    names = {pathlib.PurePath(name).stem: name for name in pictures}
    order = [name for name in CAPTIONS if name in names]
    order += [name for name in names if name not in CAPTIONS and name not in SKETCHED]
    listed = []
    for name in order:
        section, caption = CAPTIONS.get(name, (TRAINING, names[name]))
        told = " ".join(_describe_picture(name, run))
        alt = f"{caption}. {told}".strip()
        listed.append(Picture(section, caption, _embed(pictures[names[name]], "png"), alt, name in SHADED))
    return listed


def _describe_picture(name: str, run: ComparedRun) -> Iterator[str]:
    """What a plot says, in sentences, as far as a few numbers can."""
    table = {column: np.asarray(values) for column, values in run.clients.items()}
    sizes = table.get(columns.NUM_TRAIN, np.array([]))
    if name == "partition" and sizes.dtype.kind == "f" and len(sizes):
        yield f"{count(len(sizes), 'client')} with {_span(sizes)} train examples."
    elif name == "personal" and (values := table.get(run.task.of_client)) is not None and values.dtype.kind == "f":
        known = values[np.isfinite(values)]
        if len(known):
            yield f"From {show_metric(float(known.min()), run.task)} to {show_metric(float(known.max()), run.task)}."
    elif name == "clusters" and columns.CLUSTER in table:
        _, members = np.unique(table[columns.CLUSTER], return_counts=True)
        yield f"{count(len(members), 'cluster')} of {', '.join(map(str, members))} clients."
    elif name == "drift":
        yield from _describe_columns(run, [columns.TOTAL_DRIFT, columns.WITHIN_CLUSTER_DRIFT])
    elif name == "models":
        yield from _describe_columns(run, ["live_models", "active_models"])
    elif name == "own_columns":
        # Two of a compared run's columns are made for comparisons.
        measured = {name: values for name, values in run.columns.items() if name not in (TOTAL_BYTES, SECONDS)}
        yield from _describe_columns(run, list_own_columns(measured, run.task))


def _span(values: np.ndarray) -> str:
    least, most = show_cell(float(values.min())), show_cell(float(values.max()))
    return least if least == most else f"{least} to {most}"


def _describe_columns(run: ComparedRun, names: list[str]) -> Iterator[str]:
    for name in names:
        values = run.columns.get(name, np.array([]))
        values = values[np.isfinite(values)]
        if len(values):
            first, last = (show_cell(float(value)) for value in (values[0], values[-1]))
            yield f"{title_column(name)}: {first if first == last else f'{first}, in the end {last}'}."


def describe_choices(sketches: list[Sketch], run: ComparedRun) -> dict[str, Any]:
    """The choices of the sketches: {"results": [(value, words)], "axes": [(value, words)]}, each with its first."""
    words = {METRIC: run.task.heading, LOSS: "Loss"}
    return {
        "results": [(name, words[name]) for name in dict.fromkeys(sketch.result for sketch in sketches)],
        "axes": [(name, AXIS_WORDS.get(name, UNKNOWN)) for name in dict.fromkeys(sketch.axis for sketch in sketches)],
    }
