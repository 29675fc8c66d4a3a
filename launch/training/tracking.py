"""`--track`: a process beside the training, which sends the run to a tracker as its folder grows.

It reads the folder like anybody else, so whatever happens to it or to the tracker, the run goes on.
"""

import contextlib
import os
import pathlib
import shlex
import subprocess
from collections.abc import Iterator
from typing import TextIO

from launch.console.progress import say
from launch.runs.columns import TRACKING
from launch.runs.trackers.order import describe_run, find_python, start_sender
from launch.settings.flags import FlagError
from launch.settings.run_config import RunConfig
from launch.settings.trackers import SENT

# How lines of its log begin that a person sees.
ERROR, SAID = "error: ", ("warning  ", "sent  ")
# At the end of the run, for files that are still being sent.
WAIT_S = 60.0
# The first of them, without a word.
QUIET_S = 2.0


class Tracking:
    """The process, if there is one.

    Args:
      tracker: "mlflow" or "wandb"; for others there is none.
      python: the Python that has it.
    """

    def __init__(self, tracker: str, python: str = ""):
        self._tracker, self._python = tracker, python
        self._process: subprocess.Popen | None = None
        self._log: TextIO | None = None

    def start(self, run_dir: pathlib.Path) -> None:
        """Starts to follow the run, whose config must be there by now."""
        if self._tracker not in SENT:
            return
        path = run_dir / TRACKING / f"{self._tracker}.log"
        again = f"go on with: python -m launch.track --run_dir={shlex.quote(str(run_dir))} --to={self._tracker}"
        try:
            path.parent.mkdir(exist_ok=True)
            with open(path, "ab") as log:
                self._log = open(path, encoding="utf-8", errors="replace")  # noqa: SIM115 (read until the end)
                self._log.seek(0, os.SEEK_END)
                # In a session of its own: Ctrl-C is for the training, whose end is then sent.
                options = {"stdout": log, "stderr": log, "start_new_session": True}
                runs = [describe_run(run_dir)]
                self._process = start_sender(self._python, self._tracker, runs, True, True, again, **options)
        except (OSError, FlagError) as error:
            say(f"warning  nothing is sent to {self._tracker}: {error}; the run goes on")
            return
        say(f"track    to {self._tracker}; log: {path}")

    def check(self) -> None:
        """Says what is new: that the tracker cannot be reached, that the process has given up, or all is sent."""
        for line in self._log or ():
            if line.startswith(ERROR):
                say(f"warning  not all is sent: {line.removeprefix(ERROR).rstrip()}")
            elif line.startswith(SAID):
                say(line.rstrip())

    def wait(self, limit_s: float = WAIT_S) -> None:
        """Waits until the run is sent, or until Ctrl-C; the process goes on without this one."""
        if self._process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            self._process.wait(min(QUIET_S, limit_s))
        if self._process.poll() is None and limit_s > QUIET_S:
            say(f"track    the last files go to {self._tracker}; Ctrl-C leaves that to the background")
            with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                self._process.wait(limit_s - QUIET_S)
        self.check()
        if self._process.poll() is None:
            say(f"track    still being sent to {self._tracker}")
        elif self._process.returncode < 0:
            say(f"warning  not all is sent: its process was ended by signal {-self._process.returncode}")


def find_tracker(config: RunConfig) -> str:
    """The Python that has the tracker of a run; "" without one that something is sent to. Raises FlagError."""
    if config.track not in SENT:
        return ""
    if config.smoke and not config.run_dir:
        raise FlagError(f"--track={config.track}: the folder of a smoke run is removed; give --run_dir")
    return find_python(f"--track={config.track}")


@contextlib.contextmanager
def open_tracking(config: RunConfig) -> Iterator[Tracking]:
    """What `--track` asks for; at the end of the block it is waited for until the run is sent, for a minute at most.

    Raises:
      FlagError: the tracker is not set up, or the run's folder would be removed.
    """
    tracking = Tracking(config.track, find_tracker(config))
    try:
        yield tracking
    finally:
        tracking.wait()
