"""What a large federation costs: FedAvg with a small cohort of ever more clients, as whole runs of `launch.train`.

The clients hold real digits: each example is drawn, with replacement, from scikit-learn's 1,437 train images. A run is
a process of its own. Its start ends where its first round begins, which is when it writes `config.json`.
"""

import dataclasses
import os
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from datasets.digits import load_digits_arrays
from datasets.federated_data import SPLITS
from launch.benchmarks.commands import time_process
from launch.benchmarks.peer_process import PROJECT_FOLDER, PeerError, describe_log_end
from launch.runs.columns import (
    CONFIG_FILE,
    EVALUATION_S,
    METRICS_FILE,
    ROUND_S,
    TIMING_FILE,
    WORKER_MEMORY_BYTES,
)
from launch.runs.run_records import read_columns

EXAMPLES_PER_CLIENT = 12  # 10 to train on, one to validate on and one to test on
BRIGHTNESS = 15  # the digits' 0..16 become 0..240, since bytes of a user's file are taken as 0..255
FILES_PER_CLIENT = 2 * len(SPLITS)


@dataclasses.dataclass(frozen=True)
class FederationWorkload:
    """Runs of one command on federations of several sizes.

    Attributes:
      name: its key in the results.
      sizes: numbers of clients.
      cohort_size: clients that train in a round.
    """

    name: str = "large_cohort"
    sizes: tuple[int, ...] = (500, 5000, 50000)
    cohort_size: int = 50

    def describe(self) -> str:
        """One line for a heading."""
        sizes = ", ".join(f"{size:,}" for size in self.sizes)
        return f"{self.name}: FedAvg, {self.cohort_size} of {sizes} clients x {EXAMPLES_PER_CLIENT} examples"


LARGE_COHORT = FederationWorkload()


def write_federation(num_clients: int, path: pathlib.Path, seed: int = 0) -> None:
    """Writes an npz file for `--dataset=npz` with natural clients; the test set is that of the digits."""
    arrays = load_digits_arrays(seed)
    num_examples = num_clients * EXAMPLES_PER_CLIENT
    drawn = np.random.default_rng(seed).integers(0, len(arrays.train_y), num_examples)
    np.savez(
        path,
        x=arrays.train_x[drawn] * np.uint8(BRIGHTNESS),
        y=arrays.train_y[drawn],
        client=np.repeat(np.arange(num_clients), EXAMPLES_PER_CLIENT),
        x_test=arrays.test_x * np.uint8(BRIGHTNESS),
        y_test=arrays.test_y,
    )


def time_federations(
    workload: FederationWorkload, repeats: int, report: Callable[[str], None]
) -> dict[int, dict[str, float]]:
    """Runs each size twice: with shards to write and `repeats` rounds after the first one, then with shards to find.

    Returns:
      The measures of each size, see `compute_costs`; with `cpu_s`, CPU seconds of all processes of the first run, and
      `peak_bytes`, the most memory of a process of it; `start_again_s` is the start of the second run.

    Raises:
      PeerError: a run failed.
    """
    costs = {}
    for size in workload.sizes:
        with tempfile.TemporaryDirectory(prefix="benchmark_") as name:
            folder = pathlib.Path(name)
            write_federation(size, folder / "clients.npz")
            costs[size] = _run(workload, folder, "written", 1 + repeats)
            costs[size]["start_again_s"] = _run(workload, folder, "found", 1)["start_s"]
        report(f"{size:,} clients: " + ", ".join(f"{name} {value:.4g}" for name, value in costs[size].items()))
    return costs


def _run(workload: FederationWorkload, folder: pathlib.Path, name: str, rounds: int) -> dict[str, float]:
    """A run in `folder`, which has the clients' file and keeps their shards from one run to the next."""
    run_dir, log_path = folder / name, str(folder / f"{name}.log")
    flags = {
        "algo": "fedavg", "fedavg_cohort_size": workload.cohort_size, "rounds": rounds, "dataset": "npz",
        "partition": "natural", "npz": folder / "clients.npz", "client_dir": folder / "shards", "run_dir": run_dir,
    }  # fmt: skip
    began_s = time.time()
    command = ["-m", "launch.train", *(f"--{flag}={value}" for flag, value in flags.items())]
    answer = time_process(command, PROJECT_FOLDER, log_path)
    if answer is None or answer["exit_code"] != 0:
        raise PeerError(f"{workload.name}: a run failed; {describe_log_end(log_path)}")
    costs = compute_costs(run_dir, began_s, answer["wall_s"])
    return {**costs, "cpu_s": answer["cpu_s"], "peak_bytes": answer["peak_bytes"]}


def compute_costs(run_dir: pathlib.Path, began_s: float, wall_s: float) -> dict[str, float]:
    """What a finished run cost.

    Args:
      run_dir: its folder.
      began_s: when it was started, in seconds since 1970.
      wall_s: how long it took in all.

    Returns:
      `start_s`, until the first round; `round_s` and `evaluation_s`, medians of the rounds after the first, which
      compiles, or of that alone; `end_s`, from the last round on; `worker_bytes`, the most memory that its worker had
      after a round.
    """
    started_s, last_s = (os.stat(run_dir / name).st_mtime - began_s for name in (CONFIG_FILE, METRICS_FILE))
    timing = read_columns(run_dir / TIMING_FILE)
    return {
        "start_s": started_s,
        **{name: statistics.median(timing[name][1:].tolist() or timing[name]) for name in (ROUND_S, EVALUATION_S)},
        "end_s": wall_s - last_s,
        "worker_bytes": float(timing[WORKER_MEMORY_BYTES].max()),
    }


def compute_federation_results(costs: Mapping[int, Mapping[str, float]]) -> dict[str, Any]:
    """The costs by number of clients, and how many times as long the largest federation's parts take as the smallest's.

    `clients_ratio` is how many times as many clients it has: what a cost that is in proportion to them grows by.
    """
    least, most = min(costs), max(costs)
    ratios = {f"{name}_ratio": costs[most][name] / costs[least][name] for name in ("start_s", ROUND_S)}
    return {
        "by_clients": {str(size): dict(cost) for size, cost in costs.items()},
        "clients_ratio": most / least,
    } | ratios


def format_federation_table(workload: FederationWorkload, costs: Mapping[int, Mapping[str, float]]) -> str:
    """The results for people: a row a size."""
    names = ("clients", "files", "start", "start again", "round", "evaluation", "end", "CPU", "memory", "worker")
    rows: list[Sequence[str]] = [names]
    for size, cost in costs.items():
        seconds = [cost[name] for name in ("start_s", "start_again_s", ROUND_S, EVALUATION_S, "end_s", "cpu_s")]
        memory = [cost[name] / 1e6 for name in ("peak_bytes", "worker_bytes")]
        cells = [f"{size:,}", f"{FILES_PER_CLIENT * size:,}", *(f"{value:.2f} s" for value in seconds)]
        rows.append([*cells, *(f"{value:,.0f} MB" for value in memory)])
    lines = ["".join(f"{cell:>12}" for cell in row) for row in rows]
    explained = (
        "start: until the first round, clients' files written; start again: files found; round, evaluation: medians; "
        "end: all clients evaluated, tables, plots; CPU: of the whole run; memory: the peak of the run's process, "
        "beside it its worker"
    )
    return "\n".join([workload.describe(), *lines, explained])
