"""`python -m launch.tune --experiment=a.flags --search='x=1|2;y=3|4' --trials=8` tries settings on validation splits.

The trials are drawn at random from the grid of `--search`, none twice, each flag with two values at least. Each is
trained with every seed, in `<runs_dir>/<experiment>/trial_<number>/seed_<seed>`, and scored by a validation accuracy
after its last round, as the mean over the seeds. `--output` is a table of all trials, written anew after each run.
Finished runs are skipped and interrupted ones resumed, so the same command goes on where it was stopped.

Keep what is asked for in a file, for example `launch/experiments/fedsikd/tuning/fedavg_mnist_alpha0.1.flags`, and
give it as `--flagfile`: so the search space is written down before the first trial.

Exit codes: 0 all trials are scored, 1 some runs failed, 2 the request was wrong, 130 stopped by Ctrl-C, 143 by SIGTERM,
129 by SIGHUP.
"""

import itertools
import math
import pathlib
import shlex
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from absl import flags as absl_flags

from datasets.archetypes import ARCHETYPE_PARTITIONS
from launch.command_line import format_command_help, get_stop_code, parse_command, run_main
from launch.many_runs.jobs import define_jobs_flag, open_engine
from launch.many_runs.pool import Engine, run_tasks
from launch.many_runs.tasks import OWN_FLAGS, Task, is_finished
from launch.progress import say
from launch.runs.columns import CLIENT_VALIDATION_ACCURACY, METRICS_FILE, VALIDATION_ACCURACY
from launch.runs.errors import RunStopped
from launch.runs.run_records import read_rounds, resolve_flagfile
from launch.runs.tables import write_table
from launch.settings.flag_fields import FlagField
from launch.settings.flags import FlagError, define_flag, parse_config
from launch.settings.run_config import RunConfig
from tff_algos.settings.config_fields import Setting

PROGRAM = "python -m launch.tune"
OBJECTIVES = (VALIDATION_ACCURACY, CLIENT_VALIDATION_ACCURACY)
OWN_FLAGS_HERE = {"seed": "--seeds", "rounds": "--rounds", "run_dir": "--runs_dir"}  # in place of those of a run
DRAW_SEED = 0  # of the trials: the same request draws the same ones
DRAWS = 100  # as many are looked at for one that varies every flag

Trial = Mapping[str, str]  # the values of a trial's flags


class Request(NamedTuple):
    """What is asked for.

    Attributes:
      experiment: the flagfile whose settings the trials start from.
      trials: their flags.
      grid_size: how many points the grid has, of which the trials are some.
      seeds: with which each is trained.
      rounds: of every run; None: the flagfile's.
      objective: the column of metrics.csv that scores a run, after its last round.
      runs_dir: where the run folders go.
      output: the table of all trials.
      jobs: runs at a time; None: what memory and cores allow.
    """

    experiment: pathlib.Path
    trials: tuple[Trial, ...]
    grid_size: int
    seeds: tuple[str, ...]
    rounds: int | None
    objective: str
    runs_dir: pathlib.Path
    output: pathlib.Path
    jobs: int | None = None


def define_flags() -> absl_flags.FlagValues:
    """The flags of this command."""
    values = absl_flags.FlagValues()
    absl_flags.DEFINE_string("experiment", None, "Flagfile whose settings the trials start from.", flag_values=values)
    absl_flags.DEFINE_string(
        "search", "", "The grid: flags with their values, as 'a=1|2|3;b=true|false'.", flag_values=values
    )
    absl_flags.DEFINE_list("seeds", ["100", "101"], "Seeds of every trial; report others.", flag_values=values)
    absl_flags.DEFINE_string(
        "objective", VALIDATION_ACCURACY, f"What scores a run: {' or '.join(OBJECTIVES)}.", flag_values=values
    )
    absl_flags.DEFINE_string("runs_dir", "runs/tuning", "Folder for the run folders.", flag_values=values)
    absl_flags.DEFINE_string("output", "", "The table of all trials, a .csv.", flag_values=values)
    for name, help_text in (
        ("trials", "How many points of the grid are tried; by default 8."),
        ("rounds", "Rounds of every run; by default the flagfile's."),
    ):
        define_flag(FlagField(name, Setting(help_text, minimum=1, maximum=10**6), 1), values)
    define_jobs_flag(values)
    return values


