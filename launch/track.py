"""`python -m launch.track --run_dir=<folder> --to=mlflow` sends runs, finished or going on, to MLflow or W&B.

`--run_dir` names a run folder, a folder of them or a pattern. A run's configuration, metrics by round, tables, plots
and models are sent. The same run stays the same run there: what it has already is not sent again. With `--follow` runs
that go on are followed until they end, as `launch.train --track=mlflow` does.

Exit codes: 0 all is sent, 1 the tracker failed, 2 the request was wrong, 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by
SIGHUP.
"""

import dataclasses
import glob
import os
import pathlib
import shlex
from collections.abc import Sequence

from launch.command_line import parse_flags, run_command
from launch.console.progress import say
from launch.console.stop_signals import leave
from launch.runs.columns import CONFIG_FILE, METRICS_FILE
from launch.runs.columns import TENSORBOARD as EVENTS
from launch.runs.errors import RunStopped
from launch.runs.round_table import read_round_table
from launch.runs.run_records import find_run_dirs, read_config
from launch.runs.trackers.order import describe_run, find_python, start_sender
from launch.settings.errors import FlagError
from launch.settings.trackers import TENSORBOARD, TRACKERS
from tff_algos.settings.config_fields import setting, texts

PROGRAM = "python -m launch.track"
AGAIN = "the same command goes on"


@dataclasses.dataclass(frozen=True)
class Flags:
    """The flags of this command."""

    run_dir: tuple[str, ...] = texts((), "Run folders, folders of them, or patterns of their names (quote a *).")
    to: str = setting("", f"Tracker: {', '.join(TRACKERS)}.")
    follow: bool = setting(False, "Follow runs that go on until they have ended.")
    models: bool = setting(True, "Send models and exported files, too.")


def parse_request(argv: Sequence[str]) -> Flags:
    """Reads the command line, without the program's name. Raises FlagError."""
    values = parse_flags(Flags, argv)
    if not values.run_dir:
        raise FlagError("--run_dir is missing: expected a run folder, a folder of them or a pattern")
    if values.to not in TRACKERS:
        problem = f"--to={values.to}" if values.to else "--to is missing"
        raise FlagError(f"{problem}: expected one of {', '.join(TRACKERS)}")
    if values.follow and values.to == TENSORBOARD:
        raise FlagError(f"--follow: does nothing with --to={TENSORBOARD}, which reads run folders; drop it")
    return values


def find_runs(names: Sequence[str]) -> list[pathlib.Path]:
    """The run folders that `names` mean, each once: a run folder, a folder that holds some at any depth, or a pattern.

    Raises:
      FlagError: a name means none.
    """
    found: dict[pathlib.Path, None] = {}
    for name in names:
        path = os.path.expanduser(name)
        paths = [path] if os.path.exists(path) else sorted(glob.glob(path))
        runs = [run for each in paths for run in find_run_dirs(pathlib.Path(each))]
        if not runs:
            raise FlagError(f"--run_dir={name}: no run there; expected a folder with a {CONFIG_FILE}, or of such ones")
        found.update(dict.fromkeys(runs))
    return list(found)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    usage = f"{PROGRAM} --run_dir=<folder,...> --to=<{'|'.join(TRACKERS)}> [--flag=value ...]"
    return run_command(_run, "track", usage, Flags, argv, stopped=f"stopped; {AGAIN}")


def _run(arguments: Sequence[str]) -> int:
    values = parse_request(arguments)
    run_dirs = find_runs(values.run_dir)
    runs = [describe_run(run_dir) for run_dir in run_dirs]
    if values.to == TENSORBOARD:
        for run_dir in run_dirs:
            table = run_dir / METRICS_FILE
            if table.exists() and not any((run_dir / EVENTS).glob("events.out.*")):  # as of a run copied without
                from launch.runs.tensorboard_log import TensorBoardLog

                TensorBoardLog(run_dir / EVENTS, *read_round_table(table), read_config(run_dir)["flags"])
                say(f"written  {run_dir}: event files, from its metrics.csv")
        common = os.path.commonpath([run_dir.absolute() for run_dir in run_dirs])
        say(f"look     tensorboard --logdir={shlex.quote(os.path.relpath(common))}")
        return 0
    python = find_python(f"--to={values.to}")
    sender = start_sender(python, values.to, runs, values.follow, values.models, AGAIN)
    try:
        exit_code = sender.wait()
    finally:
        sender.kill()  # after Ctrl-C; what was sent is there
    if exit_code < 0:
        raise RunStopped(f"error: {values.to}: the sender was ended by signal {-exit_code}; {AGAIN}", 1)
    return exit_code


if __name__ == "__main__":
    leave(main())
