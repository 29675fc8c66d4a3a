"""`python -m launch.benchmark`: seconds a round of this project beside others and beside the machine's limit.

`--before=<folder>` times another checkout of this project beside this one, by its own code.

Every peer (`launch/benchmarks/`) lives in a process of its own. They take turns, one round each, again and again, and
only one works at a time. So a slow minute of the machine slows all of them alike. Then all start again, since a
process may be slow from its start to its end, and another of the same work not. Imports no TensorFlow.
"""

import contextlib
import dataclasses
import pathlib
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from launch.benchmarks.machine import describe_machine
from launch.benchmarks.peer_process import PeerError, PeerProcess
from launch.benchmarks.turns import Times, compute_results, time_in_turns
from launch.benchmarks.workloads import BEFORE, PEERS, WORKLOADS, Peer, Workload, build_data, make_peer_before
from launch.command_line import parse_flags, run_command
from launch.runs.errors import RunStopped
from launch.runs.tables import write_json
from launch.settings.errors import FlagError
from launch.settings.runtimes import RUNTIMES
from launch.stop_signals import leave
from tff_algos.settings.config_fields import setting, texts

PROGRAM = "python -m launch.benchmark"
SECONDS = ("median", "fastest", "slowest", "CPU", "system", "first")
COUNTED = ("ratio", "spread", "switches", "faults", "memory")
MAX_SPREAD = 1.1  # processes that differ by more are marked
EXPLANATION = f"""seconds a round; ratio: how many times as long as ours, above 1 where ours is faster
spread: the slowest process over the quickest, each by its median; * if its processes differ by more than {MAX_SPREAD:g}
switches: how often a thread stopped to wait, faults: how often a page of memory had to be found, in a round"""


class Options(NamedTuple):
    """What is asked for.

    Attributes:
      workloads: each with the peers chosen.
      peers: all that there are, by name.
      processes: how many times each is started.
      repeats: how many rounds of each are timed in all.
      output: the JSON file, "" for none.
    """

    workloads: tuple[Workload, ...]
    peers: Mapping[str, Peer]
    processes: int
    repeats: int
    output: str


@dataclasses.dataclass(frozen=True)
class Flags:
    """The flags of this command."""

    workloads: tuple[str, ...] = texts(("fed_avg_mnist_student",), f"What to time: {', '.join(WORKLOADS)}.")
    peers: tuple[str, ...] = texts(tuple(PEERS), "Which peers run it, of those that can.")
    before: str = setting("", f"Folder of another checkout of this project, such as an older one: a peer, {BEFORE}.")
    before_runtime: str = setting(
        "", "What --before runs its computations with; empty: its own default.", choices=("", *RUNTIMES)
    )
    processes: int = setting(
        5, "How many times each peer is started; a process may be slow as a whole.", minimum=1, maximum=1000
    )
    repeats: int = setting(  # with stock TFF at 5 to 11 s a round on 2 cores, about ten minutes in all
        15, "Timed rounds of each peer in all, after the first of each process, which traces.", minimum=1, maximum=10**6
    )
    output: str = setting("", "JSON file for the results; empty: only the table.")


def parse_options(argv: Sequence[str]) -> Options:
    """Reads the command line, without the program's name.

    Raises:
      FlagError: an unknown flag, workload or peer, a value out of range, a peer that is not set up, a file
        that cannot be written, a folder that is no checkout.
    """
    values = parse_flags(Flags, argv)
    _check_names("workloads", values.workloads, WORKLOADS)
    _check_names("peers", values.peers, PEERS)
    _check_output(values.output)
    if values.repeats < values.processes:
        raise FlagError(f"--repeats={values.repeats}: expected a round for each of --processes={values.processes}")
    peers, asked = dict(PEERS), list(values.peers)
    if values.before:
        _check_checkout(values.before)
        peers[BEFORE] = make_peer_before(values.before, values.before_runtime)
        asked.append(BEFORE)
    elif values.before_runtime:
        raise FlagError(f"--before_runtime={values.before_runtime}: expected --before=<folder> beside it")
    chosen = tuple(_choose_peers(WORKLOADS[name], asked, peers) for name in dict.fromkeys(values.workloads))
    return Options(chosen, peers, values.processes, values.repeats, values.output)


