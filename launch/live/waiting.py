"""Waiting for clients before rounds: who is there is shown, and who was refused is told. Imports no TensorFlow."""

import math
from collections.abc import Callable
from typing import NamedTuple

from tff_algos.rounds.network import TICK_S

TELL_TICKS = round(3 / TICK_S)  # between two times that is told who was refused


class Waiting(NamedTuple):
    """What a `LiveNetwork` waits by.

    Attributes:
      now_ticks: the time of the transport.
      step: handles the next thing that comes until a time, None: however late; False: nothing came.
      list_connected: the names of those who are connected.
    """

    now_ticks: Callable[[], int]
    step: Callable[[int | None], bool]
    list_connected: Callable[[], list[str]]

    def wait(
        self,
        least: int,
        most: int,
        patience_s: float,
        show: Callable[[list[str]], None],
        tell: Callable[[], None] | None,
    ) -> None:
        """Waits until `most` are connected; once `least` are, for the others so many seconds more.

        Args:
          least, most, patience_s: see above.
          show: gets the names of those who are connected, at first and when they change.
          tell: is called every few seconds; None: nothing is told.
        """
        shown, until, told = None, None, self.now_ticks()
        while True:
            if (names := self.list_connected()) != shown:
                show(names)
                shown = names
            now = self.now_ticks()
            if tell is not None and now >= told + TELL_TICKS:
                told = now
                tell()
            if len(names) < least:
                until = None
            elif until is None:
                until = now + math.ceil(patience_s / TICK_S)
            if len(names) >= most or (until is not None and now >= until):
                return
            times = [each for each in (until, told + TELL_TICKS if tell else None) if each is not None]
            self.step(min(times, default=None))