def parse_request(argv: Sequence[str]) -> Request:
    """Reads the command line, without the program's name.

    Raises:
      FlagError: a wrong flag, or a trial whose settings `launch.train` would refuse.
    """
    values = define_flags()
    if parse_command(values, argv):
        raise FlagError("nothing is expected after --; fixed settings belong into the experiment's flagfile")
    if values.experiment is None:
        raise FlagError("--experiment is missing: expected a flagfile, as launch/experiments/<paper>/<name>.flags")
    experiment = pathlib.Path(values.experiment)
    if not experiment.is_file():
        raise FlagError(
            f"--experiment={values.experiment}: no such file; expected a flagfile, for example "
            "launch/experiments/fedsikd/fedavg_mnist_alpha0.1.flags"
        )
    if values.objective not in OBJECTIVES:
        raise FlagError(
            f"--objective={values.objective}: expected {' or '.join(OBJECTIVES)}; settings chosen by test examples "
            "could not be judged by them"
        )
    if not values.output.endswith(".csv"):
        raise FlagError(f"--output={values.output}: expected the name of a .csv for the table of trials")
    grid = parse_search(values.search)
    request = Request(
        experiment,
        draw_trials(grid, values.trials or 8),
        math.prod(map(len, grid.values())),
        tuple(dict.fromkeys(values.seeds)),
        values.rounds,
        values.objective,
        pathlib.Path(values.runs_dir),
        pathlib.Path(values.output),
        values.jobs,
    )
    if not request.seeds or not all(seed.isdecimal() for seed in request.seeds):
        raise FlagError(f"--seeds={','.join(request.seeds)}: expected whole numbers with commas between them")
    return request


def parse_search(text: str) -> dict[str, list[str]]:
    """The grid of "a=1|2;b=3|4": the values of each flag.

    Raises:
      FlagError: it says something else.
    """
    grid: dict[str, list[str]] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, values = part.partition("=")
        name, choices = name.strip().lstrip("-"), [value.strip() for value in values.split("|")]
        if not equals or not name or not all(choices):
            raise FlagError(f"--search: {part!r}: expected a flag and its values, as name=1|2|3")
        if name in grid or len(set(choices)) < len(choices):
            raise FlagError(f"--search: {part!r}: expected each flag and each of its values once")
        if name in OWN_FLAGS:
            own = OWN_FLAGS_HERE.get(name)
            raise FlagError(
                f"--search: {name} is not searched; " + (f"give {own} beside it" if own else "leave it out")
            )
        grid[name] = choices
    if not grid:
        raise FlagError("--search is missing: expected flags with their values, as 'a=1|2|3;b=true|false'")
    return grid


def draw_trials(grid: Mapping[str, Sequence[str]], number: int) -> tuple[Trial, ...]:
    """Different points of the grid, drawn at random; all of them if it has no more than `number`.

    A draw in which a flag has one of its values alone cannot choose among them: it is drawn anew, whatever it would
    have scored.
    """
    # Here, since it takes a second.
    from sklearn.model_selection import ParameterSampler

    number = min(number, math.prod(map(len, grid.values())))
    draws = (tuple(ParameterSampler(dict(grid), number, random_state=DRAW_SEED + each)) for each in range(DRAWS))
    first = next(draws)
    return next((draw for draw in itertools.chain([first], draws) if _varies_every_flag(draw, grid)), first)


def _varies_every_flag(trials: Sequence[Trial], grid: Mapping[str, Sequence[str]]) -> bool:
    return all(len({trial[name] for trial in trials}) >= min(2, len(grid[name])) for name in grid)


def build_tasks(request: Request) -> dict[tuple[int, str], Task]:
    """The runs by trial (counted from 1) and seed: all trials with the first seed, then with the next.

    Raises:
      FlagError: settings that `launch.train` would refuse.
    """
    rounds = () if request.rounds is None else (f"--rounds={request.rounds}",)
    resolve_flagfile(request.experiment, rounds)  # what is wrong from here on is wrong in --search
    tasks = {}
    for seed in request.seeds:
        for number, trial in enumerate(request.trials, 1):
            run_dir = request.runs_dir / request.experiment.stem / f"trial_{number}" / f"seed_{seed}"
            flags = tuple(f"--{name}={value}" for name, value in trial.items())
            arguments = (f"--seed={seed}", f"--run_dir={run_dir}", *rounds, *flags)
            config = _resolve_trial(request.experiment, arguments)
            label = f"trial {number} ({' '.join(flags)})"
            tasks[number, seed] = Task(request.experiment, arguments, run_dir, config, label=label)
    return tasks


