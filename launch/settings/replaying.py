"""`--replay=<run>`: the settings of a live run, for the simulation that repeats its record. Imports no TensorFlow."""

import dataclasses
import json
import os
import pathlib
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from files.reading import read_regular
from launch.settings.data_flags import DataFlags, OwnDataFlags
from launch.settings.errors import FlagError
from launch.settings.resuming import ASKED_ONCE
from launch.settings.run_config import CONFIG_FILE, MAX_JSON, METRICS_FILE, RECORD_FILE
from launch.settings.run_flags import ArchetypeFlags, PartitionFlags
from launch.settings.serving import LIVE, OWN_DATA

TWIN_OF, RUN_NAME = "twin_of", "run"  # in config.json: which live run another one repeats, by its name
DATA_SOURCES = ("dataset", "data", "npz")  # whoever gives one of them gives data of their own choice
LIVE_RUN = "the folder of a run of launch.serve"
_OF_DATA = frozenset(field.name for group in (DataFlags, OwnDataFlags) for field in dataclasses.fields(group))
_OF_PARTS = frozenset(field.name for group in (PartitionFlags, ArchetypeFlags) for field in dataclasses.fields(group))
# What was asked of the live run itself, not of what it computes. A tracker would be a second run's.
_NOT_REPEATED = frozenset({"run_dir", "replay", "track", *ASKED_ONCE})


class LiveRun(NamedTuple):
    """A live run, as its folder tells.

    Attributes:
      folder: of it.
      num_clients: the seats that it had.
      num_rounds: that it has done.
      is_own_data: whether its clients brought their own examples, which nobody else has.
      digest: of its federation; "" if it is not known.
      flags: its settings, as `config.json` has them.
    """

    folder: pathlib.Path
    num_clients: int
    num_rounds: int
    is_own_data: bool
    digest: str
    flags: Mapping[str, Any]


def read_live_run(folder: str) -> LiveRun:
    """What a folder that somebody names by `--replay` tells.

    Raises:
      FlagError: it holds no live run, or nothing that could be repeated.
    """
    path = pathlib.Path(os.path.expanduser(folder))
    try:
        config = json.loads(read_regular(path / CONFIG_FILE, MAX_JSON))
        live, data, flags = config.get(LIVE), config["data"], config["flags"]
        num_clients = data["num_clients"]
        is_right = isinstance(flags, dict) and type(num_clients) is int and num_clients > 0
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        is_right = False
    if not is_right:
        raise FlagError(f"--replay={folder}: no run to read there; expected {LIVE_RUN}")
    if not isinstance(live, dict):
        raise FlagError(f"--replay={folder}: a run without people, which has no record; expected {LIVE_RUN}")
    if not (path / RECORD_FILE).is_file():
        raise FlagError(f"--replay={folder}: its {RECORD_FILE} is gone, without which the run cannot be repeated")
    num_rounds = _count_rounds(path / METRICS_FILE)
    if not num_rounds:
        raise FlagError(f"--replay={folder}: its {METRICS_FILE} has no round yet; wait for one, or restore the file")
    digest = data.get("digest")
    return LiveRun(
        path,
        num_clients,
        num_rounds,
        live.get(OWN_DATA) is True,
        digest if isinstance(digest, str) else "",
        flags,
    )


def _count_rounds(metrics: pathlib.Path) -> int:
    """The last round of a table with a row a round; 0 if it has none or cannot be read."""
    try:
        lines = read_regular(metrics, MAX_JSON).decode().split("\n")[1:-1]  # what follows the last end is half a row
    except (OSError, ValueError):
        return 0
    last = lines[-1].partition(",")[0] if lines else ""
    return int(last) if last.isascii() and last.isdecimal() and len(last) < 8 else 0


def choose_repeated_flags(run: LiveRun, stored: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a repeated run takes over where none are given.

    Args:
      run: the live run.
      stored: its settings, checked.
      given: those of the command line; data among them stand in for those of the run.

    Raises:
      FlagError: what is given cannot be repeated.
    """
    shown = f"--replay={run.folder}"
    if stored.get("dp_epsilon"):
        raise FlagError(
            f"{shown}: a private run, whose noise came from the operating system, so that nobody can repeat it"
        )
    if given.get("algo", stored["algo"]) != stored["algo"]:
        raise FlagError(f"--algo={given['algo']}: expected {stored['algo']}, of which {shown} has the record")
    if given.get("rounds", 1) > run.num_rounds:
        raise FlagError(f"--rounds={given['rounds']}: expected at most {run.num_rounds}, as many as {shown} has done")
    left_out: Collection[str] = _NOT_REPEATED
    if any(given.get(name) for name in DATA_SOURCES):
        left_out |= _OF_DATA
        # Another file may have no clients of its own, and other archetypes.
        left_out |= _OF_PARTS if run.is_own_data or stored.get("partition") == "natural" else set()
    elif run.is_own_data:
        raise FlagError(
            f"{shown}: its data stayed with its {run.num_clients} clients; expected others in their place, by "
            "--data=<your file or folder> or --dataset=<name>"
        )
    taken = {name: value for name, value in stored.items() if name not in left_out}
    return {"num_clients": run.num_clients, **taken, "rounds": run.num_rounds}


def is_stand_in(run: LiveRun, flags: Mapping[str, Any]) -> bool:
    """Whether a run with these flags has other data than the live run, by what asks for them and how they are dealt."""
    if run.is_own_data:
        return True
    names = (_OF_DATA | _OF_PARTS | {"seed"}) - {"data_dir", "client_dir"}
    return any(name in run.flags and run.flags[name] != value for name, value in flags.items() if name in names)
