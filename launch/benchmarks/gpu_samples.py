"""How busy a GPU is and how much of its memory is taken, sampled by `nvidia-smi` in the background."""

import contextlib
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from launch.benchmarks.cost import Cost

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
            with contextlib.suppress(ValueError):  # "[N/A]", where a driver does not tell
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
