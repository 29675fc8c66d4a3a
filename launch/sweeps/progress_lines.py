"""What is shown of a sweep: the runs' own output if one goes on at a time, else a line for each and one over all."""

import re
import sys
import time
from collections.abc import Sequence

from tqdm import tqdm

from launch.console.progress import format_duration, say
from launch.sweeps.tasks import Task

SECONDS_PER_LINE = 60  # between two lines on the progress, where there is no terminal
_ERROR = "error: "
_ROUND = re.compile(r"round (\d+)/(\d+): (.*)")


class _Shown:
    """What was last seen of the run in a slot."""

    def __init__(self, position: int, task: Task, bar: tqdm | None):
        self.position, self.task, self.bar = position, task, bar
        self.start_s = time.perf_counter()
        self.start_round, self.round_num, self.text, self.last_line = None, 0, "", ""

    def read(self, line: str) -> None:
        if match := _ROUND.fullmatch(line):
            self.round_num, self.text = int(match[1]), match[3]
            if self.start_round is None:
                self.start_round = self.round_num - 1
        elif line.startswith("done "):
            self.text = line.removeprefix("done ").strip()
        # A library may say more at the interpreter's end, after the run's own last word.
        if line.strip() and not self.last_line.startswith(_ERROR):
            self.last_line = line.strip()

    @property
    def rounds_run(self) -> int:
        return 0 if self.start_round is None else self.round_num - self.start_round


class ProgressOfMany:
    """Shows runs by their position among all, from 1, and the slot, from 0, that they go on in.

    Args:
      rounds: of each run.
      slots: how many go on at a time.
      keeps_logs: whether the runs' output goes to files, so that it is for us to show how far they are.
    """

    def __init__(self, rounds: Sequence[int], slots: int, keeps_logs: bool):
        self._count, self._keeps_logs = len(rounds), keeps_logs
        self._start_s = self._line_s = time.perf_counter()
        self._rounds_run = self._num_ended = 0
        self._left = dict(enumerate(rounds, 1))  # the rounds of what has not ended
        self._shown: dict[int, _Shown] = {}
        self._has_bars = keeps_logs and sys.stderr.isatty()
        self._total = self._open_bar("all runs", self._count, slots) if self._has_bars else None

    def _open_bar(self, name: str, total: int, place: int) -> tqdm:
        layout = "{desc} |{bar:20}| {n_fmt}/{total_fmt}{postfix}"
        return tqdm(total=total, desc=name, bar_format=layout, file=sys.stderr, position=place, leave=False)

    def skip(self, position: int, task: Task) -> None:
        """A run that was finished before."""
        self.leave_out(position)
        say(f"{self._head(position, task)}: finished before")

    def start(self, position: int, task: Task, slot: int) -> None:
        """A run that starts."""
        bar = self._open_bar(task.name, task.config.rounds, slot) if self._has_bars else None
        self._shown[slot] = _Shown(position, task, bar)
        if not self._keeps_logs:
            say(f"{self._head(position, task)}{self._estimate() or f': {len(self._left)} runs to look at'}")
        elif not self._has_bars:
            say(f"{self._head(position, task)}: started, its output: {task.log}")

    def read(self, slot: int, lines: Sequence[str]) -> None:
        """What the run in a slot has printed since the last call."""
        shown = self._shown[slot]
        for line in lines:
            shown.read(line)
        if lines and shown.bar is not None:
            shown.bar.set_postfix_str(shown.text, refresh=False)
            shown.bar.n = shown.round_num
            shown.bar.refresh()
        if self._keeps_logs and not self._has_bars and time.perf_counter() - self._line_s >= SECONDS_PER_LINE:
            self._line_s = time.perf_counter()
            for each in self._shown.values():
                rounds = f"round {each.round_num}/{each.task.config.rounds}"
                say(f"{self._head(each.position, each.task)}: {rounds}{each.text and f', {each.text}'}")
            say(f"{self._num_ended} of {self._count} runs have ended{self._estimate()}")

    def last_line(self, slot: int) -> str:
        """The error of the run in a slot, else the last line that it has printed; "" if none was seen."""
        return self._shown[slot].last_line

    def end(self, position: int, slot: int, stopped: str = "") -> None:
        """A run that has ended well, or was asked to end: why, in words."""
        shown = self._shown[slot]
        if stopped or shown.start_round is not None:
            self._rounds_run += shown.rounds_run
        else:
            self._rounds_run += shown.task.config.rounds
        self.leave_out(position)
        head = self._head(position, shown.task)
        if stopped:
            say(f"{head}: {stopped}")
        elif self._keeps_logs:
            seconds = format_duration(time.perf_counter() - shown.start_s)
            say(f"{head}: done in {seconds}{shown.text and f'; {shown.text}'}")

    def fail(self, position: int, task: Task, reason: str) -> None:
        """A run that failed or could not be started."""
        self.leave_out(position)
        say(f"{self._head(position, task)}: failed ({reason})")

    def clear(self, slot: int) -> None:
        """The slot is free again."""
        shown = self._shown.pop(slot)
        if shown.bar is not None:
            shown.bar.close()

    def close(self) -> None:
        """Takes away all lines that move."""
        for slot in list(self._shown):
            self.clear(slot)
        if self._total is not None:
            self._total.close()

    def leave_out(self, position: int) -> None:
        """A run that is no longer expected."""
        del self._left[position]
        self._num_ended += 1
        if self._total is not None:
            self._total.n = self._num_ended
            self._total.set_postfix_str(self._estimate().removeprefix(": "))

    def _head(self, position: int, task: Task) -> str:
        return f"[{position}/{self._count}] {task.name}"

    def _estimate(self) -> str:
        """The time gone and left, estimated from the rounds that were run and those that remain; "" before any."""
        going = [shown for shown in self._shown.values() if shown.position in self._left]
        rounds_run = self._rounds_run + sum(shown.rounds_run for shown in going)
        if not rounds_run:
            return ""
        seconds = time.perf_counter() - self._start_s
        rounds_left = sum(self._left.values()) - sum(shown.round_num for shown in going)
        left = format_duration(seconds / rounds_run * rounds_left)
        return f": {format_duration(seconds)} gone, about {left} left"
