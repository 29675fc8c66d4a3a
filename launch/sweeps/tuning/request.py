"""What `launch.tune` is asked for: its flags, and what they say together. Imports nothing heavy."""

import csv
import dataclasses
import itertools
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from launch.command_line import parse_flags
from launch.runs.columns import VALIDATION_ACCURACY
from launch.runs.task_columns import list_objectives
from launch.settings.errors import FlagError
from launch.settings.experiments import get_search, list_searches
from launch.sweeps.jobs import JobsFlags
from launch.sweeps.present_data import PresentData
from launch.sweeps.recipes import Recipe, find_recipe
from launch.sweeps.tasks import read_seeds
from launch.sweeps.tuning.search_space import SearchSpace, has_ranges, parse_search
from tff_algos.settings.config_fields import setting, texts

OBJECTIVES = list_objectives()
GRID, TPE = "grid", "tpe"
NO_PRUNER, MEDIAN = "none", "median"
CONFIRM_TRIALS = 3


class Request(NamedTuple):
    """What is asked for.

    Attributes:
      experiment: the settings that the trials start from.
      space: the choices or the range of each searched flag.
      sampler: what chooses the trials, GRID or TPE.
      num_trials: how many, at most.
      seeds: with which each is trained.
      rounds: of every run; None: the experiment's.
      objective: the column of metrics.csv that scores a run, after its last round.
      runs_dir: where the run folders go.
      output: the table of all trials.
      jobs: runs at a time; None: what memory and cores allow.
      pruner: what stops runs that are behind, NO_PRUNER or MEDIAN.
      first_pruning_round: after which round it may, at the earliest.
      confirm_seeds: with which the best are trained anew; none: they are not.
      confirm_trials: how many of the best.
      present: the data as they are now, of all trials; None looks anew for each.
    """

    experiment: Recipe
    space: SearchSpace
    sampler: str
    num_trials: int
    seeds: tuple[str, ...]
    rounds: int | None
    objective: str
    runs_dir: pathlib.Path
    output: pathlib.Path
    jobs: int | None = None
    pruner: str = NO_PRUNER
    first_pruning_round: int = 1
    confirm_seeds: tuple[str, ...] = ()
    confirm_trials: int = CONFIRM_TRIALS
    present: PresentData | None = None

    @property
    def folder(self) -> pathlib.Path:
        """What belongs to this search: the run folders and, beside them, what is made of all."""
        return self.runs_dir / self.experiment.name

    @property
    def is_adaptive(self) -> bool:
        """Whether trials depend on those before, so that Optuna is needed."""
        return self.sampler == TPE

    @property
    def arguments(self) -> tuple[str, ...]:
        """The flags that all runs get beside those of the experiment."""
        return () if self.rounds is None else (f"--rounds={self.rounds}",)

    @property
    def sign(self) -> int:
        """1 if a larger objective is better, else -1: what is larger after multiplication by it is better."""
        return 1 if OBJECTIVES[self.objective] else -1


@dataclasses.dataclass(frozen=True)
class Flags(JobsFlags):
    """The flags of `launch.tune`."""

    search: str = setting(
        "",
        "Flags with their choices or ranges, as 'a=1|2|3;b=true|false;c=int(2,8);d=float(0,1);e=log(1e-4,1e-1)'; "
        "or the name of a paper's search, for all flags of that.",
    )
    seeds: tuple[str, ...] = texts(("100", "101"), "Seeds of every trial, as 0,1 or 0-4; report others.")
    objective: str = setting(VALIDATION_ACCURACY, f"What scores a run, by its task: {', '.join(OBJECTIVES)}.")
    confirm_seeds: tuple[str, ...] = texts((), "Further seeds, on which the best trials are scored anew.")
    confirm_trials: int | None = setting(
        None, f"How many of the best are; by default {CONFIRM_TRIALS}.", minimum=1, maximum=10**6
    )
    runs_dir: str = setting("runs/tuning", "Folder for the run folders.")
    output: str = setting("", "The table of all trials, a .csv; by default trials.csv beside the runs.")
    experiment: str = setting("", "Experiment or flagfile whose settings the trials start from.")
    trials: int = setting(8, "How many trials.", minimum=1, maximum=10**6)
    sampler: str = setting(
        "",
        f"{GRID} draws points of a grid at random, {TPE} learns from the trials before, by Optuna; by default {GRID} "
        "where all are choices.",
        choices=("", GRID, TPE),
        expected=f"one of {GRID}, {TPE}",
    )
    pruner: str = setting(
        NO_PRUNER,
        f"{MEDIAN} stops a run after a round where its objective is worse than the median of the complete trials, by "
        "Optuna.",
        choices=(NO_PRUNER, MEDIAN),
    )
    first_pruning_round: int | None = setting(
        None, "The first round that is judged so; by default 1.", minimum=1, maximum=10**6
    )
    rounds: int | None = setting(None, "Rounds of every run; by default the experiment's.", minimum=1, maximum=10**6)


