"""`python -m launch.benchmark`: seconds a round of this project beside others and beside the machine's limit.

`--before=<folder>` times another checkout of this project beside this one, by its own code. `--device=gpu` times this
project on an NVIDIA GPU beside the host's cores. `--smoke` does it all in miniature, on the CPU.

Every peer (`launch/benchmarks/`) lives in a process of its own. They take turns, one round each, again and again, and
only one works at a time. So a slow minute of the machine slows all of them alike. Then all start again, since a
process may be slow from its start to its end, and another of the same work not. Imports no TensorFlow.
"""

import contextlib
import dataclasses
import os
import pathlib
import platform
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import psutil

from files.reading import describe
from launch.benchmarks.cost import GpuSampler, Times, compute_results, find_gpu, time_in_turns
from launch.benchmarks.peer_process import PeerError, PeerProcess
from launch.benchmarks.workloads import (
    BEFORE,
    PEERS,
    PFL,
    WORKLOADS,
    Peer,
    Workload,
    build_data,
    install_libraries,
    make_gpu_peers,
    make_peer_before,
)
from launch.command_line import parse_command, run_command
from launch.console.stop_signals import leave
from launch.runs.errors import RunStopped
from launch.runs.library_versions import find_version
from launch.runs.tables import write_json
from launch.runtimes.processor import count_cores, name_processor
from launch.settings.errors import FlagError
from launch.settings.runtimes import CPU, GPU, RUNTIMES
from tff_algos.settings.config_fields import setting, texts

PROGRAM = "python -m launch.benchmark"
SECONDS = ("median", "fastest", "slowest", "CPU", "system", "first")
COUNTED = ("ratio", "spread", "switches", "faults", "memory")
GPU_USE = ("GPU busy", "GPU mem.", "growth")
# Key of the results, unit, how it is shown.
GPU_CELLS = (
    ("utilisation_percent", 1.0, "{:.0f} %"),
    ("memory_bytes", 1e6, "{:.0f} MB"),
    ("memory_growth_bytes", 1e6, "{:+.0f} MB"),
)
# Unless they are given.
SMOKE = {"processes": 1, "repeats": 2}
# Processes of one peer that differ by more are marked: their median says little.
MAX_SPREAD = 1.1
EXPLANATION = f"""seconds a round; ratio: how many times as long as ours, above 1 where ours is faster
spread: the slowest process over the quickest, each by its median; * if its processes differ by more than {MAX_SPREAD:g}
switches: how often a thread stopped to wait, faults: how often a page of memory had to be found, in a round"""
GPU_EXPLANATION = """ours: the peer gpu; GPU busy: the share of the time of its rounds in which the GPU computed
GPU mem.: what all programs took of its memory, growth: how much more after the last round than after the second"""


class Options(NamedTuple):
    """What is asked for.

    Attributes:
      flags: as they were given, with the few rounds of a miniature.
      workloads: each with the peers chosen.
      peers: all that there are, by name.
      gpu: the GPU whose use is sampled, as nvidia-smi names it; "" if none is used.
    """

    flags: "Flags"
    workloads: tuple[Workload, ...]
    peers: Mapping[str, Peer]
    gpu: str


@dataclasses.dataclass(frozen=True)
class Flags:
    """The flags of this command."""

    workloads: tuple[str, ...] = texts(("fed_avg_mnist_student",), f"What to time: {', '.join(WORKLOADS)}.")
    device: str = setting(
        CPU,
        "gpu: this project on an NVIDIA GPU, on the host's cores (host), and pfl-research on the same GPU.",
        choices=(CPU, GPU),
    )
    clients_at_a_time: tuple[str, ...] = texts(
        (), "With --device=gpu: numbers of clients that are trained at once, each of them one more peer, as gpu_4."
    )
    peers: tuple[str, ...] = texts(tuple(PEERS), "Which peers run it, of those that can; with --device=gpu all of its.")
    before: str = setting("", f"Folder of another checkout of this project, such as an older one: a peer, {BEFORE}.")
    before_runtime: str = setting(
        "", "What --before runs its computations with; empty: its own default.", choices=("", *RUNTIMES)
    )
    processes: int = setting(
        5, "How many times each peer is started; a process may be slow as a whole.", minimum=1, maximum=1000
    )
    # With stock TFF at 5 to 11 s a round on 2 cores, about ten minutes in all.
    repeats: int = setting(
        15, "Timed rounds of each peer in all, after the first of each process, which traces.", minimum=1, maximum=10**6
    )
    output: str = setting("", "JSON file for the results; empty: only the table.")
    smoke: bool = setting(False, "In miniature, with the CPU in the GPU's place, to see that it works.")


