"""Times a round of FedAvg on Ray clusters of this machine, with nodes of a core each, and in this process on as many.

`.venv-ray/bin/python tests/ray/time_rounds.py --nodes=1,2` prints a line for each; `make test-ray` makes .venv-ray.
The workload is the benchmark's `fed_avg_mnist_student`. Runs on a machine that does other things tell nothing.
"""

import argparse
import contextlib
import os
import pathlib
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from launch.benchmarks.ours import build_process
from launch.benchmarks.workloads import WORKLOADS
from launch.runtimes.in_process import run_in_process
from launch.runtimes.ray_runtime import run_ray

WORKLOAD = WORKLOADS["fed_avg_mnist_student"]


@contextlib.contextmanager
def start_nodes(num_nodes: int) -> Iterator[str]:
    """A cluster of nodes of a core each, which only this machine can reach; yields its address."""
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), "RAY_USAGE_STATS_ENABLED": "0"}
    os.environ |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_worker_niceness": "0"}
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "node_ip_address": "127.0.0.1"}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        for _ in range(num_nodes - 1):
            cluster.add_node(**node)
        yield cluster.address
    finally:
        cluster.shutdown()


def time_rounds(folder: str, rounds: int) -> list[float]:
    """Seconds of each round after two that are not counted, in the runtime that is in use."""
    process = build_process(WORKLOAD, folder)
    state, seconds = process.initialize(), []
    for _ in range(rounds + 2):
        start_s = time.perf_counter()
        state = process.next(state).state
        seconds.append(time.perf_counter() - start_s)
    return seconds[2:]


def say(name: str, seconds: list[float]) -> None:
    spread = f"{min(seconds):.2f} to {max(seconds):.2f}"
    print(f"{name}: {statistics.median(seconds):.2f} s a round ({spread})", flush=True)


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", default="1,2", help="numbers of nodes, with commas between them")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that are timed")
    parser.add_argument("--shares", type=int, default=8, help="shares of a round's clients")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log_path = os.path.join(folder, "worker.log")
        for num_nodes in map(int, options.nodes.split(",")):
            with run_in_process(log_path, num_threads=num_nodes):
                say(f"in_process, {num_nodes} at a time", time_rounds(folder, options.rounds))
            with start_nodes(num_nodes) as address, run_ray(log_path, address, options.shares):
                say(f"ray, nodes {num_nodes}, shares {options.shares}", time_rounds(folder, options.rounds))


if __name__ == "__main__":
    main()
