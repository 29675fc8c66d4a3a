"""Sends runs to a tracker, once or until they end, and goes on where an earlier call or another process was."""

import contextlib
import pathlib
import time
import types
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from launch.progress import say
from launch.runs.checksums import check_sums
from launch.runs.columns import CLIENTS_FILE, METRICS_FILE, TRACKING, VIRTUAL_TIME_S
from launch.trackers.run_contents import (
    Round,
    State,
    describe_run,
    find_state,
    list_files,
    read_rounds_after,
    read_summary,
)
from launch.trackers.run_link import RunLink
from launch.trackers.sender_process import SenderProcess, TrackerError

POLL_S = 1.0
RETRY_S, LONGEST_RETRY_S = 5.0, 300.0  # twice as long after each failure, since each try starts the sender anew
LAST_TRIES = 2  # after the last run has ended
LINGER_S = 60.0  # how long a sweep may take from one run to the next


class Order(NamedTuple):
    """What is to be sent, and how.

    Attributes:
      tracker: "mlflow" or "wandb".
      python: the Python that has it.
      project: MLflow's experiment or W&B's project; "": what the tracker's own variable says, or the sender's default.
      variables: of the sender's environment.
      with_models: whether models are among the files.
      follows: whether runs that go on are followed until they end.
      lingers: whether to wait for a next run after that.
    """

    tracker: str
    python: str
    project: str = ""
    variables: Mapping[str, str] = types.MappingProxyType({})
    with_models: bool = True
    follows: bool = False
    lingers: bool = False


def check_run(run_dir: pathlib.Path) -> None:
    """Raises what `send_runs` would raise for a run that cannot be read; writes nothing."""
    describe_run(run_dir)
    if find_state(run_dir) is not State.GOING_ON:
        check_sums(run_dir)
    read_rounds_after(run_dir, 0)


def send_runs(order: Order, find_runs: Callable[[], Sequence[pathlib.Path]]) -> None:
    """Sends the runs that are found; one after the other, or if they are followed, all that go on side by side.

    A tracker that fails while runs are followed is tried again, with what was sent before kept.

    Args:
      order: what to send.
      find_runs: the run folders; called again and again if runs are followed.

    Raises:
      TrackerError: the tracker failed.
      FlagError: a run cannot be read.
      RunFolderError: a file of a run that has ended is not as the run left it.
      OSError: a run folder cannot be written.
    """
    run_dirs = find_runs()
    with contextlib.ExitStack() as stack:
        log_path = run_dirs[0] / TRACKING / f"{order.tracker}.log"
        log_path.parent.mkdir(exist_ok=True)
        log = stack.enter_context(open(log_path, "ab"))
        sender = stack.enter_context(SenderProcess(order.python, order.tracker, order.variables, log))
        runs = {run_dir: stack.enter_context(_Sending(run_dir, order)) for run_dir in run_dirs}
        patience = _Patience(order)
        while True:
            try:
                for run in runs.values():
                    if not run.is_done:
                        run.advance(sender)
            except TrackerError as error:
                sender.close()
                for run in runs.values():
                    run.is_open = False
                patience.bear(error, lambda: any(run.goes_on() for run in runs.values()))
                continue
            if patience.is_over(all(run.is_done for run in runs.values())):
                return
            time.sleep(POLL_S)
            if order.follows:
                for run_dir in find_runs():
                    if run_dir not in runs:
                        runs[run_dir] = stack.enter_context(_Sending(run_dir, order))


class _Patience:
    """How long to wait for more, and how often to bear with a tracker that fails."""

    def __init__(self, order: Order):
        self._order = order
        self._said, self._last_tries, self._retry_s = "", 0, RETRY_S
        self._busy_s = time.monotonic()

    def bear(self, error: TrackerError, goes_on: Callable[[], bool]) -> None:
        """Says once what is wrong and waits, or raises the error if there is nothing more to wait for."""
        self._last_tries += not goes_on()
        if not self._order.follows or self._last_tries >= LAST_TRIES:
            raise error
        if str(error) != self._said:
            self._said = str(error)
            say(f"warning  {self._order.tracker}: {error}; trying again")
        deadline = time.monotonic() + (RETRY_S if self._last_tries else self._retry_s)
        self._retry_s = min(2 * self._retry_s, LONGEST_RETRY_S)
        while time.monotonic() < deadline and (self._last_tries or goes_on()):
            time.sleep(POLL_S)

    def is_over(self, are_done: bool) -> bool:
        """Whether all is sent and no more will come. Call it when the tracker has answered."""
        self._retry_s = RETRY_S
        if not are_done:
            self._busy_s = time.monotonic()
        return are_done and not (self._order.lingers and time.monotonic() - self._busy_s < LINGER_S)