def format_table(workload: Workload, peers: Mapping[str, Peer], times: Mapping[str, Sequence[Times]]) -> str:
    """The results for people: seconds, ratio, the spread between processes and the counters of each peer."""
    results = compute_results(times)
    titles = "".join(f"{title:>9}" for title in (*SECONDS, *COUNTED))
    lines = [workload.describe(), f"{'peer':<16}{titles}"]
    for name in times:
        taken, cpu_s, system_s = results["rounds_s"][name], results["cpu_s"][name], results["system_s"][name]
        seconds = (results[f"{name}_s"], min(taken), max(taken), cpu_s, system_s, results["first_round_s"][name])
        ratio, spread = results.get(f"ratio_to_{name}"), results["spread"][name]
        counted = (
            "" if ratio is None else f"{ratio:.2f}",
            f"{spread:.2f}{'*' if spread > MAX_SPREAD else ''}",
            f"{results['switches'][name]:.0f}",
            f"{results['faults'][name]:.0f}",
            f"{results['memory_bytes'][name] / 1e6:.0f} MB",
        )
        cells = "".join(f"{value:7.3f} s" for value in seconds) + "".join(f"{cell:>9}" for cell in counted)
        lines.append(f"{name:<16}{cells}  {peers[name].description}")
    return "\n".join([*lines, EXPLANATION])


def run_workload(
    workload: Workload, peers: Mapping[str, Peer], processes: int, repeats: int, report: Callable[[str], None]
) -> dict[str, list[Times]]:
    """Starts the peers of a workload, times their rounds in turn, and leaves no process behind; so `processes` times.

    Returns:
      What the rounds took, by peer and process.

    Raises:
      PeerError: a peer could not start or finish a round.
    """
    present = [name for name in workload.peers if not peers[name].explain_absence()]
    times: dict[str, list[Times]] = {name: [] for name in present}
    with tempfile.TemporaryDirectory(prefix="benchmark_") as folder:
        build_data(workload, folder)
        for line in list_skipped(workload, peers):
            report(line)
        for number in range(processes):
            report(f"{workload.describe()}; process {number + 1}/{processes}: starting {', '.join(present)}")
            rounds = repeats * (number + 1) // processes - repeats * number // processes
            with contextlib.ExitStack() as stack:
                started = [stack.enter_context(PeerProcess(name, peers[name], workload, folder)) for name in present]
                for peer in started:
                    peer.wait_until_ready()
                taken = time_in_turns({peer.name: peer.run_round for peer in started}, rounds, report)
            for name in present:
                times[name].append(taken[name])
    return times


def list_skipped(workload: Workload, peers: Mapping[str, Peer]) -> list[str]:
    """A line for each reason for which peers of a workload are skipped."""
    by_reason: dict[str, list[str]] = {}
    for name in workload.peers:
        if reason := peers[name].explain_absence():
            by_reason.setdefault(reason, []).append(name)
    return [f"skipped: {', '.join(names)}: {reason}" for reason, names in by_reason.items()]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code: 0, 2 for a wrong request, 1 for a failed run, 130 for Ctrl-C."""
    return run_command(
        lambda arguments: _run(parse_options(arguments)),
        "benchmark",
        f"{PROGRAM} [--flag=value ...]",
        Flags,
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
            times = run_workload(workload, options.peers, options.processes, options.repeats, report)
            results[workload.name] = compute_results(times)
            print(f"\n{format_table(workload, options.peers, times)}\n", flush=True)
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


def _check_checkout(folder: str) -> None:
    if not (pathlib.Path(folder) / "launch" / "train.py").is_file():
        raise FlagError(f"--before={folder}: expected the folder of a checkout of this project, with launch/train.py")


def _choose_peers(workload: Workload, names: Sequence[str], peers: Mapping[str, Peer]) -> Workload:
    chosen = tuple(name for name in workload.peers if name in names)
    if not chosen:
        raise FlagError(
            f"--peers={','.join(names)}: none can run {workload.name}; its peers: {', '.join(workload.peers)}"
        )
    reasons = [peers[name].explain_absence() for name in chosen]
    if all(reasons):
        raise FlagError(f"--peers={','.join(names)}: {reasons[0]}")
    return dataclasses.replace(workload, peers=chosen)


if __name__ == "__main__":
    leave(main())
