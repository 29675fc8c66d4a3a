"""Workloads that are whole commands: what a fresh process costs from its start to its end, here and at a revision."""

import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from launch.benchmarks.peer_process import THREAD_VARIABLES, PeerError, describe_log_end
from launch.benchmarks.turns import time_in_turns
from launch.benchmarks.workloads import OURS
from launch.runs.run_records import EXPERIMENTS

AGAINST = "against"
START, LONG = "start", "long"
SWEEP = "sweep"
PEAK = "peak_bytes"
FOLDER = "{folder}"  # in the arguments of a command: a folder of its own
SHARDS = "{shards}"  # likewise: the folder for the clients' shards, which the tree's runs share
# What changes how a program starts. The user's would not reach both trees alike.
VARIABLES = (*THREAD_VARIABLES, "PYTHONPATH", "PYTHONSAFEPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")


class Cost(NamedTuple):
    """What a command cost: seconds on the clock, CPU seconds of it and all its descendants, and its peak of memory."""

    wall_s: float
    cpu_s: float
    peak_bytes: int = 0  # of the command or of a process that it waited for; 0: not measured


@dataclasses.dataclass(frozen=True)
class CommandWorkload:
    """A command, timed from its start to its end.

    Attributes:
      name: its key in the results.
      description: the command, for people.
      arguments: those of Python, such as ("-m", "launch.train"); `FOLDER` and `SHARDS` are replaced in each.
      warm_up: likewise, of the command that is run once in each tree before, so that both have compiled their modules
        and written their shards; empty for `arguments`.
    """

    name: str
    description: str
    arguments: tuple[str, ...]
    warm_up: tuple[str, ...] = ()

    def describe(self) -> str:
        """One line for a heading."""
        return f"{self.name}: {self.description}"


def _build_run(name: str, *flags: str) -> CommandWorkload:
    places = (f"--run_dir={FOLDER}/run", f"--client_dir={SHARDS}")
    description = f"python -m launch.train {' '.join(flags)}"
    return CommandWorkload(name, description, ("-m", "launch.train", *flags, *places))


# Runs whose rounds take most of the time, so that two revisions are compared by them.
LONGS = {
    workload.name: workload
    for workload in (
        _build_run(f"{LONG}_fedavg", "--algo=fedavg", "--rounds=60", "--rounds_per_evaluation=20"),
        _build_run(f"{LONG}_fedsikd", "--algo=fedsikd", "--rounds=40", "--rounds_per_evaluation=20"),
        _build_run(
            *(f"{LONG}_fedcd", "--algo=fedcd", "--rounds=12", "--rounds_per_evaluation=6"), "--fedcd_milestones=2,5"
        ),
        _build_run(f"{LONG}_amfl_p", "--algo=amfl_p", "--rounds=200", "--rounds_per_evaluation=100"),
    )
}
STARTS = {
    workload.name: workload
    for workload in (
        _build_run(f"{START}_fedavg", "--algo=fedavg", "--rounds=1"),
        _build_run(f"{START}_fedsikd", "--algo=fedsikd"),
        # What the defaults were when it was first measured, so that other revisions can be compared.
        _build_run(
            f"{START}_amfl_p",
            "--algo=amfl_p",
            "--rounds=30",
            "--rounds_per_evaluation=1",
            "--building_num_sensors=12",
            "--batch_size=16",
            "--amfl_p_inner_steps=3",
            "--amfl_p_server_optimizer=sgd",
            "--amfl_p_fine_tuning_steps=100",
            "--amfl_p_fine_tuning_rule=resources",
        ),
    )
}
SWEEP_ALGOS = ("amfl_p", "fedavg", "fine_tuning", "local_only")


def list_sweep_flagfiles() -> list[pathlib.Path]:
    """The flagfiles of AMFL-P's Tables 1 and 2: every algorithm's at one heterogeneity, then at the next."""
    paths = [path for algo in SWEEP_ALGOS for path in EXPERIMENTS.glob(f"*/{algo}_building_*.flags")]
    return sorted(paths, key=lambda path: (path.stem.split("_building_")[1], path.stem))


def build_sweep(num_flagfiles: int, num_seeds: int, rounds: int) -> CommandWorkload:
    """The sweep over the first of AMFL-P's experiments, each with the first seeds; 0 rounds: the flagfiles'.

    Another revision gets this tree's flagfiles, so that both make the same runs.
    """
    flagfiles = list_sweep_flagfiles()[:num_flagfiles]
    own_rounds = (f"--rounds={rounds}",) if rounds else ()

    def build(flagfiles, num_seeds, own_rounds):
        asked = (f"--flagfiles={','.join(map(str, flagfiles))}", f"--seeds={','.join(map(str, range(num_seeds)))}")
        return ("-m", "launch.sweep", *asked, *own_rounds, f"--runs_dir={FOLDER}/runs", "--", f"--client_dir={SHARDS}")

    names = ", ".join(path.stem for path in flagfiles) if num_flagfiles <= 6 else f"{len(flagfiles)} flagfiles"
    runs = f"{names}, {num_seeds} seed{'s' if num_seeds > 1 else ''}"
    description = f"python -m launch.sweep {' '.join(own_rounds)}".rstrip()
    warm_up = build(flagfiles[:1], 1, ("--rounds=1",))
    return CommandWorkload(SWEEP, f"{description} of {runs}", build(flagfiles, num_seeds, own_rounds), warm_up)


