"""What a round costs: seconds, and what the kernel counts meanwhile. Imports no TensorFlow.

A process that is slower than another of the same work shows it by more context switches, page faults or system time.
"""

import contextlib
import pathlib
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import psutil

from launch.benchmarks.workloads import OURS


class Cost(NamedTuple):
    """What a round took, of the peer's process and all below it.

    Attributes:
      wall_s: seconds on the clock.
      cpu_s: seconds of the processors.
      system_s: those of them that the kernel worked for it.
      switches: how often a thread that still lives stopped to wait; 0 where the kernel does not tell.
      faults: how often a page of memory had to be found; 0 where the kernel does not tell.
      memory_bytes: the most memory that its processes had until then, each at its own time.
    """

    wall_s: float
    cpu_s: float
    system_s: float = 0.0
    switches: int = 0
    faults: int = 0
    memory_bytes: int = 0


def read_cost(wall_s: float) -> Cost:
    """What this process and those below it that still live have taken until now, `wall_s` seconds on the clock."""
    this, costs = psutil.Process(), []
    for process in (this, *this.children(recursive=True)):
        # A process may end while it is read; what it took is then in no reading.
        with contextlib.suppress(psutil.Error, OSError):
            user_s, system_s = process.cpu_times()[:2]
            if psutil.LINUX:
                of_process = pathlib.Path(f"/proc/{process.pid}")
                # The program's name stands in brackets and may hold spaces and brackets of its own.
                fields = (of_process / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                # Minor and major ones: fields 10 and 12 of proc_pid_stat(5), counted behind the program's name.
                faults = int(fields[7]) + int(fields[9])
                status = (of_process / "status").read_text("utf-8", "replace")
                memory_bytes = int(status.partition("VmHWM:")[2].split()[0]) * 1024
                # Linux counts the voluntary ones for each thread, and each thread has a number as a process has.
                switches = 0
                for thread in process.threads():
                    # A thread may have just ended.
                    with contextlib.suppress(psutil.Error):
                        switches += psutil.Process(thread.id).num_ctx_switches().voluntary
            else:
                faults, memory_bytes = 0, process.memory_info().rss
                switches = process.num_ctx_switches().voluntary
            costs.append((user_s + system_s, system_s, switches, faults, memory_bytes))
    return Cost(wall_s, *map(sum, zip(*costs, strict=True)))


def subtract(end: Cost, start: Cost) -> Cost:
    """What was taken between two readings; the memory is that of the later one."""
    differences = (later - earlier for later, earlier in zip(end, start, strict=True))
    return Cost(*differences)._replace(memory_bytes=end.memory_bytes)


# Peers in turns: their rounds, one peer at a time, and what the times tell. Imports no TensorFlow.


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


# How busy a GPU is and how much of its memory is taken, sampled by `nvidia-smi` in the background.

PROGRAM = "nvidia-smi"
INTERVAL_MS = 200


class Sample(NamedTuple):
    """One reading: seconds of `time.monotonic`, percent of the time that kernels ran, memory taken by all programs."""

    time_s: float
    utilisation_percent: float
    memory_bytes: float


class Span(NamedTuple):
    """From when to when a round ran, in seconds of `time.monotonic`."""

    start_s: float
    end_s: float


class GpuSampler:
    """Samples while its block runs; where there is no `nvidia-smi`, there are no samples."""

    def __init__(self, gpu: str):
        """`gpu` is its number or its name beginning with "GPU-", as `nvidia-smi` lists them."""
        self.samples: list[Sample] = []
        self._rounds: dict[str, list[list[Span]]] = {}
        self._gpu, self._program, self._thread = gpu, None, None

    def __enter__(self) -> "GpuSampler":
        query = ["--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits"]
        with contextlib.suppress(FileNotFoundError):
            self._program = subprocess.Popen(
                [PROGRAM, "-i", self._gpu, *query, f"--loop-ms={INTERVAL_MS}"], stdout=subprocess.PIPE, text=True
            )
            self._thread = threading.Thread(target=self._read, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        if self._program is not None:
            self._program.kill()
            self._program.wait()
            self._thread.join()
            self._program.stdout.close()

    def _read(self) -> None:
        for line in self._program.stdout:
            # Where a driver does not tell, it prints "[N/A]".
            with contextlib.suppress(ValueError):
                utilisation_percent, memory_mib = map(float, line.split(","))
                self.samples.append(Sample(time.monotonic(), utilisation_percent, memory_mib * 2**20))

    def watch(self, peer: str, run: Callable[[], Cost]) -> Callable[[], Cost]:
        """The function that runs a round of a process of the peer; when a round ran is noted for `summarize`."""
        rounds: list[Span] = []
        self._rounds.setdefault(peer, []).append(rounds)

        def run_watched() -> Cost:
            start_s = time.monotonic()
            cost = run()
            rounds.append(Span(start_s, time.monotonic()))
            return cost

        return run_watched

    def summarize(self) -> dict[str, dict[str, Any]]:
        """What the samples say of the rounds of each peer that was watched; see the function of this name."""
        return {peer: summarize(self.samples, processes) for peer, processes in self._rounds.items()}


def summarize(samples: Iterable[Sample], processes: Iterable[Sequence[Span]]) -> dict[str, Any]:
    """What the samples say of the rounds of each process of a peer.

    Returns:
      `utilisation_percent`, the mean within the rounds after the first; `memory_bytes`, the most that was taken at the
      end of a round; `memory_growth_bytes`, the most from the end of the second to that of the last; and
      `memory_by_round_bytes`, by process. A value is None where there are no samples.
    """
    samples, processes = list(samples), list(processes)
    later = [span for rounds in processes for span in rounds[1:]]
    busy = [
        each.utilisation_percent for each in samples if any(span.start_s <= each.time_s <= span.end_s for span in later)
    ]
    memory_bytes = [[_find_memory(samples, span.end_s) for span in rounds] for rounds in processes]
    known = [taken for each in memory_bytes for taken in each if taken is not None]
    # From the second round on: the first one makes what later ones use again.
    growths = [each[-1] - each[1] for each in memory_bytes if len(each) > 1 and each[1] is not None]
    return {
        "utilisation_percent": statistics.mean(busy) if busy else None,
        "memory_bytes": max(known, default=None),
        "memory_growth_bytes": max(growths, default=None),
        "memory_by_round_bytes": memory_bytes,
    }


def _find_memory(samples: Iterable[Sample], time_s: float) -> float | None:
    before = [each.memory_bytes for each in samples if each.time_s <= time_s]
    return before[-1] if before else None


def find_gpu(gpu: str) -> dict[str, str] | None:
    """Name, driver and memory of a GPU; None where none is seen."""
    query = ["--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        ended = subprocess.run([PROGRAM, "-i", gpu, *query], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    values = [value.strip() for value in ended.stdout.strip().split(",")]
    is_there = ended.returncode == 0 and len(values) == 3
    return dict(zip(("name", "driver", "memory"), values, strict=True)) if is_there else None
