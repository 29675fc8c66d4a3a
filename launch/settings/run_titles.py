"""What a run is, in a few words for a person: from its flags."""

import pathlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from datasets.catalog import get_title
from datasets.options import FILES
from launch.console.shown_text import escape_hidden
from launch.settings.algorithms import ALGORITHMS, Algorithm
from launch.settings.errors import FlagError
from launch.settings.own_algorithm import SNAKE_CASE
from launch.settings.replaying import RUN_NAME, TWIN_OF
from launch.settings.run_config import find_algorithm
from launch.settings.serving import LIVE, OWN_DATA
from launch.settings.trusted_modules import list_foreign_modules
from tff_algos.settings.config_fields import ConfigError

TWIN = "twin of "
LIVE_DEALT, LIVE_OWN_DATA = "live", "live, own data"
OWN_FILES = {FILES: "data", "npz": "npz"}  # the flag that names the user's own file, by data set


class ShownAlgorithm(NamedTuple):
    """What people see of an algorithm: name and title as in its row; and its colour, None where it is not known."""

    name: str
    title: str
    color: str | None

    @classmethod
    def of_row(cls, row: Algorithm) -> "ShownAlgorithm":
        return cls(row.name, row.title, row.color)


def show_stored_algorithm(spelling: str, stored: Any = None) -> ShownAlgorithm:
    """That of a run that may be a stranger's: nothing of theirs is imported.

    Args:
      spelling: the run's `--algo`.
      stored: what its `config.json` says of a user's own; None in runs of earlier versions, called as spelled.
    """
    if spelling in ALGORITHMS:
        return ShownAlgorithm.of_row(ALGORITHMS[spelling])
    name, title, color = (stored.get(key) if isinstance(stored, Mapping) else None for key in ShownAlgorithm._fields)
    if isinstance(name, str) and re.fullmatch(SNAKE_CASE, name) and isinstance(title, str) and title.strip():
        is_color = isinstance(color, str) and re.fullmatch("#[0-9a-fA-F]{6}", color)
        return ShownAlgorithm(name, title, color if is_color else None)
    if not list_foreign_modules({"algo": spelling}):
        try:
            return ShownAlgorithm.of_row(find_algorithm(spelling))
        except (ConfigError, FlagError):
            pass
    return ShownAlgorithm(spelling, spelling, None)


def describe_devices(config: Mapping[str, Any]) -> str:
    """What the devices of a run were by its `config.json`, which may be anybody's.

    Returns:
      "live": they were asked over the network; "live, own data": and brought their examples; "twin of <run>": they did
      what those of that run did; "": drawn.
    """
    if isinstance(live := config.get(LIVE), Mapping):
        return LIVE_OWN_DATA if live.get(OWN_DATA) is True else LIVE_DEALT
    twin = config.get(TWIN_OF)
    name = twin.get(RUN_NAME) if isinstance(twin, Mapping) else None
    return f"{TWIN}{escape_hidden(name):.60}" if isinstance(name, str) and name.strip() else ""


def are_live(devices: str) -> bool:
    """Whether they were asked over the network; `devices` as from `describe_devices`."""
    return devices in (LIVE_DEALT, LIVE_OWN_DATA)


def add_devices(title: str, devices: str) -> str:
    """For example "FedAvg (live)"; `devices` as from `describe_devices`."""
    return f"{title} ({devices})" if devices else title


def describe_run(flags: Mapping[str, Any], dataset: str | None = None, devices: str = "") -> str:
    """For example "FedSiKD on MNIST, alpha 0.1, seed 0", or "FedAvg (live) on MNIST, alpha 0.1, seed 0".

    Args:
      flags: those in the run's `config.json`.
      dataset: the data set's own name, which says if it is a subset; None for that of the flag.
      devices: as from `describe_devices`.

    Raises:
      FlagError: the algorithm is the user's own and cannot be used.
    """
    title = add_devices(find_algorithm(flags["algo"]).title, devices)
    return f"{title} on {shorten_split(flags, dataset, devices)}"


def shorten_split(flags: Mapping[str, Any], dataset: str | None = None, devices: str = "") -> str:
    """For example "MNIST, alpha 0.1, seed 0"; arguments as for `describe_run`, but no algorithm is looked for."""
    return describe_split(flags, dataset, devices).replace(" dirichlet partition,", "")


def name_dataset(flags: Mapping[str, Any], dataset: str | None = None) -> str:
    """The data set as people call it: a user's own file by the file's name; arguments as for `describe_run`."""
    name = dataset or flags["dataset"]
    own = flags.get(OWN_FILES.get(name, ""))
    return pathlib.PurePath(own).stem if isinstance(own, str) and own.strip("/.") else get_title(name)


def describe_split(flags: Mapping[str, Any], dataset: str | None = None, devices: str = "") -> str:
    """For example "MNIST, dirichlet partition, alpha 0.1, seed 0"; arguments as for `describe_run`."""
    partition, lowest, highest = flags["partition"], flags.get("bias_min"), flags.get("bias_max")
    details = {
        "dirichlet": [f"alpha {flags['dirichlet_alpha']}"],
        "shards": [f"at most {flags['labels_per_client']} labels a client"],
        "hierarchical": [f"bias {lowest}" if lowest == highest else f"bias {lowest} to {highest}"],
    }
    name = name_dataset(flags, dataset)
    if devices == LIVE_OWN_DATA:  # which nobody dealt
        return f"{name}, seed {flags['seed']}"
    if (dataset or flags["dataset"]) == "building":
        name = f"{name} ({flags['building_heterogeneity']} heterogeneity)"
    return ", ".join([name, f"{partition} partition", *details.get(partition, []), f"seed {flags['seed']}"])
