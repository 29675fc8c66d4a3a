"""`python -m launch.benchmark`: seconds a round of this project beside others and beside the machine's limit.

Every peer (`launch/benchmarks/`) lives in a process of its own. They take turns, one round each, again and again, and
only one works at a time. So a slow minute of the machine slows all of them alike. Imports no TensorFlow.
"""

import contextlib
import dataclasses
import importlib.metadata
import os
import pathlib
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import psutil
from absl import flags as absl_flags

from launch.benchmarks.peer_process import PeerError, PeerProcess
from launch.benchmarks.workloads import OURS, PEERS, WORKLOADS, Workload, build_data
from launch.command_line import parse_flags, run_command
from launch.runs.errors import RunStopped
from launch.runs.tables import write_json
from launch.settings.flags import FlagError, define_own_flags
from launch.stop_signals import leave

PROGRAM = "python -m launch.benchmark"
DEFAULT_WORKLOADS = ("fed_avg_mnist_student",)
DEFAULT_REPEATS = 5  # with stock TFF at 5 to 11 s a round on 2 cores, about four minutes in all


class Options(NamedTuple):
    """What is asked for: each workload with its peers, how often each is timed, the JSON file or "" for none."""

    workloads: tuple[Workload, ...]
    repeats: int
    output: str


def define_flags() -> absl_flags.FlagValues:
    """The flags of this command."""
    return define_own_flags(
        workloads=(list(DEFAULT_WORKLOADS), f"What to time: {', '.join(WORKLOADS)}."),
        peers=(list(PEERS), "Which peers run it, of those that can."),
        repeats=(DEFAULT_REPEATS, "Timed rounds of each peer, after one to warm up."),
        output=("", "JSON file for the results; empty: only the table."),
    )


def parse_options(argv: Sequence[str]) -> Options:
    """Reads the command line, without the program's name.

    Raises:
      FlagError: an unknown flag, workload or peer, a value out of range, a peer that is not set up, a file
        that cannot be written.
    """
    values = parse_flags(define_flags(), argv)
    _check_names("workloads", values.workloads, WORKLOADS)
    _check_names("peers", values.peers, PEERS)
    _check_output(values.output)
    chosen = tuple(_choose_peers(WORKLOADS[name], values.peers) for name in dict.fromkeys(values.workloads))
    return Options(chosen, values.repeats, values.output)


