"""A finished run as the page shows it: its flags, its rounds, its clients. Imports no TensorFlow."""

import functools
import pathlib
import types
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from launch.console.shown_text import describe_filled, escape_hidden
from launch.runs.columns import (
    BYTES_DOWN,
    BYTES_UP,
    CLIENT_NAMES,
    CLIENTS_FILE,
    FILLED,
    IS_PERSONAL,
    MAJORITY_ACCURACY,
    MAJORITY_WORST_TENTH,
    METRICS_FILE,
    MODEL,
    NOTES,
    NUM_CLIENTS_LEFT_OUT,
    NUM_EVALUATED,
    NUM_TEST,
    OVERALL_MAJORITY_ACCURACY,
    OVERALL_MAJORITY_TEST_ACCURACY,
    OVERALL_MAJORITY_WORST_TENTH,
    READING,
    ROUND,
    ROUND_S,
    SUMMARY_FILE,
    TEST_LOSS,
    TIMING_FILE,
    UNDEFINED,
)
from launch.runs.run_records import (
    RunPath,
    RunRecordError,
    check_rounds,
    find_stored_idle,
    read_columns,
    read_json,
    read_rows,
    read_settings,
)
from launch.runs.task_columns import CLASSIFICATION, TaskColumns, find_task_columns, read_task_columns
from launch.settings.errors import FlagError
from launch.settings.flag_fields import FlagField, complete_stored_flags
from launch.settings.resuming import PLACES, REQUESTS
from launch.settings.run_config import algorithm_fields, shared_fields
from launch.settings.run_titles import OWN_FILES, add_devices, name_dataset, shorten_split
from launch.settings.trusted_modules import list_foreign_modules
from tff_algos.settings.config_fields import ConfigError

SEED, EXPERIMENT = "seed", "experiment"
SEED_FOLDER = "seed_"  # how a sweep begins the name of a run's folder, inside that of the experiment
# The rows that no model was trained for.
TRIVIAL = " (trivial)"
MAJORITY_OF_CLIENT, MAJORITY_OF_ALL = f"majority class a client{TRIVIAL}", f"majority class overall{TRIVIAL}"
# What is made of the tables: up to the end of a round.
TOTAL_BYTES, SECONDS = "total_bytes", "seconds"
NUM_CLIENT_TEST = "num_client_test"  # in the data section of config.json


class ComparedRun(NamedTuple):
    """A finished run.

    Attributes:
      name: what it is called in the page: its folder, without what all folders share.
      path: the same, to read from.
      flags: every flag that says what was computed, without those that do nothing beside the others, and as
        `experiment`, if it has either, its experiment or the folder of its seeds.
      title: its algorithm's.
      heading: algorithm, data and seed, as above its plots.
      columns: by name, float64 of shape (rounds,), NaN where nothing was measured: those of `metrics.csv`, and
        `seconds` and `total_bytes` up to the end of each round.
      clients: by column of `clients.csv`, one value a client; empty if there is no such table.
      data: sentences on its data: how the examples were read, who was left out, and what was noted.
      task: what its results are called, and which way they are better.
      trivial: by column of `metrics.csv`, what giving always the most frequent class reaches on its data, {row: value};
        empty in runs of earlier versions, and where labels are no classes.
      is_fitted: whether its clients do not all end with the same model.
      asked: every flag as it is stored, and `dataset` by the name of the data.
      digests: those by which its `config.json` knows its data, as `Settings` has them.
      modules: the sums of the user's own modules, by name.
      color: its algorithm's, None where that is not known.
      test_sizes: by column of `metrics.csv`, of how many test examples it is; empty in archives.
      devices: what they were, as from `describe_devices`; title and heading say it as well.
    """

    name: str
    path: RunPath
    flags: Mapping[str, Any]
    title: str
    columns: Mapping[str, np.ndarray]
    clients: Mapping[str, Sequence[str | float]]
    data: tuple[str, ...] = ()
    task: TaskColumns = find_task_columns(CLASSIFICATION)
    heading: str = ""
    trivial: Mapping[str, Mapping[str, float]] = types.MappingProxyType({})
    is_fitted: bool = False
    asked: Mapping[str, Any] = types.MappingProxyType({})
    digests: Mapping[str, str] = types.MappingProxyType({})
    modules: Mapping[str, str] = types.MappingProxyType({})
    color: str | None = None
    test_sizes: Mapping[str, int] = types.MappingProxyType({})
    devices: str = ""


