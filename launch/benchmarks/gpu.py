"""`python -m launch.benchmarks.gpu`, or `make bench-gpu`: what this project does on an NVIDIA GPU, measured.

Full-size workloads on the GPU and on the host's cores, several numbers of clients at a time, and pfl-research's own
benchmark beside pfl-research, all in turns. The GPU's utilisation and memory are sampled meanwhile. It installs the
libraries of requirements-gpu.lock and pfl-research where they are missing. The file is written after each part, and a
part that it has already is not measured again.

Exit codes: 0 done, 1 a part failed, 2 the request was wrong or there is no GPU, 130 stopped by Ctrl-C.
"""

import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from datasets.errors import DatasetError
from launch.benchmarks.cost import Cost
from launch.benchmarks.gpu_parts import CIFAR10_ROUNDS, Machine, Part, list_parts
from launch.benchmarks.gpu_samples import GpuSampler, Span, find_gpu, summarize
from launch.benchmarks.machine import describe_machine
from launch.benchmarks.peer_process import PeerError, PeerProcess
from launch.benchmarks.turns import compute_results, time_in_turns
from launch.benchmarks.workloads import PFL, ROOT, build_data
from launch.command_line import format_command_help, list_fields, parse_flags, run_main
from launch.library_versions import find_version
from launch.runs.errors import RunStopped
from launch.runs.tables import write_json
from launch.settings.errors import FlagError
from launch.stop_signals import leave
from tff_algos.settings.config_fields import setting, texts

PROGRAM = "python -m launch.benchmarks.gpu"
GPU_LOCK, GPU_LIBRARY = "requirements-gpu.lock", "nvidia-cudnn-cu11"
LEAST_S = 20.0  # a part is not begun with less
FAILED, SKIPPED = "failed", "skipped"
LOG_LINES = 40  # of each log of a part that failed

Report = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Flags:
    """The flags of this command."""

    output: str = setting("bench_gpu.json", "JSON file for the results; what it has already is not measured again.")
    parts: tuple[str, ...] = texts((), "Which parts, with commas between; empty: all, the quick ones first.")
    repeats: int = setting(5, "Timed rounds of each, after the first, which traces.", minimum=1, maximum=10**6)
    pfl_rounds: int = setting(
        30, f"The same beside pfl-research, whose benchmark has {CIFAR10_ROUNDS}.", minimum=1, maximum=10**6
    )
    clients_at_a_time: tuple[str, ...] = texts(("1", "4", "16"), "Numbers of clients that are trained at once.")
    budget_s: int = setting(840, "Seconds for all of it; parts share what is left.", minimum=1, maximum=10**6)
    smoke: bool = setting(False, "All of it in miniature on the CPU, to see that it works.")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    start_s = time.monotonic()
    return run_main(
        functools.partial(_run, start_s),
        lambda: format_command_help(f"{PROGRAM} [--flag=value ...]", list_fields(Flags)),
        argv,
    )


def choose_parts(values: Flags) -> dict[str, Part]:
    """The parts that the flags ask for. Raises FlagError: a part or a number that cannot be."""
    numbers = [int(number) if number.isdecimal() else 0 for number in values.clients_at_a_time]
    if not numbers or min(numbers) < 1:
        given = ",".join(values.clients_at_a_time)
        raise FlagError(f"--clients_at_a_time={given}: expected numbers of at least 1, with commas between")
    parts = list_parts(_choose_machine(values.smoke), numbers, values.repeats, values.pfl_rounds)
    for name in values.parts:
        if name not in parts:
            raise FlagError(f"--parts={name}: expected names, with commas between, of {', '.join(parts)}")
    return {name: part for name, part in parts.items() if name in (values.parts or parts)}


def run_part(part: Part, gpu: str, deadline_s: float, end_s: float, report: Report) -> dict[str, Any]:
    """Times a part's peers in turns and samples the GPU meanwhile.

    Args:
      part: what is measured; a peer whose environment is missing is left out.
      gpu: as `GpuSampler` takes it.
      deadline_s: of `time.monotonic`: no further turn begins after it.
      end_s: when a round that still runs is given up.
      report: gets lines of progress.

    Returns:
      Its `compute_results`, and by peer what `summarize` says. If it failed: why, the end of each log, and the seconds
      of the rounds until then, the first included.
    """
    spans: dict[str, list[Span]] = {}
    with tempfile.TemporaryDirectory(prefix="bench_gpu_") as folder:
        try:
            build_data(part.workload, folder)
            with _start_peers(part, folder, end_s, report) as peers, GpuSampler(gpu) as sampler:
                runs = {peer.name: functools.partial(_run_round, peer, spans) for peer in peers}
                times = time_in_turns(runs, part.repeats, report, deadline_s)
        except (PeerError, DatasetError) as error:
            logs = {path.name: _read_end(path) for path in sorted(pathlib.Path(folder).glob("*.log"))}
            rounds_s = {name: [span.end_s - span.start_s for span in taken] for name, taken in spans.items()}
            return {FAILED: str(error), "rounds_until_then_s": rounds_s, "logs": logs}
    use = {name: summarize(sampler.samples, taken) for name, taken in spans.items()}
    by_process = {name: [taken] for name, taken in times.items()}
    return {**compute_results(by_process, base=next(iter(times))), "gpu": use}


