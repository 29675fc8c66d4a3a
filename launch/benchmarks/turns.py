"""Peers in turns: their rounds, one peer at a time, and what the times tell. Imports no TensorFlow."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from launch.benchmarks.cost import Cost
from launch.benchmarks.workloads import OURS


class Times(NamedTuple):
    """What the rounds of a process took: the first, with all that is done once, and the later ones."""

    first: Cost
    later: Sequence[Cost]


def time_in_turns(
    runs: Mapping[str, Callable[[], Cost]], repeats: int, report: Callable[[str], None]
) -> dict[str, Times]:
    """Calls each function once for its first round, then all in turn, `repeats` times.

    Returns:
      What they took, by name.
    """
    times: dict[str, Times] = {}
    for name, run in runs.items():
        times[name] = Times(run(), [])
        report(f"first round: {name} {times[name].first.wall_s:.2f} s")
    for repeat in range(1, repeats + 1):
        for name, run in runs.items():
            times[name].later.append(run())
        latest = ", ".join(f"{name} {taken.later[-1].wall_s:.2f} s" for name, taken in times.items())
        report(f"repeat {repeat}/{repeats}: {latest}")
    return times


def compute_results(times: Mapping[str, Sequence[Times]], base: str = OURS) -> dict[str, Any]:
    """The results of a workload, computed from what the rounds of each process of each peer took.

    Returns:
      `<peer>_s`, the median of all later rounds; `ratio_to_<peer>`, how many times as long as the peer `base` that peer
      took (above 1: `base` is faster), and `cpu_ratio_to_<peer>`, the same in seconds of the processors, if `base` was
      timed. By peer: `cpu_s`, `system_s`, `switches` and `faults`, the medians; `memory_bytes`, the most of a process;
      `first_round_s`, with tracing, the median; `rounds_s`, the seconds of all later rounds; `processes_s`, the median
      of each process; `spread`, the slowest of these over the quickest; and, if `base` was timed,
      `ratios_by_process`, those of the processes that took turns with each other.
    """
    rounds = {name: [cost for process in taken for cost in process.later] for name, taken in times.items()}
    rounds_s = {name: [cost.wall_s for cost in costs] for name, costs in rounds.items()}
    processes_s = {
        name: [statistics.median(cost.wall_s for cost in process.later) for process in taken]
        for name, taken in times.items()
    }
    medians = {name: statistics.median(seconds) for name, seconds in rounds_s.items()}
    counters = {
        field: {name: statistics.median(getattr(cost, field) for cost in costs) for name, costs in rounds.items()}
        for field in ("cpu_s", "system_s", "switches", "faults")
    }
    results: dict[str, Any] = {f"{name}_s": median for name, median in medians.items()}
    if base in medians:
        others, cpu_s = [name for name in medians if name != base], counters["cpu_s"]
        results |= {f"ratio_to_{name}": medians[name] / medians[base] for name in others}
        # Too short a round has no time that the kernel counts.
        results |= {f"cpu_ratio_to_{name}": cpu_s[name] / cpu_s[base] if cpu_s[base] else None for name in others}
        results["ratios_by_process"] = {
            name: [theirs / ours for theirs, ours in zip(processes_s[name], processes_s[base], strict=True)]
            for name in others
        }
    return {
        **results,
        **counters,
        "memory_bytes": {name: max(cost.memory_bytes for cost in costs) for name, costs in rounds.items()},
        "first_round_s": {
            name: statistics.median(process.first.wall_s for process in taken) for name, taken in times.items()
        },
        "rounds_s": rounds_s,
        "processes_s": processes_s,
        "spread": {name: max(seconds) / min(seconds) for name, seconds in processes_s.items()},
    }
