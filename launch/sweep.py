"""`python -m launch.sweep --algos=fedavg,fedsikd --seeds=0-4 -- --rounds=20` trains many runs, several at a time.

`--experiments='fedsikd/*_mnist_*'` trains experiments of papers, and `--flagfiles=a.flags,b.flags` files of your own.
Each run is a process of its own, in `<runs_dir>/<algorithm, experiment or file>/seed_<seed>`, on its share of the
cores. `--jobs` says how many go on at a time; the output of each is then in `seed_<seed>.log` beside its folder.
Finished runs are skipped, here or in `--finished`, and interrupted ones are resumed, so the same command carries on
where a sweep was stopped. Arguments after a lone `--` go to every run; of `--algos`, a flag of one algorithm to its
runs alone.

Exit codes: 0 all runs are finished, 1 some failed, 2 the request was wrong, 130 stopped by Ctrl-C, 143 by SIGTERM,
129 by SIGHUP.
"""

import pathlib
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from absl import flags as absl_flags

from launch.command_line import parse_command, run_command
from launch.progress import say
from launch.runs.errors import RunStopped
from launch.runs.run_archive import is_archive, open_runs
from launch.runs.run_records import RunPath
from launch.runtimes.runtime import WorkerError
from launch.settings.flag_fields import FlagField
from launch.settings.flags import FlagError, define_flag, define_own_flags
from launch.settings.seeds import read_seeds
from launch.stop_signals import as_stop_after_signal, get_stop_code, leave
from launch.sweeps.jobs import are_done, define_jobs_flag, open_engine
from launch.sweeps.pool import Engine, run_tasks
from launch.sweeps.ray_runs import RayEngine, check_ray_flags, define_ray_flags
from launch.sweeps.recipes import Recipe, check_arguments, find_recipes, select_arguments
from launch.sweeps.tasks import OWN_FLAGS, Task
from tff_algos.settings.config_fields import Setting

PROGRAM = "python -m launch.sweep"
# Of its flags, those that --help shows.
COMMON = ("algos", "experiments", "flagfiles", "seeds", "runs_dir", "rounds", "jobs")


class Request(NamedTuple):
    """What a command line asks for: the runs, how many at a time, and on which Ray cluster; None for this machine."""

    tasks: list[Task]
    jobs: int | None
    ray_address: str | None


def define_flags() -> absl_flags.FlagValues:
    """The flags of this command."""
    values = define_own_flags(
        algos=([], "Algorithms, with the flags after -- and else their defaults."),
        experiments=([], "Experiments of papers or patterns of their names (quote a *)."),
        flagfiles=([], "Flagfiles or patterns of their names (quote a *)."),
        seeds=(["0"], "Seeds, each a run of all of these, as 0,1,2 or 0-4."),
        runs_dir=("runs", "Folder for the run folders."),
    )
    absl_flags.DEFINE_multi_string(
        "finished",
        [],
        "Folder or .zip of runs, kept by launch.report --archive, that need not be made again",
        flag_values=values,
    )
    rounds = Setting("Rounds of every run; by default its settings'.", minimum=1, maximum=10**6)
    define_flag(FlagField("rounds", rounds, 1), values)
    define_jobs_flag(values)
    define_ray_flags(values)
    return values


def parse_request(argv: Sequence[str]) -> Request:
    """What a command line asks for; of the runs, all with the first seed come first, then with the next.

    Raises:
      FlagError: a wrong flag, nothing of such a name, a wrong seed, or settings that `launch.train` would refuse.
      RunFolderError: an archive of finished runs that cannot be read.
    """
    values = define_flags()
    extra = parse_command(values, argv, "put the flags of the runs behind --, as in -- --batch_size=32")
    check_ray_flags(values)
    named = [name for name in OWN_FLAGS for argument in extra if _names_flag(argument, name)]
    if forbidden := [name for name in named if name != "rounds"]:
        raise FlagError(f"--{forbidden[0]} after --: expected flags that the sweep does not set itself")
    if values.rounds is not None:
        if "rounds" in named:
            raise FlagError("--rounds stands before and after --; expected it once")
        extra = [f"--rounds={values.rounds}", *extra]
    recipes, runs_dir = find_asked(values), pathlib.Path(values.runs_dir)
    check_arguments(recipes, extra)
    place = next((path for path in (runs_dir, *runs_dir.parents) if path.exists()), runs_dir)
    if place.exists() and not place.is_dir() and not is_archive(runs_dir):
        raise FlagError(f"--runs_dir={runs_dir}: expected a folder, {place} is a file; choose another")
    if is_archive(runs_dir):
        raise FlagError(
            f"--runs_dir={runs_dir}: runs go into a folder; --finished={runs_dir} skips those of an archive"
        )
    finished = tuple(open_runs(pathlib.Path(name)) for name in values.finished)
    seeds = read_seeds(values.seeds, "seeds")
    tasks = [_build_task(recipe, seed, runs_dir, extra, finished) for seed in seeds for recipe in recipes]
    return Request(tasks, values.jobs, None if values.runtime is None else values.ray_address or "")


def _names_flag(argument: str, name: str) -> bool:
    return argument.lstrip("-").split("=")[0].removeprefix("no") == name and argument.startswith("-")


def _build_task(
    recipe: Recipe, seed: str, runs_dir: pathlib.Path, extra: Sequence[str], finished: tuple[RunPath, ...]
) -> Task:
    run_dir = runs_dir / recipe.name / f"seed_{seed}"
    arguments = (f"--seed={seed}", f"--run_dir={run_dir}", *select_arguments(recipe, extra))
    return Task(recipe, arguments, run_dir, recipe.resolve(arguments), finished)


def find_asked(values: absl_flags.FlagValues) -> list[Recipe]:
    """What is to be trained. Raises FlagError if nothing is asked for or a name finds nothing."""
    recipes = find_recipes(values.flagfiles, values.experiments, values.algos)
    if not recipes:
        raise FlagError(
            "nothing to train: expected --algos=fedavg,fedsikd, --experiments='fedsikd/*_mnist_*' or --flagfiles=<file>"
        )
    return recipes


def suggest_report(tasks: Sequence[Task]) -> str:
    """What to type to see the runs beside what a paper prints; "" where they are of no paper's experiments."""
    reports = Counter(each.experiment.report for each in {task.recipe for task in tasks} if each.experiment)
    name = max(reports, key=lambda each: (reports[each], each), default="")
    if not name:
        return ""
    runs_dirs = [str(each).rstrip("/") for each in (tasks[0].run_dir.parents[1], *tasks[0].finished)]
    places = [] if runs_dirs == ["runs"] else [f" --runs_dir={shlex.quote(each)}" for each in runs_dirs]
    return f"; next: python -m launch.report --tables={name}{''.join(places)}"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    what = "|".join(f"--{name}=<...>" for name in ("algos", "experiments", "flagfiles"))
    usage = f"{PROGRAM} {what} [--flag=value ...] [-- flags of train]"
    return run_command(_run, "sweep", usage, define_flags, argv, common=COMMON)


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