def read_compared_run(run_dir: RunPath, name: str) -> ComparedRun:
    """Reads a run folder, of any version.

    Raises:
      RunRecordError: the run is not finished, or its files cannot be read; one line.
    """
    if not (run_dir / SUMMARY_FILE).exists():
        raise RunRecordError(f"{run_dir}: not finished")
    settings = read_settings(run_dir)
    stored, data = settings.flags, settings.data
    summary = read_json(run_dir / SUMMARY_FILE)  # raises here if it is damaged
    title = add_devices(escape_hidden(settings.algorithm.title), settings.devices)
    completed = complete_stored_flags(stored, list_fields(stored["algo"]))
    # In the order of `config.json`, what old runs lack last.
    # What did nothing in this run would only seem to differ.
    silent = PLACES | REQUESTS | find_stored_idle(completed)
    shown = {flag: completed[flag] for flag in (*stored, *completed) if flag not in silent}
    plain = (bool, int, float, type(None))
    flags = {flag: value if isinstance(value, plain) else escape_hidden(str(value)) for flag, value in shown.items()}
    if dataset := data.get("dataset"):
        # A subset has a name of its own, and a user's file is called by its name; others as they are spelled.
        is_own = str(dataset) in OWN_FILES
        flags["dataset"] = escape_hidden(name_dataset(completed, str(dataset)) if is_own else str(dataset))
    try:
        columns = read_columns(run_dir / METRICS_FILE)
        if not len(columns[ROUND]):
            raise ValueError(f"{METRICS_FILE} holds no round")
        check_rounds(columns[ROUND])
        if {BYTES_UP, BYTES_DOWN} <= columns.keys():
            columns[TOTAL_BYTES] = np.nancumsum(columns[BYTES_UP] + columns[BYTES_DOWN])
        timing = read_columns(run_dir / TIMING_FILE) if (run_dir / TIMING_FILE).exists() else {}
        if ROUND_S in timing and np.array_equal(timing.get(ROUND), columns[ROUND]):
            columns[SECONDS] = np.nancumsum(timing[ROUND_S]).round(3)
        columns = {name: values for name, values in columns.items() if not np.isnan(values).all()}
        table, clients = run_dir / CLIENTS_FILE, {}
        if table.exists():
            numbers, rows = read_columns(table), read_rows(table)
            for column in rows[0] if rows else ():
                is_text = column in CLIENT_NAMES or column not in numbers
                clients[column] = [row[column] for row in rows] if is_text else numbers[column]
    except (OSError, ValueError, KeyError) as error:
        raise RunRecordError(f"{run_dir}: its tables cannot be read ({error})") from None
    experiment = name_experiment(run_dir)
    flags = {**({EXPERIMENT: experiment} if experiment else {}), **flags}
    task, counted, undefined = read_task_columns(data), summary.get("clients"), ()
    if isinstance(counted, Mapping) and isinstance(counted.get(NUM_EVALUATED), int):
        undefined = task.say_undefined(counted.get(UNDEFINED), counted[NUM_EVALUATED])
    return ComparedRun(
        escape_hidden(name),
        run_dir,
        flags,
        title,
        columns,
        clients,
        (*describe_data_in_words(data), *(f"{sentence}." for sentence in undefined)),
        task,
        _describe(title, completed, data, settings.devices),
        read_trivial_results(summary, task),
        summary.get(IS_PERSONAL) is True or len(set(clients.get(MODEL, ()))) > 1,
        {**completed, "dataset": flags.get("dataset")},
        settings.digests,
        settings.modules,
        settings.algorithm.color,
        _read_test_sizes(data, task),
        settings.devices,
    )


