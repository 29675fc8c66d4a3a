"""`python -m launch.sweep --flagfiles=a.flags,b.flags --seeds=0,1,2` trains flagfiles one after another.

Each run is a process of its own, in `<runs_dir>/<flagfile's stem>/seed_<seed>`. Finished runs are skipped, here or in
`--finished`, and interrupted ones are resumed, so the same command carries on where a sweep was stopped. Arguments
after a lone `--` go to every run.

Exit codes: 0 all runs are finished, 1 some failed, 2 the request was wrong, 130 stopped by Ctrl-C, 143 by SIGTERM,
129 by SIGHUP.
"""

import contextlib
import dataclasses
import glob
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from absl import flags as absl_flags

from launch.command_line import format_command_help, get_stop_code, parse_command, run_main
from launch.progress import format_duration, say
from launch.reports.registry import find_paper
from launch.runs.columns import CONFIG_FILE, SUMMARY_FILE, TEST_ACCURACY
from launch.runs.errors import RunFolderError, RunStopped
from launch.runs.run_archive import is_archive, open_runs
from launch.runs.run_records import RunPath, RunRecordError, list_other_settings, read_json, resolve_flagfile
from launch.settings.flag_fields import FlagField
from launch.settings.flags import FlagError, define_flag
from launch.settings.run_config import RunConfig
from tff_algos.settings.config_fields import Setting

PROGRAM = "python -m launch.sweep"
SECONDS_TO_STOP = 60
OWN_FLAGS = ("seed", "run_dir", "resume", "overwrite", "rounds")


@dataclasses.dataclass(frozen=True)
class Task:
    """One run to make.

    Attributes:
      flagfile: its settings.
      arguments: those of the command line after the flagfile.
      run_dir: its folder.
      config: what both ask for.
      finished: folders and archives in which the run may lie finished already.
      label: what tells it from others of the flagfile and seed, "" for nothing.
    """

    flagfile: pathlib.Path
    arguments: tuple[str, ...]
    run_dir: pathlib.Path
    config: RunConfig
    finished: tuple[RunPath, ...] = ()
    label: str = ""

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (self.flagfile.stem, self.label, f"seed {self.config.seed}")))

    @property
    def place(self) -> str:
        """Where its folder lies in a folder or an archive of runs."""
        return f"{self.flagfile.stem}/seed_{self.config.seed}"


def define_flags() -> absl_flags.FlagValues:
    """The flags of this command."""
    values = absl_flags.FlagValues()
    absl_flags.DEFINE_list("flagfiles", [], "Flagfiles or patterns of their names (quote a *).", flag_values=values)
    absl_flags.DEFINE_list("seeds", ["0"], "Seeds, each a run of every flagfile.", flag_values=values)
    absl_flags.DEFINE_string("runs_dir", "runs", "Folder for the run folders.", flag_values=values)
    absl_flags.DEFINE_multi_string(
        "finished",
        [],
        "Folder or .zip of runs, kept by launch.report --archive, that need not be made again",
        flag_values=values,
    )
    rounds = Setting("Rounds of every run; by default the flagfile's.", minimum=1, maximum=10**6)
    define_flag(FlagField("rounds", rounds, 1), values)
    return values


def parse_tasks(argv: Sequence[str]) -> list[Task]:
    """The runs that a command line asks for: all flagfiles with the first seed, then with the next.

    Raises:
      FlagError: a wrong flag, no such flagfile, a wrong seed, or settings that `launch.train` would refuse.
      RunFolderError: an archive of finished runs that cannot be read.
    """
    values = define_flags()
    extra = parse_command(values, argv)
    forbidden = [name for name in OWN_FLAGS for argument in extra if _names_flag(argument, name)]
    if forbidden:
        raise FlagError(f"--{forbidden[0]} after --: expected flags that the sweep does not set itself")
    if values.rounds is not None:
        extra = [f"--rounds={values.rounds}", *extra]
    flagfiles, runs_dir = find_flagfiles(values.flagfiles), pathlib.Path(values.runs_dir)
    if is_archive(runs_dir):
        raise FlagError(
            f"--runs_dir={runs_dir}: runs go into a folder; --finished={runs_dir} skips those of an archive"
        )
    finished = tuple(open_runs(pathlib.Path(name)) for name in values.finished)
    seeds = list(dict.fromkeys(values.seeds))
    if not seeds:
        raise FlagError("--seeds is empty: expected whole numbers with commas between them")
    return [_build_task(flagfile, seed, runs_dir, extra, finished) for seed in seeds for flagfile in flagfiles]