def time_commands(
    workload: CommandWorkload, trees: Mapping[str, pathlib.Path], repeats: int, report: Callable[[str], None]
) -> dict[str, list[Cost]]:
    """Runs a command in each tree once to warm up, then in turn; leaves no process and no file behind.

    Args:
      workload: the command.
      trees: the folders of the project to run it in, by name.
      repeats: how many times each.
      report: gets a line on every turn.

    Returns:
      The cost of each run that was timed, by tree.

    Raises:
      PeerError: a command failed.
    """
    with tempfile.TemporaryDirectory(prefix="benchmark_") as folder:
        report(f"{workload.describe()}; in turns: {', '.join(trees)}")
        runs, warm_ups = (
            {name: functools.partial(run_command, name, tree, arguments, folder) for name, tree in trees.items()}
            for arguments in (workload.arguments, workload.warm_up or workload.arguments)
        )
        return time_in_turns(runs, repeats, report, lambda cost: cost.wall_s, warm_ups)


def run_command(name: str, tree: pathlib.Path, arguments: Sequence[str], folder: str) -> Cost:
    """Runs Python with arguments in a tree; whatever it has started is gone afterwards.

    Args:
      name: of the tree.
      tree: the folder to run it in.
      arguments: Python's, with `FOLDER` and `SHARDS` in them.
      folder: gets the shards and the log, both named after the tree.

    Raises:
      PeerError: its exit code was not 0.
    """
    log_path = os.path.join(folder, f"{name}.log")
    with tempfile.TemporaryDirectory(dir=folder) as run_folder:
        shards = os.path.join(folder, f"{name}_shards")
        command = [argument.replace(FOLDER, run_folder).replace(SHARDS, shards) for argument in arguments]
        answer = time_process(command, tree, log_path)
    if answer is None or answer["exit_code"] != 0:
        ended = "was killed" if answer is None else f"ended with exit code {answer['exit_code']}"
        raise PeerError(f"{name}: python {' '.join(arguments[:2])} {ended}; {describe_log_end(log_path)}")
    return Cost(answer["wall_s"], answer["cpu_s"], answer["peak_bytes"])


def time_process(arguments: Sequence[str], tree: pathlib.Path, log_path: str) -> dict[str, Any] | None:
    """Runs Python with arguments in a tree; whatever it has started is gone afterwards.

    Returns:
      The answer of `timed_command`, None if it was killed before it gave one.
    """
    script = str(pathlib.Path(__file__).with_name("timed_command.py"))
    answers, answer_fd = os.pipe()
    try:
        with open(log_path, "wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", script, str(os.getpid()), str(answer_fd), sys.executable, *arguments],
                cwd=tree,
                env={key: value for key, value in os.environ.items() if key not in VARIABLES},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[answer_fd],
                start_new_session=True,
            )
    finally:
        os.close(answer_fd)
    try:
        with open(answers, encoding="utf-8") as lines:
            line = lines.readline()
    finally:
        # Not waited for yet, so the kernel cannot have given its number to another process.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return json.loads(line) if line else None


def compute_command_results(costs: Mapping[str, Sequence[Cost]]) -> dict[str, Any]:
    """The results of a command, computed from the costs of its runs in each tree.

    Returns:
      `<tree>_s` and `<tree>_cpu_s`, the medians; if there are two trees, `ratio_to_against` and `cpu_ratio_to_against`,
      how many times as long as ours the other took (above 1: ours is faster), and `share_of_against`, ours as a share
      of the other's seconds; `<tree>_peak_bytes`, the median; and the values given, as `runs_s` and `runs_cpu_s`.
    """
    wall = {name: [cost.wall_s for cost in given] for name, given in costs.items()}
    cpu = {name: [cost.cpu_s for cost in given] for name, given in costs.items()}
    results: dict[str, Any] = {}
    for prefix, key, values in (("", "_s", wall), ("cpu_", "_cpu_s", cpu)):
        medians = {name: statistics.median(given) for name, given in values.items()}
        results |= {f"{name}{key}": median for name, median in medians.items()}
        if AGAINST in medians:
            results[f"{prefix}ratio_to_{AGAINST}"] = medians[AGAINST] / medians[OURS]
    if AGAINST in costs:
        results[f"share_of_{AGAINST}"] = 1 / results[f"ratio_to_{AGAINST}"]
    peaks = {name: statistics.median(cost.peak_bytes for cost in given) for name, given in costs.items()}
    results |= {f"{name}_{PEAK}": peak for name, peak in peaks.items() if peak}
    return {**results, "runs_s": wall, "runs_cpu_s": cpu}


def format_command_table(
    workload: CommandWorkload, costs: Mapping[str, Sequence[Cost]], descriptions: Mapping[str, str]
) -> str:
    """The results for people: median and spread of the wall seconds, median of the CPU seconds, and the ratio."""
    results = compute_command_results(costs)
    lines = [workload.describe(), f"{'tree':<16}{'median':>11}{'fastest':>11}{'slowest':>11}{'CPU':>11}{'ratio':>8}"]
    for name, given in costs.items():
        wall = [cost.wall_s for cost in given]
        seconds = (results[f"{name}_s"], min(wall), max(wall), results[f"{name}_cpu_s"])
        ratio = f"{results[f'ratio_to_{name}']:.2f}" if name == AGAINST else ""
        lines.append(f"{name:<16}{''.join(f'{value:9.2f} s' for value in seconds)}{ratio:>8}  {descriptions[name]}")
    peaks = [f"{name} {results[key] / 1e6:,.0f} MB" for name in costs if (key := f"{name}_{PEAK}") in results]
    lines += [f"peak of memory: {', '.join(peaks)}"] if peaks else []
    explained = "seconds a run, from start to end; CPU: of all its processes; ratio: how many times as long as ours"
    return "\n".join([*lines, explained])
