"""`python -m launch.sweep --flagfiles=a.flags,b.flags --seeds=0,1,2` trains flagfiles, several at a time.

Each run is a process of its own, in `<runs_dir>/<flagfile's stem>/seed_<seed>`, on its share of the cores. `--jobs`
says how many go on at a time; the output of each is then in `seed_<seed>.log` beside its folder. Finished runs are
skipped, here or in `--finished`, and interrupted ones are resumed, so the same command carries on where a sweep was
stopped. Arguments after a lone `--` go to every run.

Exit codes: 0 all runs are finished, 1 some failed, 2 the request was wrong, 130 stopped by Ctrl-C, 143 by SIGTERM,
129 by SIGHUP.
"""

import glob
import os
import pathlib
import shlex
import sys
from collections.abc import Sequence
from typing import NamedTuple

from absl import flags as absl_flags

from launch.command_line import format_command_help, parse_command, run_main
from launch.papers.registry import find_paper
from launch.progress import say
from launch.runs.errors import RunStopped
from launch.runs.run_archive import is_archive, open_runs
from launch.runs.run_records import RunPath, resolve_flagfile
from launch.runtimes.worker_process import WorkerError
from launch.settings.flag_fields import FlagField
from launch.settings.flags import FlagError, define_flag
from launch.settings.seeds import read_seeds
from launch.stop_signals import as_stop_after_signal, get_stop_code, leave
from launch.sweeps.jobs import are_done, define_jobs_flag, open_engine
from launch.sweeps.pool import Engine, run_tasks
from launch.sweeps.ray_runs import RayEngine, check_ray_flags, define_ray_flags
from launch.sweeps.tasks import OWN_FLAGS, Task
from tff_algos.settings.config_fields import Setting

PROGRAM = "python -m launch.sweep"


class Request(NamedTuple):
    """What a command line asks for: the runs, how many at a time, and on which Ray cluster; None for this machine."""

    tasks: list[Task]
    jobs: int | None
    ray_address: str | None


def define_flags() -> absl_flags.FlagValues:
    """The flags of this command."""
    values = absl_flags.FlagValues()
    absl_flags.DEFINE_list("flagfiles", [], "Flagfiles or patterns of their names (quote a *).", flag_values=values)
    absl_flags.DEFINE_list("seeds", ["0"], "Seeds, each a run of every flagfile, as 0,1,2 or 0-4.", flag_values=values)
    absl_flags.DEFINE_string("runs_dir", "runs", "Folder for the run folders.", flag_values=values)
    absl_flags.DEFINE_multi_string(
        "finished",
        [],
        "Folder or .zip of runs, kept by launch.report --archive, that need not be made again",
        flag_values=values,
    )
    rounds = Setting("Rounds of every run; by default the flagfile's.", minimum=1, maximum=10**6)
    define_flag(FlagField("rounds", rounds, 1), values)
    define_jobs_flag(values)
    define_ray_flags(values)
    return values


def parse_tasks(argv: Sequence[str]) -> list[Task]:
    """The runs that a command line asks for, see `parse_request`."""
    return parse_request(argv).tasks


def parse_request(argv: Sequence[str]) -> Request:
    """What a command line asks for; of the runs, all flagfiles with the first seed come first, then with the next.

    Raises:
      FlagError: a wrong flag, no such flagfile, a wrong seed, or settings that `launch.train` would refuse.
      RunFolderError: an archive of finished runs that cannot be read.
    """
    values = define_flags()
    extra = parse_command(values, argv, "put the flags of the runs behind --, as in -- --batch_size=32")
    check_ray_flags(values)
    forbidden = [name for name in OWN_FLAGS for argument in extra if _names_flag(argument, name)]
    if forbidden:
        raise FlagError(f"--{forbidden[0]} after --: expected flags that the sweep does not set itself")
    if values.rounds is not None:
        extra = [f"--rounds={values.rounds}", *extra]
    flagfiles, runs_dir = find_flagfiles(values.flagfiles), pathlib.Path(values.runs_dir)
    place = next((path for path in (runs_dir, *runs_dir.parents) if path.exists()), runs_dir)
    if place.exists() and not place.is_dir() and not is_archive(runs_dir):
        raise FlagError(f"--runs_dir={runs_dir}: expected a folder, {place} is a file; choose another")
    if is_archive(runs_dir):
        raise FlagError(
            f"--runs_dir={runs_dir}: runs go into a folder; --finished={runs_dir} skips those of an archive"
        )
    finished = tuple(open_runs(pathlib.Path(name)) for name in values.finished)
    seeds = read_seeds(values.seeds, "seeds")
    tasks = [_build_task(flagfile, seed, runs_dir, extra, finished) for seed in seeds for flagfile in flagfiles]
    return Request(tasks, values.jobs, None if values.runtime is None else values.ray_address or "")


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
            "--flagfiles is missing: expected files or patterns such as 'launch/experiments/fedsikd/*_mnist_*.flags'"
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


def _open_engine(request: Request) -> Engine:
    if request.ray_address is None or are_done(request.tasks):
        return open_engine(request.tasks, request.jobs)
    return RayEngine(request.tasks, request.jobs, request.ray_address)


def _run(arguments: Sequence[str]) -> int:
    request = parse_request(arguments)
    tasks = request.tasks
    try:
        with as_stop_after_signal():
            failures = run_tasks(tasks, _open_engine(request))
    except WorkerError as error:
        raise RunStopped(f"error: {error}", 1) from error
    except KeyboardInterrupt as error:
        again = f"stopped; go on with: {PROGRAM} {shlex.join(arguments)}"
        raise RunStopped(again, get_stop_code(error)) from None
    if failures:
        print(f"{len(failures)} of {len(tasks)} runs failed:", *failures, sep="\n  ", file=sys.stderr)
        return 1
    say(f"all {len(tasks)} runs are finished{suggest_report(tasks)}")
    return 0


if __name__ == "__main__":
    leave(main())