def parse_options(argv: Sequence[str]) -> Options:
    """Reads the command line, without the program's name.

    Raises:
      FlagError: an unknown flag, workload or peer, a value out of range, a peer that is not set up, a file
        that cannot be written, a folder that is no checkout.
    """
    given = parse_command(Flags, argv)
    values = given.flags
    if values.smoke:
        values = dataclasses.replace(values, **{name: few for name, few in SMOKE.items() if name not in given.names})
    # Only the first is sampled: TensorFlow's default strategy computes on no other.
    gpu = (os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0") if values.device == GPU else ""
    numbers = _read_clients_at_a_time(values)
    peers = make_gpu_peers(gpu, numbers, values.smoke) if gpu else dict(PEERS)
    # The default of --peers names those of the CPU, of which --device=gpu has none but pfl-research.
    asked = list(values.peers if "peers" in given.names else peers)
    _check_names("workloads", values.workloads, WORKLOADS)
    _check_names("peers", asked, peers)
    _check_output(values.output)
    if values.repeats < values.processes:
        raise FlagError(f"--repeats={values.repeats}: expected a round for each of --processes={values.processes}")
    if values.before:
        if values.device != CPU:
            fix = f"expected --device={CPU}, with which alone another checkout is timed"
            raise FlagError(f"--before={values.before}: {fix}")
        if not pathlib.Path(values.before, "launch", "train.py").is_file():
            fix = "expected the folder of a checkout of this project, with launch/train.py"
            raise FlagError(f"--before={values.before}: {fix}")
        peers[BEFORE] = make_peer_before(values.before, values.before_runtime)
        asked.append(BEFORE)
    elif values.before_runtime:
        raise FlagError(f"--before_runtime={values.before_runtime}: expected --before=<folder> beside it")
    workloads = tuple(_choose_workload(name, values, asked, peers) for name in dict.fromkeys(values.workloads))
    return Options(values, workloads, peers, gpu)


def format_table(workload: Workload, peers: Mapping[str, Peer], results: Mapping[str, Any]) -> str:
    """The results for people: seconds, ratio, the spread between processes, counters and the GPU's use of each peer."""
    use = results.get("gpu", {})
    titles = "".join(f"{title:>9}" for title in (*SECONDS, *COUNTED, *(GPU_USE if use else ())))
    lines = [workload.describe(), f"{'peer':<16}{titles}"]
    for name, taken in results["rounds_s"].items():
        cpu_s, system_s = results["cpu_s"][name], results["system_s"][name]
        seconds = (results[f"{name}_s"], min(taken), max(taken), cpu_s, system_s, results["first_round_s"][name])
        ratio, spread = results.get(f"ratio_to_{name}"), results["spread"][name]
        counted = (
            "" if ratio is None else f"{ratio:.2f}",
            f"{spread:.2f}{'*' if spread > MAX_SPREAD else ''}",
            f"{results['switches'][name]:.0f}",
            f"{results['faults'][name]:.0f}",
            f"{results['memory_bytes'][name] / 1e6:.0f} MB",
            *(
                "" if use[name][key] is None else shown.format(use[name][key] / unit)
                for key, unit, shown in (GPU_CELLS if use else ())
            ),
        )
        cells = "".join(f"{value:7.3f} s" for value in seconds) + "".join(f"{cell:>9}" for cell in counted)
        lines.append(f"{name:<16}{cells}  {peers[name].description}")
    return "\n".join([*lines, EXPLANATION, *([GPU_EXPLANATION] if use else ())])


def run_workload(
    workload: Workload,
    peers: Mapping[str, Peer],
    processes: int,
    repeats: int,
    report: Callable[[str], None],
    sampler: GpuSampler | None = None,
) -> dict[str, list[Times]]:
    """Starts the peers of a workload, times their rounds in turn, and leaves no process behind; so `processes` times.

    A sampler is told when the rounds ran.

    Returns:
      What the rounds took, by peer and process.

    Raises:
      PeerError: a peer could not start or finish a round.
    """
    # What is missing in an environment must not stop the others, which a table compares all the same.
    absent = {name: reason for name in workload.peers if (reason := peers[name].explain_absence())}
    present = [name for name in workload.peers if name not in absent]
    times: dict[str, list[Times]] = {name: [] for name in present}
    with tempfile.TemporaryDirectory(prefix="benchmark_") as folder:
        build_data(workload, folder)
        for reason in dict.fromkeys(absent.values()):
            names = [name for name, other in absent.items() if other == reason]
            report(f"skipped: {', '.join(names)}: {reason}")
        for number in range(processes):
            report(f"{workload.describe()}; process {number + 1}/{processes}: starting {', '.join(present)}")
            # Differences of rounded-down parts add up to `repeats`, however many processes share them.
            rounds = repeats * (number + 1) // processes - repeats * number // processes
            with contextlib.ExitStack() as stack:
                started = [stack.enter_context(PeerProcess(name, peers[name], workload, folder)) for name in present]
                # All are built before the first is timed: a peer that still imports would take cores from the others.
                for peer in started:
                    peer.wait_until_ready()
                runs = {peer.name: peer.run_round for peer in started}
                if sampler:
                    runs = {name: sampler.watch(name, run) for name, run in runs.items()}
                taken = time_in_turns(runs, rounds, report)
            for name in present:
                times[name].append(taken[name])
    return times


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

    def report(line: str) -> None:
        print(f"[{time.monotonic() - start:4.0f} s] {line}", flush=True)

    # Read before the first peer starts, so that the load is that of other programs.
    machine = {
        "cpu": name_processor(),
        "num_cores": count_cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "load_average_before": os.getloadavg()[0],
        "platform": platform.platform(),
        "python": platform.python_version(),
        **{name.replace("-", "_"): find_version(name) for name in ("tensorflow", "tensorflow-federated")},
        "gpu": None,
        "smoke": options.flags.smoke,
    }
    if options.gpu and not options.flags.smoke:
        machine["gpu"] = find_gpu(options.gpu)
        if machine["gpu"] is None:
            raise FlagError(
                f"--device={GPU}: nvidia-smi sees no GPU {options.gpu}; --smoke does it in miniature on the CPU"
            )
        install_libraries(report)
    results = {}
    try:
        for workload in options.workloads:
            given = (workload, options.peers, options.flags.processes, options.flags.repeats, report)
            if options.gpu:
                with GpuSampler(options.gpu) as sampler:
                    times = run_workload(*given, sampler)
                found = {**compute_results(times, base=GPU), "gpu": sampler.summarize()}
            else:
                found = compute_results(run_workload(*given))
            results[workload.name] = found
            print(f"\n{format_table(workload, options.peers, results[workload.name])}\n", flush=True)
    except PeerError as error:
        raise RunStopped(f"error: {error}", 1) from error
    if output := options.flags.output:
        write_json(pathlib.Path(output), {"machine": machine, "workloads": results})
        print(f"results in {output}")


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
        # A file of its own, so that a table which is there stays until the timing is over.
        with tempfile.TemporaryFile(dir=pathlib.Path(path).absolute().parent):
            pass
    except OSError as error:
        raise FlagError(
            f"--output={path}: expected a file in a folder that exists and can be written ({describe(error)})"
        ) from None


def _read_clients_at_a_time(values: Flags) -> list[int]:
    numbers = [int(number) if number.isdecimal() else 0 for number in values.clients_at_a_time]
    given = ",".join(values.clients_at_a_time)
    if 0 in numbers:
        raise FlagError(f"--clients_at_a_time={given}: expected numbers of at least 1, with commas between")
    if numbers and values.device != GPU:
        raise FlagError(f"--clients_at_a_time={given}: expected --device={GPU} beside it")
    return numbers


def _choose_workload(name: str, values: Flags, asked: Sequence[str], peers: Mapping[str, Peer]) -> Workload:
    """The workload with those that can run it of the peers that are asked for. Raises FlagError if there are none."""
    workload = WORKLOADS[name]
    known = workload.peers
    if values.device == GPU:
        known = tuple(peer for peer in peers if peer != PFL or PFL in workload.peers)
    chosen = tuple(peer for peer in known if peer in asked)
    if not chosen:
        raise FlagError(f"--peers={','.join(asked)}: none can run {workload.name}; its peers: {', '.join(known)}")
    reasons = [peers[peer].explain_absence() for peer in chosen]
    if all(reasons):
        raise FlagError(f"--peers={','.join(asked)}: {reasons[0]}")
    if values.smoke:
        workload = dataclasses.replace(
            workload,
            description=f"{workload.description}, in miniature",
            settings={**workload.settings, "smoke": True},
        )
    return dataclasses.replace(workload, peers=chosen)


if __name__ == "__main__":
    leave(main())