class _Sending:
    """A run on its way to a tracker.

    Attributes:
      is_open: whether the sender knows it.
      is_done: whether all was sent.
    """

    def __init__(self, run_dir: pathlib.Path, order: Order):
        self.is_open, self.is_done = False, False
        self._run_dir, self._order = run_dir, order
        self._described = describe_run(run_dir)
        self._link: RunLink | None = None  # from the first step to the last, as there may be more runs than files
        self._last_round, self._seen, self._is_waiting, self._where = 0, None, False, ""

    def __enter__(self) -> "_Sending":
        return self

    def __exit__(self, *_) -> None:
        if self._link is not None:
            self._link.close()

    def goes_on(self) -> bool:
        """Whether more is to come of the run."""
        return not self.is_done and find_state(self._run_dir) is State.GOING_ON

    def advance(self, sender: SenderProcess) -> None:
        """Sends what is new, and if the run has ended or is not followed, its files. Raises TrackerError."""
        if self._link is None:
            self._link = RunLink(self._run_dir, self._order.tracker)
        if self._is_ours(self._link):
            self._send(sender, self._link)
        if self.is_done:
            self._link.close()

    def _send(self, sender: SenderProcess, link: RunLink) -> None:
        state = find_state(self._run_dir)  # first, so that what is read of a run that has ended is all of it
        if not self.is_open:
            self._open(sender, link)
        self._send_rounds(sender)
        if state is not State.GOING_ON or not self._order.follows:
            self._close(sender, state)

    def _is_ours(self, link: RunLink) -> bool:
        if not link.is_current():
            say(f"note     {self._run_dir}: removed, or replaced by another run; it is not sent any more")
            self.is_done = True
            return False
        is_ours = link.acquire()
        if not is_ours and not self._is_waiting:
            say(f"note     {self._run_dir}: another process sends it to {self._order.tracker}; waiting")
        self._is_waiting = not is_ours
        return is_ours

    def _open(self, sender: SenderProcess, link: RunLink) -> None:
        check_run(self._run_dir)
        rounds = read_rounds_after(self._run_dir, 0)
        reply = sender.ask(
            "open",
            str(self._run_dir),
            project=self._order.project,
            known=link.read(),
            start_ms=rounds[0].start_ms if rounds else int(time.time() * 1000),
            witness=_choose_witness(rounds),
            **self._described._asdict(),
        )
        link.write(reply["destination"], reply["run_id"], reply["where"])
        self._last_round, self._seen, self.is_open = reply["last_round"], None, True
        known = f", which has {self._last_round} rounds of it" if self._last_round else ""
        say(f"send     {self._described.name} to {reply['title']}{known}")
        self._where = reply["where"]
        if self._order.follows:
            say(f"look     {self._where}")

    def _send_rounds(self, sender: SenderProcess) -> None:
        try:
            stat = (self._run_dir / METRICS_FILE).stat()
        except FileNotFoundError:  # before the first round
            return
        if self._seen == (stat.st_mtime_ns, stat.st_ino):
            return
        rounds = read_rounds_after(self._run_dir, self._last_round)
        if rounds:
            sender.ask("rounds", str(self._run_dir), rounds=rounds)
            self._last_round = rounds[-1].number
        self._seen = stat.st_mtime_ns, stat.st_ino

    def _close(self, sender: SenderProcess, state: State) -> None:
        last = read_rounds_after(self._run_dir, self._last_round - 1)
        sender.ask(
            "close",
            str(self._run_dir),
            status=state.value,
            summary=read_summary(self._run_dir) if state is State.FINISHED else {},
            tables=[CLIENTS_FILE],  # shown as such where a tracker can
            files=list_files(self._run_dir, self._order.with_models),
            last_round=self._last_round,
            end_ms=last[-1].time_ms if last else int(time.time() * 1000),
        )
        self.is_done, self.is_open = True, False
        more = "; it goes on, and --follow would send the rest" if state is State.GOING_ON else ""
        how_far = state.value.replace("_", " ")
        say(f"sent     {self._described.name}: {self._last_round} rounds, {how_far}{more}; look: {self._where}")


def _choose_witness(rounds: Sequence[Round]) -> str:
    """A column that is filled in every round: what the tracker has of it says how far it knows the run."""
    filled = rounds[0].values if rounds else {}
    return VIRTUAL_TIME_S if VIRTUAL_TIME_S in filled or not filled else next(iter(filled))
