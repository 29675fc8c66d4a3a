"""How busy a GPU is and how much of its memory is taken, sampled by `nvidia-smi` in the background."""

import contextlib
import statistics
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

PROGRAM = "nvidia-smi"
INTERVAL_MS = 200


class Sample(NamedTuple):
    """One reading: seconds of `time.monotonic`, percent of the time that kernels ran, MiB taken by all programs."""

    time_s: float
    utilisation: float
    memory_mib: float


class Span(NamedTuple):
    """From when to when a round ran, in seconds of `time.monotonic`."""

    start_s: float
    end_s: float


class GpuSampler:
    """Samples while its block runs; where there is no `nvidia-smi`, there are no samples."""

    def __init__(self, gpu: str):
        """`gpu` is its number or its name beginning with "GPU-", as `nvidia-smi` lists them."""
        self.samples: list[Sample] = []
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
                utilisation, memory_mib = map(float, line.split(","))
                self.samples.append(Sample(time.monotonic(), utilisation, memory_mib))


def summarize(samples: Iterable[Sample], rounds: Sequence[Span]) -> dict[str, Any]:
    """What the samples say of rounds.

    Returns:
      `utilisation_percent`, the mean within the rounds after the first; `memory_mib`, what was taken at the end of each
      round; and `memory_growth_mib`, from the end of the second to that of the last. A value is None where there are no
      samples.
    """
    samples = list(samples)
    busy = [
        each.utilisation for each in samples if any(span.start_s <= each.time_s <= span.end_s for span in rounds[1:])
    ]
    memory_mib = []
    for span in rounds:
        before = [each.memory_mib for each in samples if each.time_s <= span.end_s]
        memory_mib.append(before[-1] if before else None)
    is_known = len(memory_mib) > 1 and memory_mib[1] is not None
    return {
        "utilisation_percent": statistics.mean(busy) if busy else None,
        "memory_mib": memory_mib,
        "memory_growth_mib": memory_mib[-1] - memory_mib[1] if is_known else None,
    }


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