def _read_test_sizes(data: Mapping[str, Any], task: TaskColumns) -> dict[str, int]:
    """{column: examples} as far as the data section of a `config.json`, of any version, has them."""
    places = ((NUM_TEST, (task.test, TEST_LOSS)), (NUM_CLIENT_TEST, (task.client_test, *task.spread)))
    return {name: data[key] for key, names in places if isinstance(data.get(key), int) for name in names}


def read_trivial_results(summary: Mapping[str, Any], task: TaskColumns) -> dict[str, dict[str, float]]:
    """{column: {row: value}} of a run's `summary.json`, of any version; without what it does not know."""
    clients = summary.get("clients")
    clients = clients if isinstance(clients, Mapping) else {}
    places = (
        (task.client_test, MAJORITY_OF_CLIENT, clients.get(MAJORITY_ACCURACY)),
        (task.client_test, MAJORITY_OF_ALL, clients.get(OVERALL_MAJORITY_ACCURACY)),
        (task.worst_tenth, MAJORITY_OF_CLIENT, clients.get(MAJORITY_WORST_TENTH)),
        (task.worst_tenth, MAJORITY_OF_ALL, clients.get(OVERALL_MAJORITY_WORST_TENTH)),
        (task.test, MAJORITY_OF_ALL, summary.get(OVERALL_MAJORITY_TEST_ACCURACY)),
    )
    found: dict[str, dict[str, float]] = {}
    for column, row, value in places:
        if isinstance(value, float | int) and 0 <= value <= 1:
            found.setdefault(column, {})[row] = float(value)
    return found


def _describe(title: str, flags: Mapping[str, Any], data: Mapping[str, Any], devices: str) -> str:
    """The run in words; the algorithm alone where an old or damaged one lacks a flag. No code of a user's is run."""
    try:
        return f"{title} on {escape_hidden(shorten_split(flags, data.get('dataset'), devices))}"
    except (KeyError, TypeError):
        return title


def describe_data_in_words(data: Mapping[str, Any]) -> tuple[str, ...]:
    """What the data section of a `config.json`, of any version, says beyond numbers; a sentence each."""
    reading, left_out, notes = (data.get(name) for name in (READING, NUM_CLIENTS_LEFT_OUT, NOTES))
    sentences = [f"Examples: {reading}."] if isinstance(reading, str) and reading else []
    if isinstance(left_out, int) and left_out > 0:
        sentences.append(f"Clients left out: {left_out:,}, since all their examples are held out for the test.")
    if isinstance(data.get(FILLED), dict) and data[FILLED]:
        sentences.append(f"Filled in: {describe_filled(data[FILLED])}.")
    if isinstance(notes, list):
        sentences += [f"Note on the data: {note}." for note in notes if isinstance(note, str)]
    return tuple(sentences)


def name_experiment(run_dir: RunPath) -> str:
    """The folder of a run's seeds, which a sweep calls after what it trained; "" if it lies in none."""
    return run_dir.parent.name if run_dir.name.startswith(SEED_FOLDER) and run_dir.parent.name else ""


@functools.cache
def list_fields(algo: str) -> tuple[FlagField, ...]:
    """The flags of today, which say what old runs did; without those of a user's algorithm, whose code is not run."""
    if list_foreign_modules({"algo": algo}):
        return shared_fields()
    try:
        return (*shared_fields(), *algorithm_fields(algo))
    except (ConfigError, FlagError):
        return shared_fields()


def is_on_disk(run: ComparedRun) -> bool:
    """Whether the run lies in a folder, whose files can be linked, and not in an archive."""
    return isinstance(run.path, pathlib.Path)
