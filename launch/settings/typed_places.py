"""Which places that a run's records name may be used: a run folder may come from somebody else.

`config.json` holds the folders that a run fills, `--client_dir` and `--data_dir`, where its data are read, and the
address of its Ray cluster. A folder or address is used if the user types it, if their environment names it, if it lies
in their cache, or if they have typed it before: a file in the cache, out of reach of who made the run folder, lists
what they have. Data are only read, so any regular file or folder serves: at a pipe or a device nobody waits.
"""

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Mapping
from typing import Any

from datasets.catalog import find_dataset
from files.cache_folder import default_cache_dir
from files.locks import open_lock_file
from files.reading import read_regular
from files.writing import write_whole
from launch.settings.errors import FlagError
from launch.settings.runtimes import RAY, RAY_PLACES
from tff_algos.settings.config_fields import is_own

FILLED, ADDRESS = ("client_dir", "data_dir"), "ray_address"
READ = ("data", "npz", "device_profiles", "replay", "class_weights")
OF_THE_SYSTEM = ("/proc/", "/sys/")  # what lies there passes for regular files, and may have no end
KIND, RECORD_FILE, LOCK_FILE = "typed_places", "typed.json", ".lock"  # in the user's cache
MOST_RECORDED = 1000  # those go that are gone, then the oldest; who uses one again types it again
_typed: set[tuple[str, str]] = set()  # in this process, so that a cache that cannot be written is no obstacle


def remember_places(flags: Mapping[str, Any]) -> None:
    """Records the folders and the address among the flags that a user has typed; others are passed over.

    Nothing is recorded in a cache that cannot be written.

    Args:
      flags: values by name; all flags of a run that is about to train are right, since its stored ones were checked.
    """
    new = [(name, place) for name in (*FILLED, ADDRESS) if (place := _find_place(name, flags.get(name)))]
    _typed.update(new)
    if not new:
        return
    folder = default_cache_dir(KIND)
    with contextlib.suppress(OSError):
        os.makedirs(folder, exist_ok=True)
        with open_lock_file(os.path.join(folder, LOCK_FILE)) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two runs that begin together are both recorded
            known = _read_record()
            kept = [*(each for each in known if each not in new), *new]
            if len(kept) > MOST_RECORDED:
                kept = [each for each in kept if os.path.exists(each[1])][-MOST_RECORDED:]
            if kept != known:
                write_whole(os.path.join(folder, RECORD_FILE), json.dumps(kept).encode(), mode=0o600)


def check_places(stored: Mapping[str, Any], run_dir: str) -> None:
    """Looks at the places that the records of a run name; makes and opens none of them.

    Args:
      stored: the run's flags, without those that the user's command gives.
      run_dir: its folder.

    Raises:
      FlagError: the user must name a folder or an address themselves, or data are a pipe or a device.
    """
    for name in (*FILLED, ADDRESS):
        place = _find_place(name, stored.get(name)) if _is_used(name, stored) else ""
        if place and not _is_trusted(name, place):
            raise FlagError(
                f"--run_dir={run_dir}: its config.json names --{name}={stored[name]}, which no run of "
                "yours is known to use (earlier versions kept no record); if you trust it, add "
                f"--{name}={stored[name]} this once, or name another"
            )
    for name in READ:
        if stored.get(name) and not _can_be_read(stored[name]):
            raise FlagError(
                f"--run_dir={run_dir}: its config.json names --{name}={stored[name]}, a pipe, a device or a file of "
                "the system's; expected a regular file or a folder: name it yourself, or start a new run"
            )


def _is_used(name: str, stored: Mapping[str, Any]) -> bool:
    """Whether a run with these flags writes there or speaks to it."""
    if name == ADDRESS:
        return stored.get("runtime") == RAY
    if name != "data_dir" or "dataset" not in stored:
        return True
    row = find_dataset(stored["dataset"])
    is_random = bool(stored.get("smoke")) and row.is_drawn_for_smoke
    return not is_random and (row.locate is not None or is_own(stored["dataset"]))


def _find_place(name: str, value: Any) -> str:
    """The place that a flag means, as it is recorded: a path in full, without links; "" where there is no choice."""
    if name == ADDRESS:
        return "" if value in (None, *RAY_PLACES) else str(value)
    if not value:
        return ""
    try:
        return os.path.realpath(os.path.expanduser(value))
    except ValueError:  # a NUL
        return value


def _is_trusted(name: str, place: str) -> bool:
    cache = _find_place(name, default_cache_dir(""))
    is_inside = name in FILLED and place.startswith(cache + os.sep)
    is_of_environment = name == "data_dir" and place == _find_place(name, os.environ.get("FL_DATA_DIR"))
    return is_inside or is_of_environment or (name, place) in {*_typed, *_read_record()}


def _read_record() -> list[tuple[str, str]]:
    """(flag, place), the newest last; a damaged record is an empty one."""
    try:
        rows = json.loads(read_regular(os.path.join(default_cache_dir(KIND), RECORD_FILE)))
        return [(name, place) for name, place in rows if isinstance(name, str) and isinstance(place, str)]
    except (OSError, ValueError, TypeError, RecursionError):
        return []


def _can_be_read(value: str) -> bool:
    """Whether whoever opens it does not wait for ever; what is not there is left to its reader."""
    try:
        path = os.path.realpath(os.path.expanduser(value))
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return True
    is_of_the_system = path == "/" or f"{path}/".startswith(OF_THE_SYSTEM)
    return not is_of_the_system and (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
