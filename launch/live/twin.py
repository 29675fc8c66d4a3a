"""What to type to simulate a live run: again by its record, and by the devices that it measured."""

import pathlib
import shlex
from collections.abc import Iterator

from launch.runs.columns import MEASURED_DEVICES_FILE
from launch.settings.resuming import ASKED_ONCE
from launch.settings.run_config import RunConfig, build_run_config, flag_values

_NOT_REPEATED = frozenset({"algo", "run_dir", "device_profiles", "replay", "track", "device", "compile", *ASKED_ONCE})

_OF_DATA = ("data", "dataset")  # for which others stand in


def list_twin_commands(config: RunConfig, path: pathlib.Path, own_data: bool) -> Iterator[str]:
    """The commands that repeat it, that predict it, and that compare what they give with it.

    Args:
      config: of the run.
      path: of its folder.
      own_data: whether its clients brought their own data, for which others must stand in.
    """
    run = str(path)
    twin, predicted = f"{run}_twin", f"{run}_devices"
    stand_in = " --data=<data in place of the clients'>" if own_data else ""
    yield f"python -m launch.train --replay={shlex.quote(run)} --run_dir={shlex.quote(twin)}{stand_in}"
    if (path / MEASURED_DEVICES_FILE).exists():
        devices = shlex.quote(str(path / MEASURED_DEVICES_FILE))
        given = {name: value for name, value in list_given(config).items() if not (own_data and name in _OF_DATA)}
        flags = " ".join(shlex.quote(f"--{name}={value}") for name, value in given.items())
        yield f"python -m launch.train {flags} --device_profiles={devices} --run_dir={shlex.quote(predicted)}{stand_in}"
        runs = (run, twin, predicted)
    else:
        runs = (run, twin)
    yield " ".join(["python -m launch.compare", *(f"--runs={shlex.quote(each)}" for each in runs)])


def list_given(config: RunConfig) -> dict[str, object]:
    """The flags by which a run differs from one of its algorithm alone, which goes first."""
    usual = flag_values(build_run_config({"algo": config.algo}))
    values = {name: value for name, value in flag_values(config).items() if name not in _NOT_REPEATED}
    return {"algo": config.algo} | {name: value for name, value in values.items() if usual.get(name) != value}