def compute_results(times_s: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """The results of a workload, computed from the seconds of each peer's rounds.

    Returns:
      `<peer>_s`, the median; `ratio_to_<peer>`, how many times as long as ours that peer took (above 1: ours is
      faster), if ours was timed; and `rounds_s`, the seconds given.
    """
    medians = {name: statistics.median(times) for name, times in times_s.items()}
    results: dict[str, Any] = {f"{name}_s": median for name, median in medians.items()}
    if OURS in medians:
        results |= {f"ratio_to_{name}": median / medians[OURS] for name, median in medians.items() if name != OURS}
    return {**results, "rounds_s": {name: list(times) for name, times in times_s.items()}}


def format_table(workload: Workload, times_s: Mapping[str, Sequence[float]]) -> str:
    """The results for people: median, spread and ratio of each peer."""
    results = compute_results(times_s)
    lines = [workload.describe(), f"{'peer':<16}{'median':>9}{'fastest':>9}{'slowest':>9}{'ratio':>8}"]
    for name, times in times_s.items():
        ratio = results.get(f"ratio_to_{name}")
        seconds = "".join(f"{value:7.3f} s" for value in (results[f"{name}_s"], min(times), max(times)))
        lines.append(f"{name:<16}{seconds}{'' if ratio is None else f'{ratio:.2f}':>8}  {PEERS[name].description}")
    return "\n".join([*lines, "seconds a round; ratio: how many times as long as ours, above 1 where ours is faster"])


def run_workload(workload: Workload, repeats: int, report: Callable[[str], None]) -> dict[str, list[float]]:
    """Starts the peers of a workload, times their rounds in turn, and leaves no process behind.

    Returns:
      The seconds of every timed round, by peer.

    Raises:
      PeerError: a peer could not start or finish a round.
    """
    present = [name for name in workload.peers if not PEERS[name].explain_absence()]
    with tempfile.TemporaryDirectory(prefix="benchmark_") as folder, contextlib.ExitStack() as stack:
        build_data(workload, folder)
        report(f"{workload.describe()}; starting {', '.join(present)}")
        for line in list_skipped(workload):
            report(line)
        peers = [stack.enter_context(PeerProcess(name, workload, folder)) for name in present]
        for peer in peers:
            peer.wait_until_ready()
        return time_in_turns({peer.name: peer.run_round for peer in peers}, repeats, report)


def time_in_turns(
    runs: Mapping[str, Callable[[], float]], repeats: int, report: Callable[[str], None]
) -> dict[str, list[float]]:
    """Calls each function, which returns seconds, once to warm up, then all in turn, `repeats` times.

    Returns:
      The seconds of the turns, by name.
    """
    for name, run in runs.items():
        report(f"warm-up: {name} {run():.2f} s")
    times_s: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(1, repeats + 1):
        for name, run in runs.items():
            times_s[name].append(run())
        latest = ", ".join(f"{name} {given[-1]:.2f} s" for name, given in times_s.items())
        report(f"repeat {repeat}/{repeats}: {latest}")
    return times_s


def list_skipped(workload: Workload) -> list[str]:
    """A line for each reason for which peers of a workload are skipped."""
    by_reason: dict[str, list[str]] = {}
    for name in workload.peers:
        if reason := PEERS[name].explain_absence():
            by_reason.setdefault(reason, []).append(name)
    return [f"skipped: {', '.join(names)}: {reason}" for reason, names in by_reason.items()]


def describe_machine() -> dict[str, Any]:
    """The machine of the timing: processor, cores, memory, versions, and how busy it was before."""
    packages = ("tensorflow", "tensorflow-federated")
    return {
        "cpu": _read_cpu_name(),
        "num_cores": len(os.sched_getaffinity(0)),
        "memory_bytes": psutil.virtual_memory().total,
        "load_average_before": os.getloadavg()[0],
        "platform": platform.platform(),
        "python": platform.python_version(),
        **{name.replace("-", "_"): importlib.metadata.version(name) for name in packages},
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code: 0, 2 for a wrong request, 1 for a failed run, 130 for Ctrl-C."""
    return run_command(
        lambda arguments: _run(parse_options(arguments)),
        "benchmark",
        f"{PROGRAM} [--flag=value ...]",
        define_flags,
        argv,
        stopped="stopped: the benchmark was interrupted; nothing was written",
    )


def _run(options: Options) -> None:
    start = time.monotonic()
    machine = describe_machine()
    results = {}

    def report(line: str) -> None:
        print(f"[{time.monotonic() - start:4.0f} s] {line}", flush=True)

    try:
        for workload in options.workloads:
            times_s = run_workload(workload, options.repeats, report)
            results[workload.name] = compute_results(times_s)
            print(f"\n{format_table(workload, times_s)}\n", flush=True)
    except PeerError as error:
        raise RunStopped(f"error: {error}", 1) from error
    if options.output:
        write_json(pathlib.Path(options.output), {"machine": machine, "workloads": results})
        print(f"results in {options.output}")


def _check_names(flag: str, names: Iterable[str], known: Iterable[str]) -> None:
    unknown = [name for name in names or [""] if name not in known]
    if unknown:
        raise FlagError(f"--{flag}={unknown[0]}: expected names, with commas between, of {', '.join(known)}")


def _check_output(path: str) -> None:
    """Raises FlagError if the file cannot be written: better now than after minutes of timing."""
    if not path:
        return
    if pathlib.Path(path).is_dir():
        raise FlagError(f"--output={path}: is a folder; expected a file")
    try:
        with tempfile.TemporaryFile(dir=pathlib.Path(path).absolute().parent):
            pass
    except OSError as error:
        raise FlagError(
            f"--output={path}: expected a file in a folder that exists and can be written ({error.strerror})"
        ) from None


def _choose_peers(workload: Workload, names: Sequence[str]) -> Workload:
    chosen = tuple(name for name in workload.peers if name in names)
    if not chosen:
        raise FlagError(
            f"--peers={','.join(names)}: none can run {workload.name}; its peers: {', '.join(workload.peers)}"
        )
    reasons = [PEERS[name].explain_absence() for name in chosen]
    if all(reasons):
        raise FlagError(f"--peers={','.join(names)}: {reasons[0]}")
    return dataclasses.replace(workload, peers=chosen)


def _read_cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    leave(main())
