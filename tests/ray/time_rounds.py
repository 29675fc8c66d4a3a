"""Times rounds of FedAvg on Ray clusters of this machine, with nodes of a core each, and in this process on as many.

`.venv-ray/bin/python tests/ray/time_rounds.py --nodes=1,2` prints two lines for each; `make test-ray` makes .venv-ray.
The workload is the benchmark's `fed_avg_mnist_student`. The two take turns, round by round, so that their ratio means
something on a machine that does other things as well. Seconds of the processor are those of all threads; with Ray they
are told apart: of the processes that compute shares, of this one, and of all that Ray runs beside them.
"""

import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import psutil

from launch.benchmarks.workloads import WORKLOADS, build_data
from launch.runtimes.in_process import run_in_process
from launch.runtimes.ray_runtime import run_ray
from launch.training.federation import build_spec
from launch.training.training_run import build_process

WORKLOAD = WORKLOADS["fed_avg_mnist_student"]
WARM_UP = 2  # rounds that are not counted
SHARES, DRIVER, RAY = "shares", "this process", "Ray's own"
ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),  # one for all clusters: Ray reads it once in a process
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_worker_niceness": "0",
}


@contextlib.contextmanager
def start_nodes(num_nodes: int) -> Iterator[str]:
    """A cluster of nodes of a core each, which only this machine can reach; yields its address."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "node_ip_address": "127.0.0.1"}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        for _ in range(num_nodes - 1):
            cluster.add_node(**node)
        yield cluster.address
    finally:
        cluster.shutdown()


def start_rounds(folder: str) -> Callable[[], None]:
    """A function that runs the next round in the runtime that is in use here."""
    config, data = WORKLOAD.build_config(folder), build_data(WORKLOAD, folder)
    process = build_process(config, build_spec(config, data.format), data)
    state = process.initialize()

    def run_round() -> None:
        nonlocal state
        state = process.next(state).state

    return run_round


@contextlib.contextmanager
def open_in_process(folder: str, num_threads: int) -> Iterator[Callable[[], None]]:
    """Yields a function that runs the next round in this process. It does so in a thread of its own, since TFF has a
    default context for each."""
    with contextlib.ExitStack() as stack:
        thread = stack.enter_context(concurrent.futures.ThreadPoolExecutor(1))
        runtime = run_in_process(os.path.join(folder, "in_process.log"), num_threads=num_threads)
        thread.submit(runtime.__enter__).result()
        stack.callback(lambda: thread.submit(runtime.__exit__, None, None, None).result())
        run_round = thread.submit(start_rounds, folder).result()
        yield lambda: thread.submit(run_round).result()


def read_cpu() -> dict[str, dict[int, float]]:
    """Seconds that the processor has spent on this process and its descendants, by kind and by process."""
    seconds = {SHARES: {}, DRIVER: {}, RAY: {}}
    this = psutil.Process()
    for process in [this, *this.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            computes = process.cmdline()[0].startswith("ray::")
            kind = DRIVER if process == this else SHARES if computes else RAY
            seconds[kind][process.pid] = sum(process.cpu_times()[:2])
    return seconds


class Stopwatch:
    """Seconds of rounds, on the clock and of the processor."""

    def __init__(self, name: str):
        self.name, self.wall, self.cpu = name, [], {SHARES: [], DRIVER: [], RAY: []}

    def time(self, run_round: Callable[[], None]) -> None:
        before, start_s = read_cpu(), time.perf_counter()
        run_round()
        self.wall.append(time.perf_counter() - start_s)
        for kind, seconds in read_cpu().items():
            self.cpu[kind].append(sum(seconds.values()) - sum(before[kind].values()))

    def say(self) -> None:
        wall = self.wall[WARM_UP:]
        cpu = [f"{kind} {statistics.median(self.cpu[kind][WARM_UP:]):.2f}" for kind in self.cpu]
        spread = f"{min(wall):.2f} to {max(wall):.2f}"
        print(f"{self.name}: {statistics.median(wall):.2f} s a round ({spread}); CPU {', '.join(cpu)}", flush=True)


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", default="1,2", help="numbers of nodes, with commas between them")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each that are timed")
    parser.add_argument("--shares", type=int, default=8, help="shares of a round's clients")
    options = parser.parse_args()
    os.environ |= ENVIRONMENT
    for num_nodes in map(int, options.nodes.split(",")):
        here = Stopwatch(f"in_process, {num_nodes} at a time")
        on_ray = Stopwatch(f"ray, nodes {num_nodes}, shares {options.shares}")
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            run_here = stack.enter_context(open_in_process(folder, num_nodes))
            address = stack.enter_context(start_nodes(num_nodes))
            stack.enter_context(run_ray(os.path.join(folder, "ray.log"), address, options.shares))
            run_on_ray = start_rounds(folder)
            for _ in range(options.rounds + WARM_UP):
                here.time(run_here)
                on_ray.time(run_on_ray)
        here.say()
        on_ray.say()
        ratios = [there / this for this, there in zip(here.wall[WARM_UP:], on_ray.wall[WARM_UP:], strict=True)]
        print(f"ray takes {statistics.median(ratios):.2f} times as long ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