def _names_flag(argument: str, name: str) -> bool:
    return argument.lstrip("-").split("=")[0].removeprefix("no") == name and argument.startswith("-")


def _build_task(
    flagfile: pathlib.Path, seed: str, runs_dir: pathlib.Path, extra: Sequence[str], finished: tuple[RunPath, ...]
) -> Task:
    run_dir = runs_dir / flagfile.stem / f"seed_{seed}"
    arguments = (f"--seed={seed}", f"--run_dir={run_dir}", *extra)
    return Task(flagfile, arguments, run_dir, resolve_flagfile(flagfile, arguments), finished)


def find_flagfiles(patterns: Sequence[str]) -> list[pathlib.Path]:
    """The files that the patterns name, each once. Raises FlagError if a pattern finds none or two share a stem."""
    if not patterns:
        raise FlagError(
            "--flagfiles is missing: expected files or patterns such as 'launch/experiments/*_mnist_alpha*.flags'"
        )
    found: dict[str, pathlib.Path] = {}
    for pattern in patterns:
        paths = [pathlib.Path(name) for name in sorted(glob.glob(os.path.expanduser(pattern)))]
        if not paths:
            raise FlagError(f"--flagfiles: no file is named {pattern}")
        for path in paths:
            if not found.setdefault(path.stem, path).samefile(path):
                raise FlagError(f"--flagfiles: {found[path.stem]} and {path} would share a run folder; rename one")
    return list(found.values())


def is_finished(task: Task) -> bool:
    """Whether the run folder, or one of `task.finished`, holds a run with these settings and the rounds asked for.

    Raises:
      RunFolderError: the run folder holds a run with other settings, which training would not go on with.
    """
    other = _find_other_settings(task.run_dir, task.config)
    if other:
        raise RunFolderError(
            f"{task.run_dir}: a run with other settings ({'; '.join(other)}); choose another --runs_dir"
        )
    # A kept run with other settings is no obstacle: it counts as another run, and this one is made.
    kept = [runs / task.place for runs in task.finished]
    places = [task.run_dir, *(place for place in kept if not _find_other_settings(place, task.config))]
    return any(_has_finished(place, task.config) for place in places)


def _find_other_settings(run_dir: RunPath, config: RunConfig) -> list[str]:
    """The settings in which a stored run differs, as `list_other_settings` gives them; none if there is no run."""
    try:
        stored = read_json(run_dir / CONFIG_FILE)
    except RunRecordError:
        return []
    flags = stored.get("flags", {})
    if not isinstance(flags, dict):
        raise RunFolderError(f"{run_dir}: its config.json is damaged; move it away")
    return list_other_settings(flags, config)


def _has_finished(run_dir: RunPath, config: RunConfig) -> bool:
    """Whether a run has all its rounds or reached its target; false if its config or summary cannot be read."""
    try:
        read_json(run_dir / CONFIG_FILE)
        summary = read_json(run_dir / SUMMARY_FILE)
    except RunRecordError:
        return False
    return summary.get("rounds", 0) >= config.rounds or _has_reached_target(summary, config)


def _has_reached_target(summary: dict, config: RunConfig) -> bool:
    accuracy = summary.get("final", {}).get(TEST_ACCURACY)
    return config.target_accuracy > 0 and accuracy is not None and accuracy >= config.target_accuracy