def parse_request(argv: Sequence[str]) -> Request:
    """Reads the command line, without the program's name.

    Raises:
      FlagError: a wrong flag, or flags that do not go together.
    """
    instead = "fixed settings belong into the experiment's flagfile"
    values = parse_flags(Flags, expand_search(argv), instead)
    if not values.experiment:
        raise FlagError(
            "--experiment is missing: expected a flagfile or an experiment such as fedsikd/fedavg_mnist_alpha0.1"
        )
    experiment = find_recipe(values.experiment)
    if values.objective not in OBJECTIVES:
        raise FlagError(
            f"--objective={values.objective}: expected one of {', '.join(OBJECTIVES)}; settings that "
            "test examples chose cannot be judged on them"
        )
    if values.output and not values.output.endswith(".csv"):
        raise FlagError(f"--output={values.output}: expected the name of a .csv for the table of trials")
    space = parse_search(values.search)
    runs_dir = pathlib.Path(values.runs_dir)
    request = Request(
        experiment,
        space,
        _choose_sampler(values, space),
        values.trials,
        read_seeds(values.seeds, "seeds"),
        values.rounds,
        values.objective,
        runs_dir,
        pathlib.Path(values.output or runs_dir / experiment.name / "trials.csv"),
        values.jobs,
        values.pruner,
        values.first_pruning_round or 1,
        read_seeds(values.confirm_seeds, "confirm_seeds", may_be_none=True),
        values.confirm_trials or CONFIRM_TRIALS,
    )
    if searched := [seed for seed in request.confirm_seeds if seed in request.seeds]:
        raise FlagError(f"--confirm_seeds={searched[0]}: is one of --seeds; expected seeds that are not searched")
    _check_output(request)
    for name, other in (("first_pruning_round", f"--pruner={MEDIAN}"), ("confirm_trials", "--confirm_seeds")):
        is_idle = request.pruner == NO_PRUNER if name == "first_pruning_round" else not request.confirm_seeds
        if getattr(values, name) is not None and is_idle:
            raise FlagError(f"--{name}: does nothing without {other}")
    return request


def expand_search(argv: Sequence[str]) -> list[str]:
    """The arguments, with the flags of a paper's search in the place of `--search=<paper>/<name>`.

    Raises:
      FlagError: there is no such search.
    """
    expanded = []
    for argument in argv:
        flag, _, name = argument.lstrip("-").partition("=")
        is_name = "=" not in name and ("/" in name or name in list_searches())
        if not argument.startswith("-") or flag != "search" or not is_name:
            expanded.append(argument)
            continue
        try:
            search = get_search(name)
        except FlagError as error:
            raise FlagError(f"--search={error}") from None
        # What the user types beside a paper's search comes later, and so counts.
        own = {"experiment": search.full_name, "output": f"docs/results/tuning/{search.name}.csv"} | search.flags
        expanded += [f"--{flag}={value}" for flag, value in own.items()]
    return expanded


def _choose_sampler(values: Flags, space: SearchSpace) -> str:
    """The sampler that is asked for, or the plain one where that can do it."""
    is_pruned = values.pruner == MEDIAN
    if not values.sampler:
        return TPE if has_ranges(space) or is_pruned else GRID
    if values.sampler == GRID and (has_ranges(space) or is_pruned):
        what = f"--pruner={MEDIAN}" if is_pruned else "a range in --search"
        raise FlagError(f"--sampler={GRID}: does not go with {what}; expected --sampler={TPE}")
    return values.sampler


def name_scores(objective: str, seeds: Iterable[str]) -> list[str]:
    """The columns of the table of trials that hold the scores with these seeds."""
    return [f"{objective}_seed_{seed}" for seed in seeds]


def _check_output(request: Request) -> None:
    """The file at `--output` will be replaced, so it must be a table of this search and its seeds or not be there.

    Without `--output` it lies beside its runs, of which it can be made again with any seeds; the journal of a search by
    TPE says there what differs.
    """
    is_beside_runs = request.output.parent == request.folder
    if is_beside_runs and request.is_adaptive:
        return
    try:
        with request.output.open(newline="", encoding="utf-8", errors="replace") as file:
            columns = next(csv.reader(file), [])
    # There is none, or the first write will say what is wrong.
    except OSError:
        return
    searched = list(itertools.takewhile(lambda column: not column.startswith(tuple(OBJECTIVES)), columns[1:]))
    is_table = columns[:1] == ["trial"]
    scored = [column for column in columns if re.fullmatch(rf"({'|'.join(OBJECTIVES)})_seed_\d+", column)]
    lost = set(scored) - set(name_scores(request.objective, (*request.seeds, *request.confirm_seeds)))
    if columns and not (is_table and set(searched) <= set(request.space)):
        what = f"trials of another search (over {', '.join(searched)})" if is_table else "something else"
    elif lost and not is_beside_runs:
        what = f"scores that this search does not have ({', '.join(sorted(lost))})"
    else:
        return
    flag, expected = ("runs_dir", "another") if is_beside_runs else ("output", "a new name")
    path = request.runs_dir if is_beside_runs else request.output
    raise FlagError(f"--{flag}={path}: holds {what} and would be replaced; expected {expected}")
