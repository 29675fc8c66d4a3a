"""What of the data decides which methods can be tried, and how the data are divided. Imports no TensorFlow.

The data are looked at as `launch.inspect` does it, then divided as the runs will divide them, but nothing is trained.
"""

import dataclasses
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from datasets.arrays import ArrayDataset
from datasets.catalog import find_dataset
from datasets.client_source import ClientSource
from datasets.errors import DatasetError
from datasets.federated_data import FederatedData
from datasets.file_formats import find_format
from datasets.options import BOUTS, FILES, KEEP, is_users_own
from datasets.partition_settings import ARCHETYPE_PARTITIONS, NATURAL
from datasets.partitioners import MINIMUM_EXAMPLES_TO_SPLIT
from datasets.tables.table import Roles, choose_roles
from launch.console.shown_text import escape_hidden, format_count
from launch.pages.inspection import spell_flags
from launch.runs.run_folder import name_data
from launch.runs.task_columns import TaskColumns, find_task_columns
from launch.settings.data_flags import choose_options
from launch.settings.run_config import RunConfig
from launch.training.federation import load_federated_data
from launch.training.inspected_data import inspect_given, make_config
from launch.training.opened_data import open_data
from launch.training.run_needs import check_needs

# Trials are scored on the first and advice is given by the second, so both are larger than a run's own.
FRACTIONS = {"validation_fraction": 0.15, "test_fraction": 0.25}
LEAST_TO_HOLD_OUT, SHARE_HELD_OUT, MOST_HELD_OUT = 20, 5, 20  # clients; one in so many of them; at most
MOST_CLIENTS = 500  # of more, so many are drawn: their mean is known well enough
LEAST_SPEEDS_APART = 2.0  # the fastest device beside the slowest, from which on waiting for the slowest costs
HAR = "har"
MOST_NAMED, LONGEST_NAME = 2, 24  # columns in a line, and characters of a name


@dataclasses.dataclass(frozen=True)
class Facts:
    """What is known of the data before anything is trained.

    Attributes:
      config: of a run on them.
      task: what is predicted.
      num_classes: how many classes the labels are; 0 where they are none.
      takes_tokens: whether examples are texts.
      num_clients: that train.
      num_new: clients that take no part in training.
      train_examples: of the client with the fewest, the median, and of the client with the most.
      num_judged: clients with examples to choose by and to test on.
      is_ordered: whether a client's examples are in order of time, so that the last ones are for the test.
      speeds_apart: of the devices of a file, how many times as fast the fastest is as the slowest; 1 without a file.
      notes: what was decided, and what the reader should know of the data, a line each.
      roles: what each column of a table is for; None for data that are no table.
    """

    config: RunConfig
    task: TaskColumns
    num_classes: int
    takes_tokens: bool
    num_clients: int
    num_new: int
    train_examples: tuple[int, float, int]
    num_judged: int
    is_ordered: bool
    speeds_apart: float
    notes: tuple[str, ...] = ()
    roles: Roles | None = None

    @property
    def have_own_clients(self) -> bool:
        """Whether the data say whose an example is; else clients are simulated, and differ by seed."""
        return self.config.partition == NATURAL

    @property
    def devices_differ(self) -> bool:
        return self.speeds_apart > LEAST_SPEEDS_APART


