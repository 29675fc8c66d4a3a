"""What to type to simulate a live run: again by its record, and by the devices that it measured."""

import pathlib
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from launch.live.description import find_scaling
from launch.runs.columns import MEASURED_DEVICES_FILE
from launch.settings.data_flags import FEDERATED
from launch.settings.resuming import ASKED_ONCE
from launch.settings.run_config import RunConfig, build_run_config, flag_values

_NOT_REPEATED = frozenset({"algo", "run_dir", "device_profiles", "replay", "track", "device", "compile", *ASKED_ONCE})

_OF_DATA = ("data", "dataset")  # for which others stand in


def list_twin_commands(
    config: RunConfig, path: pathlib.Path, stand_in: Mapping[str, Any] | None = None
) -> Iterator[str]:
    """The commands that repeat it, that predict it, and that compare what they give with it.

    Args:
      config: of the run.
      path: of its folder.
      stand_in: where clients brought their own data, the flags by which others in their place are read, see
        `describe_stand_in`.
    """
    run = str(path)
    twin, predicted = f"{run}_twin", f"{run}_devices"
    ending = "" if stand_in is None else " --data=<data in place of the clients'>"
    # How many clients there were, the record says.
    of_data = {name: value for name, value in (stand_in or {}).items() if name != "num_clients"}
    yield f"python -m launch.train {_format_flags({'replay': run, 'run_dir': twin, **of_data})}{ending}"
    if (path / MEASURED_DEVICES_FILE).exists():
        given = {name: value for name, value in list_given(config).items() if stand_in is None or name not in _OF_DATA}
        if "speed" in flag_values(config):  # of asynchronous devices, which else redraw it
            given["speed"] = "profiles"
        given |= {**(stand_in or {}), "device_profiles": path / MEASURED_DEVICES_FILE, "run_dir": predicted}
        yield f"python -m launch.train {_format_flags(given)}{ending}"
        runs = (run, twin, predicted)
    else:
        runs = (run, twin)
    yield " ".join(["python -m launch.compare", *(f"--runs={shlex.quote(each)}" for each in runs)])


def describe_stand_in(description: Mapping[str, Any], seats: int) -> dict[str, Any]:
    """The flags by which data in place of clients' own are dealt and read as theirs were.

    Args:
      description: of the clients' examples, see `launch.live.description`.
      seats: that the run had.
    """
    flags: dict[str, Any] = {"num_clients": seats}
    if "label" in description:
        flags["label_column"] = description["label"]["name"]
    # A live model scales by means that the organiser had; nobody has those of other data but they themselves.
    return flags | ({"standardize": FEDERATED} if find_scaling(description) else {})


def _format_flags(flags: Mapping[str, Any]) -> str:
    return " ".join(shlex.quote(f"--{name}={value}") for name, value in flags.items())


def list_given(config: RunConfig) -> dict[str, object]:
    """The flags by which a run differs from one of its algorithm alone, which goes first."""
    usual = flag_values(build_run_config({"algo": config.algo}))
    values = {name: value for name, value in flag_values(config).items() if name not in _NOT_REPEATED}
    return {"algo": config.algo} | {name: value for name, value in values.items() if usual.get(name) != value}