@contextlib.contextmanager
def _start_peers(part: Part, folder: str, end_s: float, report: Report) -> Iterator[list[PeerProcess]]:
    with contextlib.ExitStack() as stack:
        peers = []
        for name, peer in part.peers.items():
            if reason := peer.explain_absence():
                report(f"left out: {name}: {reason}")
            else:
                peers.append(stack.enter_context(PeerProcess(name, peer, part.workload, folder, end_s)))
        for peer in peers:
            peer.wait_until_ready()
        yield peers


def _run_round(peer: PeerProcess, spans: dict[str, list[Span]]) -> Cost:
    start_s = time.monotonic()
    taken = peer.run_round()
    spans.setdefault(peer.name, []).append(Span(start_s, time.monotonic()))
    return taken


def _read_end(path: pathlib.Path) -> list[str]:
    return path.read_text("utf-8", "replace").splitlines()[-LOG_LINES:]


def format_table(part: Part, results: Mapping[str, Any]) -> str:
    """A part's results for people."""
    titles = ("median", "fastest", "ratio", "first", "GPU busy", "memory", "growth")
    lines = [f"{part.name}: {part.workload.description}", f"{'peer':<14}" + "".join(f"{title:>11}" for title in titles)]
    for name, rounds_s in results["rounds_s"].items():
        use, ratio = results["gpu"][name], results.get(f"ratio_to_{name}")
        values = (
            f"{results[f'{name}_s']:.3f} s",
            f"{min(rounds_s):.3f} s",
            _format(ratio, ".2f"),
            f"{results['first_round_s'][name]:.2f} s",
            _format(use["utilisation_percent"], ".0f", " %"),
            _format(use["memory_mib"][-1], ".0f", " MiB"),
            _format(use["memory_growth_mib"], "+.0f", " MiB"),
        )
        lines.append(f"{name:<14}" + "".join(f"{value:>11}" for value in values) + f"  {part.peers[name].description}")
    return "\n".join([*lines, "seconds a round; ratio: how many times as long as the first line"])


def _format(value: float | None, form: str, unit: str = "") -> str:
    return "" if value is None else f"{value:{form}}{unit}"


def _run(start_s: float, arguments: Sequence[str]) -> int:
    values = parse_flags(Flags, arguments)
    parts, machine = choose_parts(values), _choose_machine(values.smoke)
    about = {"gpu": None if machine.is_smoke else _find_gpu(machine.gpu), "smoke": machine.is_smoke}
    path = pathlib.Path(values.output)
    content = {"machine": {**describe_machine(), **about}, "parts": _read_kept(path, about)}

    def report(line: str) -> None:
        print(f"[{time.monotonic() - start_s:4.0f} s] {line}", flush=True)

    if not machine.is_smoke:
        _install(report)
        if any(PFL in part.peers for part in parts.values()):
            _set_up_pfl(report)
    missing = [name for name in parts if name not in content["parts"]]
    done = dict(content["parts"])
    end_s = start_s + values.budget_s
    for index, name in enumerate(missing):
        remaining_s = end_s - time.monotonic()
        deadline_s = time.monotonic() + remaining_s / (len(missing) - index)
        report(f"{name}: {parts[name].workload.describe()}")
        done[name] = _try_part(parts[name], machine.gpu, deadline_s, end_s, report)
        write_json(path, {**content, "parts": done})
    print(f"results in {path}")
    return int(any(FAILED in results for results in done.values()))


def _try_part(part: Part, gpu: str, deadline_s: float, end_s: float, report: Report) -> dict[str, Any]:
    if end_s - time.monotonic() < LEAST_S:
        report(f"{part.name}: skipped, the budget is spent")
        return {SKIPPED: "the budget was spent"}
    results = run_part(part, gpu, deadline_s, end_s, report)
    if FAILED in results:
        report(f"{part.name}: failed: {results[FAILED]}")
        return results
    print(f"\n{format_table(part, results)}\n", flush=True)
    return results


def _choose_machine(is_smoke: bool) -> Machine:
    """The first GPU that this program may use."""
    return Machine(os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0", is_smoke)


def _find_gpu(gpu: str) -> dict[str, str]:
    if (found := find_gpu(gpu)) is None:
        raise FlagError(f"no GPU {gpu} is seen by nvidia-smi; --smoke runs all of it in miniature on the CPU")
    return found


def _read_kept(path: pathlib.Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """The parts that a file has from before; those that failed or were skipped are measured again."""
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        kept = {name: content["machine"][name] for name in about}
        parts = {name: part for name, part in content["parts"].items() if "rounds_s" in part}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise FlagError(f"--output={path}: expected results of this command, or a file that is not there yet") from None
    if kept != about:
        raise FlagError(f"--output={path}: has results of another machine; name another file, or remove it")
    return parts


def _install(report: Report) -> None:
    """Installs TensorFlow's CUDA libraries into this environment, if they are missing. Raises RunStopped."""
    if find_version(GPU_LIBRARY):
        return
    report(f"installing {GPU_LOCK}, 3 GB")
    command = ["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", str(ROOT / GPU_LOCK)]
    ended = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    if ended.returncode:
        reason = (ended.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise RunStopped(f"error: {GPU_LOCK} could not be installed: {reason}", 1)


def _set_up_pfl(report: Report) -> None:
    """Makes pfl-research's environment; without it we are timed alone."""
    script = str(ROOT / "launch" / "benchmarks" / "setup_pfl.sh")
    ended = subprocess.run(["sh", script], env={**os.environ, "PFL_CUDA": "1"}, capture_output=True, text=True)
    for line in (ended.stdout + ended.stderr).splitlines():
        report(line)


if __name__ == "__main__":
    leave(main())
