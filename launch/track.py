"""`python -m launch.track --run_dir=<folder> --to=mlflow` sends runs, finished or going on, to MLflow or W&B.

`--run_dir` names a run folder, a folder of them or a pattern. A run's configuration, metrics by round, tables, plots
and models are sent. The same run stays the same run there: what it has already is not sent again. With `--follow` runs
that go on are followed until they end. `launch.train --track=mlflow` starts this command beside the training.

Exit codes: 0 all is sent, 1 the tracker failed, 2 the request was wrong, 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by
SIGHUP.
"""

import os
import pathlib
import re
import shlex
from collections.abc import Sequence

from absl import flags as absl_flags

from launch.command_line import parse_flags, run_command
from launch.progress import say
from launch.runs.errors import RunStopped
from launch.settings.flags import FlagError
from launch.settings.trackers import MLFLOW, TENSORBOARD, TRACKERS
from launch.stop_signals import as_stop_after_signal, get_stop_code, leave
from launch.trackers.event_files import write_missing_event_files
from launch.trackers.find_runs import find_runs, names_one_run
from launch.trackers.follow import Order, check_run, send_runs
from launch.trackers.sender_process import TrackerError, find_python

PROGRAM = "python -m launch.track"


def define_flags() -> absl_flags.FlagValues:
    """The flags of this command."""
    values = absl_flags.FlagValues()
    absl_flags.DEFINE_list(
        "run_dir", [], "Run folders, folders of them, or patterns of their names (quote a *).", flag_values=values
    )
    absl_flags.DEFINE_string("to", None, f"Tracker: {', '.join(TRACKERS)}.", flag_values=values)
    absl_flags.DEFINE_string(
        "project",
        "",
        "MLflow's experiment or W&B's project; empty: MLFLOW_EXPERIMENT_NAME, WANDB_PROJECT or federated-suite.",
        flag_values=values,
    )
    absl_flags.DEFINE_string(
        "tracking_uri",
        "",
        "Where MLflow is, as http://127.0.0.1:5000; empty: MLFLOW_TRACKING_URI, or the file mlflow.db in this folder.",
        flag_values=values,
    )
    absl_flags.DEFINE_bool("follow", False, "Follow runs that go on until they have ended.", flag_values=values)
    absl_flags.DEFINE_bool("models", True, "Send models and exported files, too.", flag_values=values)
    return values


def parse_request(argv: Sequence[str]) -> absl_flags.FlagValues:
    """Reads the command line, without the program's name. Raises FlagError."""
    values = parse_flags(define_flags(), argv)
    if not values.run_dir:
        raise FlagError("--run_dir is missing: expected a run folder, a folder of them or a pattern")
    if values.to not in TRACKERS:
        problem = "--to is missing" if values.to is None else f"--to={values.to}"
        raise FlagError(f"{problem}: expected one of {', '.join(TRACKERS)}")
    if values.tracking_uri and values.to != MLFLOW:
        raise FlagError(f"--tracking_uri: does nothing with --to={values.to}; leave it out, or give --to={MLFLOW}")
    if values.to == TENSORBOARD:
        for name in ("project", "follow"):
            if values[name].value:
                raise FlagError(f"--{name}: does nothing with --to={TENSORBOARD}, which reads run folders; drop it")
    return values


def show_in_tensorboard(run_dirs: Sequence[pathlib.Path]) -> None:
    """Makes event files that are missing, and says how to look at them."""
    for run_dir in run_dirs:
        if write_missing_event_files(run_dir):
            say(f"written  {run_dir}: event files, from its metrics.csv")
    common = os.path.commonpath([run_dir.absolute() for run_dir in run_dirs])
    say(f"look     tensorboard --logdir={shlex.quote(os.path.relpath(common))}")


def hide_password(text: str) -> str:
    """`text` without the user and password that an address in it may have."""
    return re.sub(r"://[^/@\s]*@", "://", text)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    usage = f"{PROGRAM} --run_dir=<folder,...> --to=<{'|'.join(TRACKERS)}> [--flag=value ...]"
    return run_command(_run, "track", usage, define_flags, argv)


def _run(arguments: Sequence[str]) -> None:
    values = parse_request(arguments)
    run_dirs = find_runs(values.run_dir)
    for run_dir in run_dirs:
        check_run(run_dir)
    if values.to == TENSORBOARD:
        show_in_tensorboard(run_dirs)
        return
    order = Order(
        values.to,
        find_python(f"--to={values.to}"),
        values.project,
        {"MLFLOW_TRACKING_URI": values.tracking_uri} if values.tracking_uri else {},
        values.models,
        values.follow,
        lingers=values.follow and not names_one_run(values.run_dir),
    )
    again = f"go on with: {PROGRAM} {hide_password(shlex.join(arguments))}"
    try:
        with as_stop_after_signal():
            send_runs(order, lambda: find_runs(values.run_dir))
    except TrackerError as error:
        raise RunStopped(f"error: {values.to}: {error}; {again}", 1) from None
    except KeyboardInterrupt as error:
        raise RunStopped(f"stopped; {again}", get_stop_code(error)) from None


if __name__ == "__main__":
    leave(main())