def look_at(given: Mapping[str, Any]) -> tuple[dict[str, Any], Facts]:
    """Reads the data and decides how they are divided.

    Args:
      given: flags of the data and the model, by name.

    Returns:
      The flags of every run, all by name that decide on data, model and batches, and the facts.

    Raises:
      FlagError: flags that a run would refuse, or a model of the user's that is not there.
      DatasetError: the data cannot be read, or nothing can be said of methods on them.
    """
    check_needs(make_config(given))
    flags, notes = _solve_problems(given)
    flags, further = choose_splits(flags)
    notes += further
    config = make_config(flags)
    arrays, _ = open_data(config)
    _check_size(arrays, config)
    if _count_clients(arrays) > MOST_CLIENTS and config.partition == NATURAL and "most_clients" not in flags:
        flags["most_clients"] = MOST_CLIENTS
        notes.append(f"{MOST_CLIENTS} of {_count_clients(arrays):,} clients are drawn, to save time (--most_clients)")
        config = make_config(flags)
    data = load_federated_data(config)
    _check_clients(data, config)
    may_hold_out = config.partition not in ARCHETYPE_PARTITIONS and "new_clients" not in flags
    if len(data.everyone) >= LEAST_TO_HOLD_OUT and may_hold_out:
        flags["new_clients"] = min(MOST_HELD_OUT, len(data.everyone) // SHARE_HELD_OUT)
        flags["draw_new_clients"] = True
        config = make_config(flags)
        data = load_federated_data(config)
    notes += _note(data, config, arrays.is_ordered_by_time)
    sizes = data.num_train
    speeds = data.profiles.examples_per_s if config.device_profiles else np.ones(1)
    return flags, Facts(
        config,
        find_task_columns(data.format.labels.task),
        data.format.num_classes if data.format.labels.is_by_class else 0,
        data.format.takes_tokens,
        len(data.clients),
        len(data.new_clients),
        (int(sizes.min()), float(np.median(sizes)), int(sizes.max())),
        _count_judged(data),
        arrays.is_ordered_by_time,
        float(speeds.max() / speeds.min()),
        tuple(notes),
        _find_roles(config),
    )


def _find_roles(config: RunConfig) -> Roles | None:
    if config.dataset != FILES:
        return None
    path, options = os.path.abspath(os.path.expanduser(config.data)), choose_options(vars(config))
    make_table = find_format(path, config.data_format).make_table
    return choose_roles(make_table(path, options), options) if make_table else None


def _solve_problems(given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The flags with which a user's own data can be read, and a line for each that was added."""
    if not is_users_own(make_config(given).dataset):
        return dict(given), []
    findings, _, _, error = inspect_given(given)
    if findings is None:
        raise error
    flags = {**given, **findings.added}
    notes = [f"{each.text}: read with {' '.join(spell_flags(each.fix))}" for each in findings.problems]
    # Of a file, "auto" is the model that is proposed.
    proposed = {name for name in findings.flags if name not in flags} - ({"model"} if flags.get("data") else set())
    for name in sorted(proposed):
        flags[name] = findings.flags[name]
        notes += [f"{flag} is set, as launch.inspect proposes" for flag in spell_flags({name: flags[name]})]
    return flags, notes


def choose_splits(given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The flags with all that decides how examples go to clients and to their splits, and notes on it.

    What was given stays. Each algorithm has defaults of its own for data, partition and batches, so these are said.
    """
    config, flags, notes = make_config(given), dict(given), []
    row = find_dataset(config.dataset)
    # Of data that say whose an example is, and that papers divide otherwise.
    if row.clients and not row.partition and "partition" not in given:
        config = make_config({**given, "partition": NATURAL})
    for name in ("dataset", "partition", "batch_size"):
        flags[name] = getattr(config, name)
    if config.data:
        del flags["dataset"]
    if config.partition not in ARCHETYPE_PARTITIONS:
        flags = {**FRACTIONS, **flags}
    if config.dataset == HAR and config.partition == NATURAL and "har_split" not in given:
        flags["har_split"] = BOUTS
        notes.append("windows overlap: whole bouts of an activity are held out, so that no test window was seen")
    return flags, notes


def _count_clients(arrays: ArrayDataset | ClientSource) -> int:
    return len(arrays.client_names or ())


def _check_size(arrays: ArrayDataset | ClientSource, config: RunConfig) -> None:
    """Raises DatasetError for data of which not even two clients could be made that train, choose and test."""
    if not isinstance(arrays, ClientSource):
        return
    number, least = sum(int(counts.sum()) for counts in arrays.num_examples.values()), 2 * MINIMUM_EXAMPLES_TO_SPLIT
    if number < least:
        noun = "row" if _find_roles(config) and not config.window else "example"
        raise DatasetError(
            f"{config.data or config.npz or config.dataset}: has {format_count(number, noun)}, too few to train on, "
            f"to choose by and to test on; expected at least {least}"
        )


def _count_judged(data: FederatedData) -> int:
    return sum(bool(client.num_validation and client.num_test) for client in data.clients)


def _check_clients(data: FederatedData, config: RunConfig) -> None:
    """Raises DatasetError where nobody could be advised."""
    shown = config.data or config.npz or config.dataset
    if len(data.clients) < 2:
        raise DatasetError(
            f"{shown}: it has one client, so there is nothing to federate; if a column says whose a row is, give "
            "--client_column, or --partition=dirichlet --num_clients=10 to simulate clients"
        )
    for split, flag in (("validation", "validation_fraction"), ("test", "test_fraction")):
        if not any(getattr(client, f"num_{split}") for client in data.clients):
            if config.partition in ARCHETYPE_PARTITIONS:
                flag = f"{split}_per_client"
            raise DatasetError(
                f"{shown}: no client has {split} examples, without which nothing can be advised; give --{flag} above 0 "
                f"and clients of at least {MINIMUM_EXAMPLES_TO_SPLIT} examples"
            )
    if not _count_judged(data):
        raise DatasetError(f"{shown}: no client has both validation and test examples; expected some of both")


def _note(data: FederatedData, config: RunConfig, is_ordered: bool) -> list[str]:
    notes = []
    if config.partition != NATURAL:
        notes.append(
            f"clients are simulated (--partition={config.partition}): the advice is for clients that differ like that"
        )
    if tiny := len(data.clients) - _count_judged(data):
        count = format_count(tiny, "client")
        notes.append(f"{count} of {len(data.clients):,} have too few examples to be tested on; others speak for them")
    if data.new_clients:
        count = format_count(len(data.new_clients), "client")
        which = "drawn by a fixed seed" if config.draw_new_clients else "the last"
        notes.append(f"{count} ({which}) take no part in training, to see what a client gets that comes later")
    if is_ordered and config.partition == NATURAL:
        notes.append("examples are in order of time: each client's last ones are for the test, those before to choose")
    if config.window and 0 < config.window_step < config.window:
        are_kept = config.shared_rows == KEEP
        what = "tell the test part what to answer (--shared_rows)" if are_kept else "are left out"
        notes.append(f"windows of rows overlap: those that share rows with the test part {what}")
    return notes


def describe_facts(facts: Facts) -> list[str]:
    """What was found, and how the data are divided, in lines for the terminal."""
    config, (fewest, median, most) = facts.config, facts.train_examples
    what = f"{facts.num_classes:,} classes" if facts.num_classes else facts.task.kind.title
    if facts.roles:
        file = escape_hidden(pathlib.Path(config.data).name)
        lines = [f"data     {file}: {_describe_roles(facts.roles, config, what)}"]
    else:
        kind = f"{facts.task.kind.title}, {what}" if facts.num_classes else what
        lines = [f"data     {name_data(config)}: {kind}"]
    lines.append(f"judged   by the clients' own {facts.task.title}")
    sizes = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}, in the middle {median:,.0f}"
    lines.append(f"clients  {facts.num_clients:,}, examples of each to train on: {sizes}")
    if config.partition not in ARCHETYPE_PARTITIONS:
        shares = f"{config.validation_fraction:.0%} to choose by, {config.test_fraction:.0%} to test on"
        lines.append(f"splits   of each client's examples {shares}, where the data do not say it")
    return [*lines, *(f"note     {note}" for note in facts.notes)]


def _describe_roles(roles: Roles, config: RunConfig, what: str) -> str:
    """For example: predicts "label" (2 classes) from 12 columns; clients from "client"."""
    features = _name_columns(roles.features) if len(roles.features) == 1 else f"{len(roles.features):,} columns"
    parts = [f"predicts {_name_columns(roles.labels)} ({what}) from {features}"]
    if roles.client and config.partition == NATURAL:
        parts.append(f"clients from {_name_columns([roles.client])}")
    parts += [f"in the order of {_name_columns([roles.time])}"] if roles.time else []
    parts += [f"test rows by {_name_columns([roles.test])}"] if roles.test else []
    return "; ".join(parts)


def _name_columns(names: Sequence[str]) -> str:
    shown = [escape_hidden(name) for name in names[:MOST_NAMED]]
    shown = [f'"{name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."}"' for name in shown]
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(shown)}{more}"