def build_command(task: Task) -> list[str]:
    """The command that trains a task's run or, if its folder holds one, goes on with it."""
    resume = ["--resume"] if (task.run_dir / CONFIG_FILE).exists() else []
    return [sys.executable, "-m", "launch.train", f"--flagfile={task.flagfile}", *task.arguments, *resume]


def run_task(task: Task) -> int:
    """Trains one run in a child process and returns its exit code.

    The child has a session of its own, so Ctrl-C reaches it once, from us, and it can keep its checkpoint; and the
    kernel kills it if this process is killed.

    Raises:
      KeyboardInterrupt: the sweep was asked to stop; the child has ended.
    """
    launcher = pathlib.Path(__file__).parent / "runtimes" / "worker_launcher.py"
    command = [sys.executable, "-I", "-S", str(launcher), str(os.getpid()), *build_command(task)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True) as child:
        try:
            return child.wait()
        except KeyboardInterrupt:
            _stop_child(child)
            raise


def _stop_child(child: subprocess.Popen) -> None:
    with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):  # a second Ctrl-C does not wait
        child.send_signal(signal.SIGINT)
        child.wait(SECONDS_TO_STOP)
    child.kill()
    child.wait()


def run_sweep(tasks: Sequence[Task], train: Callable[[Task], int] = run_task) -> list[str]:
    """Runs the tasks that are not finished yet and returns a line for each that failed.

    Args:
      tasks: in the order to run them.
      train: trains one run and returns its exit code.
    """
    failures: list[str] = []
    start_s, rounds_run = time.perf_counter(), 0
    for position, task in enumerate(tasks, 1):
        heading = f"[{position}/{len(tasks)}] {task.name}"
        try:
            if is_finished(task):
                say(f"{heading}: finished before")
                continue
            say(f"{heading}{_estimate(tasks[position - 1 :], time.perf_counter() - start_s, rounds_run)}")
            exit_code = train(task)
        except RunFolderError as error:
            exit_code = str(error)
        if exit_code:
            reason = exit_code if isinstance(exit_code, str) else f"exit code {exit_code}, see above and {task.run_dir}"
            failures.append(f"{task.name}: {reason}")
            say(f"{heading}: failed ({reason})")
        else:
            rounds_run += task.config.rounds
    return failures


def _estimate(left: Sequence[Task], seconds: float, rounds_run: int) -> str:
    """The time gone and left, estimated from the rounds that were run and those that remain."""
    if not rounds_run:
        return f": {len(left)} runs to look at"
    rounds_left = sum(task.config.rounds for task in left)
    return f": {format_duration(seconds)} gone, about {format_duration(seconds / rounds_run * rounds_left)} left"


def suggest_report(tasks: Sequence[Task]) -> str:
    """What to type to see the runs beside what a paper prints; "" where they are of no paper's experiments."""
    name = find_paper([task.flagfile.stem for task in tasks])
    if name is None:
        return ""
    runs_dirs = [str(each).rstrip("/") for each in (tasks[0].run_dir.parents[1], *tasks[0].finished)]
    places = [] if runs_dirs == ["runs"] else [f" --runs_dir={shlex.quote(each)}" for each in runs_dirs]
    return f"; next: python -m launch.report --tables={name}{''.join(places)}"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    usage = f"{PROGRAM} --flagfiles=<file,...> [--flag=value ...] [-- flags of train]"
    return run_main(_run, lambda: format_command_help(usage, define_flags()), argv)


def _run(arguments: Sequence[str]) -> int:
    tasks = parse_tasks(arguments)
    try:
        failures = run_sweep(tasks)
    except KeyboardInterrupt as error:
        again = f"stopped; go on with: {PROGRAM} {shlex.join(arguments)}"
        raise RunStopped(again, get_stop_code(error)) from None
    if failures:
        print(f"{len(failures)} of {len(tasks)} runs failed:", *failures, sep="\n  ", file=sys.stderr)
        return 1
    say(f"all {len(tasks)} runs are finished{suggest_report(tasks)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
