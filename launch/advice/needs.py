"""How much more would decide what is open: so many seeds, clients or test examples. Imports no TensorFlow.

By the usual reckoning for a paired t-test: n units with the observed spread s show a gain g with a power of 80 % at
the rate that the comparison is decided at, if g sqrt(n) / s = t(1 - rate / 2) + t(0.8), both of n - 1 degrees of
freedom. The gain is the observed one, or the one that matters if that is larger: nobody needs to find a smaller one.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from launch.advice.contrasts import CLIENTS, EXAMPLES, SEEDS, Sample, find_quantile
from launch.advice.questions import Comparison
from launch.console.shown_text import format_count

POWER = 0.8
MOST = 100_000  # more is not counted


class Need(NamedTuple):
    """What would decide a comparison.

    Attributes:
      unit: SEEDS, CLIENTS or EXAMPLES.
      now: how many there are.
      needed: how many there would have to be, all together; None for more than `MOST`.
    """

    unit: str
    now: int
    needed: int | None

    @property
    def factor(self) -> float | None:
        """How many times as many."""
        return None if self.needed is None else self.needed / self.now


def list_needs(comparison: Comparison, margin: float) -> Iterator[Need]:
    """Of each sample that leaves the comparison open; none where it is decided, or nothing is known.

    Args:
      comparison: which.
      margin: the least gain that matters.
    """
    gain = max(abs(comparison.contrast.gain or 0.0), margin)
    for sample in comparison.contrast.samples:
        if sample.compute_p_value() >= comparison.rate and gain > 0:
            needed = count_needed(sample, gain, comparison.rate)
            yield Need(sample.unit, sample.count, None if needed is None else max(needed, sample.count + 1))


def count_needed(sample: Sample, gain: float, rate: float) -> int | None:
    """The least number of units that show such a gain; None for more than `MOST`."""
    deviation = sample.error * math.sqrt(sample.count)

    def is_enough(number: int) -> bool:
        degrees = math.inf if sample.unit == EXAMPLES else number - 1
        wanted = find_quantile(degrees, 1 - rate / 2) + find_quantile(degrees, POWER)
        return gain * math.sqrt(number) >= wanted * deviation

    low, high = 1, 2  # enough is more than the first
    while not is_enough(high):
        low, high = high, 2 * high
        if high > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def say_need(needs: list[Need], sizes_of_clients: float | None) -> str:
    """The needs in words that go on after "would", such as "take about 60 clients like yours, not 20"; "" without any.

    Args:
      needs: of one comparison.
      sizes_of_clients: test examples of a client on average; None if more of these would not help.
    """
    parts = []
    for need in needs:
        if need.needed is None:
            return "take far more data than yours"
        if need.unit == SEEDS:
            parts.append(format_count(need.needed - need.now, "more repeat"))
        elif need.unit == EXAMPLES:
            parts.append(f"about {round_up(need.needed):,} test examples in place of {need.now:,}")
        elif need.unit == CLIENTS:
            text = f"about {round_up(need.needed):,} clients like yours in place of {need.now:,}"
            if sizes_of_clients and need.factor:
                times = math.ceil(need.factor * 10) / 10
                text += f", or at best {times if times < 10 else math.ceil(times):g} times the examples of each"
            parts.append(text)
    return f"take {' and '.join(parts)}" if parts else ""


def round_up(number: int) -> int:
    """To two digits, since more are not known: 1,234 is 1,300."""
    size = 10 ** max(0, len(str(number)) - 2)
    return -(-number // size) * size
