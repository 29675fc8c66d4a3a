"""`--track`: a process beside the training, which sends the run to a tracker as its folder grows.

It reads the folder like anybody else, so whatever happens to it or to the tracker, the run goes on.
"""

import contextlib
import pathlib
import subprocess
import sys
from collections.abc import Iterator

from launch.progress import say
from launch.runs.columns import TRACKING
from launch.settings.flags import FlagError
from launch.settings.run_config import RunConfig
from launch.settings.trackers import SENT
from launch.trackers.run_link import read_places
from launch.trackers.sender_process import find_python

COMMAND = "launch.track"
MOST_SAID = 600
WARNING = "warning "
WAIT_S = 60.0  # at the end of the run, for files that are still being sent
QUIET_S = 2.0  # the first of them, without a word


class Tracking:
    """The process, if there is one; `tracker` is its tracker, "none" for no process."""

    def __init__(self, tracker: str):
        self._tracker = tracker
        self._process: subprocess.Popen | None = None
        self._run_dir = pathlib.Path()
        self._log_start, self._has_warned = 0, False

    def start(self, run_dir: pathlib.Path) -> None:
        """Starts to follow the run, whose config must be there by now."""
        if self._tracker not in SENT:
            return
        self._run_dir = run_dir.absolute()
        command = [sys.executable, "-m", COMMAND, f"--run_dir={self._run_dir}", f"--to={self._tracker}", "--follow"]
        # In a session of its own: Ctrl-C is for the training, whose end is then sent.
        try:
            self._log.parent.mkdir(exist_ok=True)
            with open(self._log, "ab") as log:
                self._log_start = log.tell()
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
        except OSError as error:
            say(f"{WARNING} nothing is sent to {self._tracker}: {error}; the run goes on")
            return
        say(f"track    to {self._tracker}; log: {self._log}")

    @property
    def _log(self) -> pathlib.Path:
        return self._run_dir / TRACKING / f"{self._tracker}.log"

    def check(self) -> None:
        """Says once that the tracker cannot be reached, and that the process has given up."""
        if self._process is None:
            return
        lines = self._read_log()
        warnings = [line for line in lines if line.startswith(WARNING)]
        if warnings and not self._has_warned:
            self._has_warned = True
            say(f"{warnings[-1]}; the run goes on")
        if self._process.poll():
            self._process = None
            reason = lines[-1].removeprefix("error: ") if lines else "no reason is in its log"
            say(f"{WARNING} not all is sent: {reason}")

    def _read_log(self) -> list[str]:
        """The lines that the process has written, without those of an earlier one."""
        with contextlib.suppress(OSError), open(self._log, encoding="utf-8", errors="replace") as log:
            log.seek(self._log_start)
            return [line.strip()[:MOST_SAID] for line in log if line.strip()]
        return []

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
        if self._process.poll() is None:
            say(f"track    still being sent to {self._tracker}; log: {self._log}")
            return
        self.check()
        if self._process is not None:
            places = read_places(self._log.with_suffix(".json"))
            say(f"tracked  {list(places.values())[-1]['where'] if places else self._tracker}")


@contextlib.contextmanager
def open_tracking(config: RunConfig) -> Iterator[Tracking]:
    """What `--track` asks for; at the end of the block it is waited for until the run is sent, for a minute at most.

    Raises:
      FlagError: the tracker is not set up, or the run's folder would be removed.
    """
    if config.track in SENT:
        if config.smoke and not config.run_dir:
            raise FlagError(f"--track={config.track}: the folder of a smoke run is removed; give --run_dir")
        find_python(f"--track={config.track}")
    tracking = Tracking(config.track)
    try:
        yield tracking
    finally:
        tracking.wait()