def _resolve_trial(experiment: pathlib.Path, arguments: Sequence[str]) -> RunConfig:
    try:
        config = parse_config([f"--flagfile={experiment}", *arguments])
    except FlagError as error:
        raise FlagError(f"--search: {error}") from None
    flag = "validation_per_client" if config.partition in ARCHETYPE_PARTITIONS else "validation_fraction"
    if not getattr(config, flag):
        raise FlagError(f"--{flag}=0: expected more, since trials are scored on the clients' validation examples")
    return config


def read_score(task: Task, objective: str) -> float | None:
    """The objective after the last round of a finished run; None if it is not finished."""
    if not is_finished(task):
        return None
    rounds = read_rounds(task.run_dir / METRICS_FILE)
    return rounds[max(rounds)].get(objective)


def tabulate_trials(request: Request, scores: Mapping[tuple[int, str], float]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of the table of trials: settings, score of each seed, their mean if all are there."""
    names = list(dict.fromkeys(name for trial in request.trials for name in trial))
    columns = ["trial", *names, *(f"{request.objective}_seed_{seed}" for seed in request.seeds), "mean"]
    rows = []
    for number, trial in enumerate(request.trials, 1):
        found = [scores.get((number, seed)) for seed in request.seeds]
        mean = "" if None in found else f"{statistics.fmean(found):.6g}"
        cells = ["" if score is None else f"{score:.6g}" for score in found]
        rows.append([str(number), *(trial.get(name, "") for name in names), *cells, mean])
    return columns, rows


def find_best(request: Request, scores: Mapping[tuple[int, str], float]) -> tuple[int, float] | None:
    """The first trial with the highest mean score, and that; None if no trial has all its scores."""
    means = {
        number: statistics.fmean(scores[number, seed] for seed in request.seeds)
        for number in range(1, len(request.trials) + 1)
        if all((number, seed) in scores for seed in request.seeds)
    }
    best = max(means, key=means.get, default=None)
    return None if best is None else (best, means[best])


def run_trials(
    request: Request, open_engine: Callable[[list[Task], int | None], Engine] = open_engine
) -> tuple[dict, list[str]]:
    """Trains what is not finished. Returns the scores by trial and seed, and a line for each run that failed."""
    tasks = build_tasks(request)
    scores: dict[tuple[int, str], float] = {}

    def collect(*keys: tuple[int, str]) -> None:
        found = {key: read_score(tasks[key], request.objective) for key in keys}
        scores.update({key: score for key, score in found.items() if score is not None})
        write_table(request.output, *tabulate_trials(request, scores))

    def collect_one(task: Task) -> None:
        key = next(key for key, each in tasks.items() if each is task)
        collect(key)
        if key in scores:
            say(f"score    trial {key[0]}, seed {key[1]}: {request.objective} {scores[key]:.4f}")

    collect(*tasks)
    every = list(tasks.values())
    return scores, run_tasks(every, open_engine(every, request.jobs), collect_one)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    usage = f"{PROGRAM} --experiment=<file> --search='a=1|2;b=3|4' --output=<table.csv> [--flag=value ...]"
    return run_main(_run, lambda: format_command_help(usage, define_flags()), argv)


def _run(arguments: Sequence[str]) -> int:
    request = parse_request(arguments)
    count, seeds = len(request.trials), ", ".join(request.seeds)
    try:
        scores, failures = run_trials(request)
    except KeyboardInterrupt as error:
        again = f"stopped; go on with: {PROGRAM} {shlex.join(arguments)}"
        raise RunStopped(again, get_stop_code(error)) from None
    if failures:
        print(f"{len(failures)} runs failed:", *failures, sep="\n  ", file=sys.stderr)
        return 1
    best = find_best(request, scores)
    if best is None:
        print(f"no trial has a {request.objective}; do the clients have validation examples?", file=sys.stderr)
        return 1
    number, score = best
    tried = "all" if count == request.grid_size else f"{count} of the {request.grid_size}"
    say(
        f"best     trial {number}: {request.objective} {score:.4f}, the mean over the seeds {seeds}; {tried} points of "
        f"the grid are in {request.output}"
    )
    print(*(f"--{name}={value}" for name, value in request.trials[number - 1].items()), sep="\n")
    say(f"next     add these lines to a copy of {request.experiment}, and report it on other seeds than {seeds}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
