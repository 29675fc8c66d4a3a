"""Peers in turns: their rounds, one peer at a time, and what the times tell. Imports no TensorFlow."""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from launch.benchmarks.peer_process import Seconds
from launch.benchmarks.workloads import OURS


class Times(NamedTuple):
    """What a peer's rounds took: the first, with all that is done once, and the later ones."""

    first: Seconds
    later: Sequence[Seconds]

    def list_wall_s(self) -> list[float]:
        """Seconds of the later rounds, on the clock."""
        return [each.wall for each in self.later]


def time_in_turns(
    runs: Mapping[str, Callable[[], Seconds]],
    repeats: int,
    report: Callable[[str], None],
    deadline_s: float = math.inf,
) -> dict[str, Times]:
    """Calls each function once for its first round, then all in turn, `repeats` times.

    After `deadline_s`, of `time.monotonic`, there is no further turn, but all have one at least.

    Returns:
      What they took, by name.
    """
    times: dict[str, Times] = {}
    for name, run in runs.items():
        times[name] = Times(run(), [])
        report(f"first round: {name} {times[name].first.wall:.2f} s")
    for repeat in range(1, repeats + 1):
        for name, run in runs.items():
            times[name].later.append(run())
        latest = ", ".join(f"{name} {taken.later[-1].wall:.2f} s" for name, taken in times.items())
        report(f"repeat {repeat}/{repeats}: {latest}")
        if time.monotonic() > deadline_s:
            break
    return times


def compute_results(times: Mapping[str, Times], base: str = OURS) -> dict[str, Any]:
    """The results of a workload, computed from what each peer's rounds took.

    Returns:
      `<peer>_s`, the median; `ratio_to_<peer>`, how many times as long as the peer `base` that peer took (above 1:
      `base` is faster), and `cpu_ratio_to_<peer>`, the same in seconds of the processors, if `base` was timed; by peer
      `cpu_s`, the median, `first_round_s`, with tracing, and `rounds_s`, the seconds of all later rounds.
    """
    medians = {name: statistics.median(taken.list_wall_s()) for name, taken in times.items()}
    cpu_s = {name: statistics.median(each.cpu for each in taken.later) for name, taken in times.items()}
    results: dict[str, Any] = {f"{name}_s": median for name, median in medians.items()}
    if base in medians:
        others = [name for name in medians if name != base]
        results |= {f"ratio_to_{name}": medians[name] / medians[base] for name in others}
        # Too short a round has no time that the kernel counts.
        results |= {f"cpu_ratio_to_{name}": cpu_s[name] / cpu_s[base] if cpu_s[base] else None for name in others}
    return {
        **results,
        "cpu_s": cpu_s,
        "first_round_s": {name: taken.first.wall for name, taken in times.items()},
        "rounds_s": {name: taken.list_wall_s() for name, taken in times.items()},
    }
