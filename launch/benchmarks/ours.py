"""This project, or another checkout of it: a timed round is `process.next(state)` of a run as `launch.train` makes it.

`drive.py` does it in a process of the checkout's own.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TextIO

from launch.benchmarks.workloads import ROOT, Workload

DRIVER = pathlib.Path(__file__).with_name("drive.py")


@contextlib.contextmanager
def open_rounds(
    workload: Workload,
    folder: str,
    checkout: str = str(ROOT),
    settings: Mapping[str, Any] | None = None,
    clients_at_a_time: int | None = None,
) -> Iterator[Callable[[], None]]:
    """Yields a function that runs the next round.

    Args:
      workload: what to run.
      folder: for client files and a log.
      checkout: the folder of the code that runs it.
      settings: of the run, beside those of the workload.
      clients_at_a_time: how many of a round's clients are trained at once by --runtime=in_process; None for its choice.
    """
    given = {
        "arguments": workload.spell_arguments(folder, **(settings or {})),
        "log_path": os.path.join(folder, f"{os.getpid()}_runtime.log"),
        "clients_at_a_time": clients_at_a_time,
    }
    with subprocess.Popen(
        # With -P the folder of `drive.py` is not on the path, so that all imports are of the checkout.
        [find_python(checkout), "-P", str(DRIVER), json.dumps(given)],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": checkout},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        read_answer(driver.stdout, "ready")

        def run_round():
            # Where nobody reads, there is no answer either, and its absence is what is reported.
            with contextlib.suppress(BrokenPipeError):
                driver.stdin.write("go\n")
                driver.stdin.flush()
            read_answer(driver.stdout, "done")

        yield run_round


def find_python(checkout: str) -> str:
    """The interpreter of a checkout's own environment, or this one if it has none."""
    own = pathlib.Path(checkout) / ".venv" / "bin" / "python"
    return str(own) if own.exists() else sys.executable


def read_answer(answers: TextIO, expected: str) -> None:
    """Waits for an answer. Raises RuntimeError if it is another, or if the driver has ended."""
    if (answer := answers.readline().strip()) != expected:
        raise RuntimeError(answer or "the process of the run has ended")
