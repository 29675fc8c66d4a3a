"""What a person sees of a long run: one moving line on a terminal, plain lines elsewhere."""

import contextlib
import contextvars
import sys
import threading
import time
from collections.abc import Callable, Iterator

from tqdm import tqdm

FIRST_WAIT_S = 4.0
# Of the thread that asked for it alone: `sys.stdout` is the whole program's.
_is_silent: contextvars.ContextVar[bool] = contextvars.ContextVar("is_silent", default=False)


def format_duration(seconds: float) -> str:
    """A duration in words short enough for a line, for example "42 s", "3 min 5 s", "2 h 4 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@contextlib.contextmanager
def be_silent() -> Iterator[None]:
    """Inside, this thread neither says anything nor shows progress; what others print, and other threads say, stays."""
    token = _is_silent.set(True)
    try:
        yield
    finally:
        _is_silent.reset(token)


def say(line: str) -> None:
    """Prints a line at once, above a progress line if there is one."""
    if _is_silent.get():
        return
    with tqdm.external_write_mode(file=sys.stdout):
        print(line, flush=True)


@contextlib.contextmanager
def say_while_waiting(what: str, first_s: float = FIRST_WAIT_S) -> Iterator[None]:
    """Inside, says that `what` goes on: after `first_s` seconds, and again whenever that time has doubled."""
    start_s, is_over = time.perf_counter(), threading.Event()

    def tell() -> None:
        next_s = first_s
        while not is_over.wait(start_s + next_s - time.perf_counter()):
            try:
                say(f"wait     {what}, {format_duration(next_s)} so far")
            except OSError:  # nobody reads it, which the next line of the command finds
                return
            next_s *= 2

    # A thread begins without what this one has set.
    thread = threading.Thread(target=contextvars.copy_context().run, args=(tell,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


class Progress:
    """Shows the rounds of a run: round, what was reached, seconds for each round, time left.

    Args:
      rounds: rounds of the whole run.
      done: rounds that were done before, if the run is resumed.
      title: what the shown metric is called.
      format_value: how a value of it is written.
    """

    def __init__(
        self,
        rounds: int,
        done: int = 0,
        title: str = "accuracy",
        format_value: Callable[[float], str] = "{:.4f}".format,
    ):
        self._rounds, self._start_round = rounds, done
        self._title, self._format = title, format_value
        self._start_s = time.perf_counter()
        self._bar = None
        if sys.stderr.isatty() and not _is_silent.get():
            layout = "{desc} |{bar}| {n_fmt}/{total_fmt}{postfix}"
            self._bar = tqdm(total=rounds, initial=done, desc="round", bar_format=layout, file=sys.stderr)

    def update(self, round_num: int, reached: float | None, of_clients: float | None = None, further: str = "") -> None:
        """Shows that `round_num` (1-based) is done, the metric's values, those that are not None, and further words."""
        seconds = (time.perf_counter() - self._start_s) / (round_num - self._start_round)
        left = format_duration(seconds * (self._rounds - round_num))
        shown = "" if reached is None else f"test {self._title} {self._format(reached)}, "
        shown += "" if of_clients is None else f"clients' own {self._format(of_clients)}, "
        shown += f"{further}, " if further else ""
        text = f"{shown}{seconds:.2f} s a round, {left} left"
        if self._bar is None:
            say(f"round {round_num}/{self._rounds}: {text}")
        else:
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update(round_num - self._bar.n)

    def close(self) -> None:
        """Leaves the line as it is; what is printed next comes below it."""
        if self._bar is not None:
            self._bar.close()


class StatusLine:
    """What is waited for, as one line that changes on a terminal, and a line a change elsewhere.

    Args:
      topic: what the line begins with.
    """

    def __init__(self, topic: str):
        self._topic, self._text = topic, ""
        self._bar = None
        if sys.stderr.isatty() and not _is_silent.get():
            self._bar = tqdm(total=0, bar_format="{desc}", file=sys.stderr)

    def show(self, text: str) -> None:
        """Shows this from now on."""
        if text == self._text:
            return
        self._text = text
        if self._bar is None:
            say(f"{self._topic:<8} {text}")
        else:
            self._bar.set_description_str(f"{self._topic:<8} {text}")

    def close(self) -> None:
        """Leaves the line as it is; what is printed next comes below it."""
        if self._bar is not None:
            self._bar.close()
