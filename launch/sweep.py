"""`python -m launch.sweep --algos=fedavg,ditto --seeds=0-4 --epochs=2` trains many runs, several at a time.

`--experiments='fedsikd/*_mnist_*'` trains experiments of papers, and `--flagfiles=a.flags,b.flags` files of your own.
Each run is a process of its own, in `<runs_dir>/<algorithm, experiment or file>/seed_<seed>`, on its share of the
cores. `--jobs` says how many go on at a time; the output of each is then in `seed_<seed>.log` beside its folder.
Finished runs are skipped, here or in `--finished`, and interrupted ones are resumed, so the same command carries on
where a sweep was stopped. On other data than the runs in `--finished` or `--same_data_as` had, nothing is trained.
Flags of `launch.train` go to every run whose algorithm has them; with the name of an algorithm before it, as
`--ditto_epochs=1`, a setting goes to its runs alone. What this command has, too, such as `--runtime`, goes to the runs
behind a lone `--`.

Exit codes: 0 all runs are finished, 1 some failed, 2 the request was wrong, 130 stopped by Ctrl-C, 143 by SIGTERM,
129 by SIGHUP.
"""

import dataclasses
import itertools
import pathlib
import shlex
import sys
import types
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from launch.command_line import list_fields, run_command
from launch.console.progress import say
from launch.console.shown_text import format_count
from launch.console.stop_signals import as_stop_after_signal, get_stop_code, leave
from launch.runs.errors import RunStopped
from launch.runs.run_archive import is_archive, open_runs
from launch.runs.run_records import RunPath
from launch.runtimes.runtime import WorkerError
from launch.settings.errors import FlagError
from launch.settings.flag_parsing import define_flags, read_given, read_known, refuse_stray
from launch.settings.runtimes import RAY
from launch.settings.setting_names import get_flag, join_values
from launch.sweeps.jobs import JobsFlags, are_done, open_engine
from launch.sweeps.kept_data import check_kept_data
from launch.sweeps.pool import Engine, run_tasks
from launch.sweeps.present_data import PresentData
from launch.sweeps.ray_runs import RayEngine, check_ray_flags
from launch.sweeps.recipes import check_handed_on, find_recipes, share_arguments
from launch.sweeps.tasks import OWN_FLAGS, Task, read_seeds
from tff_algos.settings.config_fields import setting, texts

PROGRAM = "python -m launch.sweep"
# Of its flags, those that --help shows.
COMMON = ("algos", "experiments", "flagfiles", "seeds", "runs_dir", "rounds", "jobs")


class Request(NamedTuple):
    """What a command line asks for.

    Attributes:
      tasks: the runs.
      jobs: how many at a time.
      ray_address: on which Ray cluster; None for this machine.
      lacking: {setting that was given: the algorithms that have none of this name}.
      kept: folders and archives of runs, whose data the runs must have.
    """

    tasks: list[Task]
    jobs: int | None
    ray_address: str | None
    lacking: Mapping[str, Sequence[str]] = types.MappingProxyType({})
    kept: Sequence[RunPath] = ()


@dataclasses.dataclass(frozen=True)
class Flags(JobsFlags):
    """The flags of this command."""

    algos: tuple[str, ...] = texts((), "Algorithms, with the flags that are given and else their defaults.")
    experiments: tuple[str, ...] = texts((), "Experiments of papers or patterns of their names (quote a *).")
    flagfiles: tuple[str, ...] = texts((), "Flagfiles or patterns of their names (quote a *).")
    seeds: tuple[str, ...] = texts(("0",), "Seeds, each a run of all of these, as 0,1,2 or 0-4.")
    runs_dir: str = setting("runs", "Folder for the run folders.")
    finished: tuple[str, ...] = texts(
        (), "Folder or .zip of runs, kept by launch.report --archive, that need not be made again.", repeated=True
    )
    same_data_as: tuple[str, ...] = texts(
        (), "Folder or .zip of runs: trains no experiment on other data than its runs there had.", repeated=True
    )
    rounds: int | None = setting(None, "Rounds of every run; by default its settings'.", minimum=1, maximum=10**6)
    runtime: str = setting(
        "", "ray: whole runs on the nodes of a Ray cluster; by default on this machine.", choices=("", RAY)
    )
    ray_address: str = setting("", "Ray cluster: host:port, ray://host:port, or auto for the one of this machine.")


def parse_request(argv: Sequence[str]) -> Request:
    """What a command line asks for; of the runs, all with the first seed come first, then with the next.

    Raises:
      FlagError: a wrong flag, nothing of such a name, a wrong seed, or settings that `launch.train` would refuse.
      RunFolderError: an archive of finished runs that cannot be read.
    """
    own = define_flags(list_fields(Flags))
    split = list(argv).index("--") if "--" in argv else len(argv)
    handed_on, extra = join_values(read_known(own, argv[:split])), list(argv[split + 1 :])
    if stray := next((each for each in handed_on if not get_flag(each)), None):
        raise refuse_stray(stray, list(own))
    values = dataclasses.replace(Flags(), **read_given(own))
    check_ray_flags(values.runtime, values.ray_address)
    recipes = find_recipes(values.flagfiles, values.experiments, values.algos)
    if not recipes and "algo" in map(get_flag, handed_on):
        raise FlagError("--algo: did you mean --algos? expected --algos=fedavg,fedsikd")
    if not recipes:
        raise FlagError(
            "nothing to train: expected --algos=fedavg,fedsikd, --experiments='fedsikd/*_mnist_*' or --flagfiles=<file>"
        )
    runs_dir = pathlib.Path(values.runs_dir)
    check_handed_on(list(own), recipes, handed_on, OWN_FLAGS)
    extra = [*handed_on, *extra]
    named = [name for name in OWN_FLAGS for argument in extra if get_flag(argument).removeprefix("no") == name]
    if forbidden := [name for name in named if name != "rounds"]:
        raise FlagError(f"--{forbidden[0]} after --: expected flags that the sweep does not set itself")
    if values.rounds is not None:
        if "rounds" in named:
            raise FlagError("--rounds stands before and after --; expected it once")
        extra = [f"--rounds={values.rounds}", *extra]
    shared, lacking = share_arguments(recipes, extra)
    # The nearest that exists: a file on the way would fail only when the first run is made.
    nearest = next((path for path in (runs_dir, *runs_dir.parents) if path.exists()), runs_dir)
    if nearest.exists() and not nearest.is_dir() and not is_archive(runs_dir):
        raise FlagError(f"--runs_dir={runs_dir}: expected a folder, {nearest} is a file; choose another")
    if is_archive(runs_dir):
        raise FlagError(
            f"--runs_dir={runs_dir}: runs go into a folder; --finished={runs_dir} skips those of an archive"
        )
    finished = tuple(open_runs(pathlib.Path(name)) for name in values.finished)
    present, tasks = PresentData(), []
    for seed, recipe in itertools.product(read_seeds(values.seeds, "seeds"), recipes):
        run_dir = runs_dir / recipe.name / f"seed_{seed}"
        arguments = (f"--seed={seed}", f"--run_dir={run_dir}", *shared[recipe.name])
        tasks.append(Task(recipe, arguments, run_dir, recipe.resolve(arguments), finished, present=present))
    kept = (*finished, *(open_runs(pathlib.Path(name)) for name in values.same_data_as))
    return Request(tasks, values.jobs, values.ray_address if values.runtime else None, lacking, kept)


def suggest_report(tasks: Sequence[Task]) -> str:
    """What to type to see the runs beside what a paper prints; "" where they are of no paper's experiments."""
    reports = Counter(each.experiment.report for each in {task.recipe for task in tasks} if each.experiment)
    # Of equal counts the last name, so that the hint is the same each time.
    name = max(reports, key=lambda each: (reports[each], each), default="")
    if not name:
        return ""
    runs_dirs = [str(each).rstrip("/") for each in (tasks[0].run_dir.parents[1], *tasks[0].finished)]
    flags = [] if runs_dirs == ["runs"] else [f" --runs_dir={shlex.quote(each)}" for each in runs_dirs]
    return f"; next: python -m launch.report --tables={name}{''.join(flags)}"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    what = "|".join(f"--{name}=<...>" for name in ("algos", "experiments", "flagfiles"))
    usage = f"{PROGRAM} {what} [--flag=value ...] [--flag of train ...]"
    return run_command(_run, "sweep", usage, Flags, argv, common=COMMON)


def _run(arguments: Sequence[str]) -> int:
    request = parse_request(arguments)
    tasks = request.tasks
    for name, algorithms in request.lacking.items():
        say(f"note     --{name}: {', '.join(algorithms)} {'has' if len(algorithms) == 1 else 'have'} no such setting")
    check_kept_data(tasks, request.kept, tasks[0].present)
    try:
        with as_stop_after_signal():
            engine: Engine = (
                open_engine(tasks, request.jobs)
                if request.ray_address is None or are_done(tasks)
                else RayEngine(tasks, request.jobs, request.ray_address)
            )
            failures = run_tasks(tasks, engine)
    except WorkerError as error:
        raise RunStopped(f"error: {error}", 1) from error
    except KeyboardInterrupt as error:
        again = f"stopped; go on with: {PROGRAM} {shlex.join(arguments)}"
        raise RunStopped(again, get_stop_code(error)) from None
    if failures:
        print(f"{len(failures)} of {format_count(len(tasks), 'run')} failed:", *failures, sep="\n  ", file=sys.stderr)
        return 1
    count = "the run is" if len(tasks) == 1 else f"all {len(tasks):,} runs are"
    say(f"{count} finished{suggest_report(tasks)}")
    # Here, since a request that is wrong has no need of it.
    from launch.sweeps.answers import say_results

    say_results(tasks)
    return 0


if __name__ == "__main__":
    leave(main())
