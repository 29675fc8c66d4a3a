"""What `launch.tune` is asked for: its flags, and what they say together. Imports nothing heavy."""

import csv
import dataclasses
import itertools
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from launch.command_line import list_fields
from launch.runs.columns import VALIDATION_ACCURACY
from launch.runs.run_folder import name_data
from launch.runs.task_columns import list_objectives
from launch.settings.errors import FlagError
from launch.settings.experiments import get_search, list_searches
from launch.settings.flag_parsing import define_flags, read_given, read_known, refuse_stray
from launch.settings.flags import parse_given
from launch.settings.run_config import RunConfig
from launch.settings.setting_names import get_flag, join_values
from launch.sweeps.jobs import JobsFlags
from launch.sweeps.present_data import PresentData
from launch.sweeps.recipes import Recipe, check_handed_on, find_recipe, from_algorithm, share_arguments
from launch.sweeps.tasks import OWN_FLAGS, read_seeds
from launch.sweeps.tuning.own_space import build_own_space
from launch.sweeps.tuning.search_space import (
    SearchSpace,
    compute_grid_size,
    has_ranges,
    parse_search,
)
from tff_algos.settings.config_fields import setting, texts

OBJECTIVES = list_objectives()
GRID, EVEN, TPE = "grid", "even", "tpe"
NO_PRUNER, MEDIAN = "none", "median"
CONFIRM_TRIALS = 3
# Defaults. Of three seeds a difference can be decided; a grid of so many points is tried as a whole.
TRIALS, MOST_OF_WHOLE_GRID = 8, 12
SEEDS, SEEDS_OF_EXPERIMENT = ("100-102",), ("100", "101")


class Request(NamedTuple):
    """What is asked for.

    Attributes:
      experiment: the settings that the trials start from.
      space: the choices or the range of each searched flag.
      sampler: what chooses the trials, GRID, EVEN or TPE.
      num_trials: how many, at most.
      seeds: with which each is trained.
      rounds: of every run; None: the experiment's.
      objective: the column of metrics.csv that scores a run, after its last round; "" until the data say it.
      runs_dir: where the run folders go.
      output: the table of all trials.
      jobs: runs at a time; None: what memory and cores allow.
      pruner: what stops runs that are behind, NO_PRUNER or MEDIAN.
      first_pruning_round: after which round it may, at the earliest.
      confirm_seeds: with which the best are trained anew; none: they are not.
      confirm_trials: how many of the best.
      present: the data as they are now, of all trials; None looks anew for each.
      fixed: flags of all runs, which count where the experiment says something else.
      is_plain: whether there is no experiment, but an algorithm with these flags. Its own settings are scored as well.
      is_own_list: whether the space is the list of the algorithm's row, which nobody has typed.
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
    fixed: tuple[str, ...] = ()
    is_plain: bool = False
    is_own_list: bool = False

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
        return self.fixed if self.rounds is None else (*self.fixed, f"--rounds={self.rounds}")

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
        "or the name of a paper's search, for all flags of that. By default what matters most in the algorithm.",
    )
    algo: tuple[str, ...] = texts((), "Algorithms that are tuned, each on what --search has of its settings.")
    seeds: tuple[str, ...] = texts(
        (), "Seeds of every trial, as 0,1 or 0-4; report others. By default 100-102, with --experiment 100,101."
    )
    objective: str = setting(
        "",
        f"What scores a run, by its task: {', '.join(OBJECTIVES)}. By default the clients' own, with --experiment "
        f"{VALIDATION_ACCURACY}.",
    )
    confirm_seeds: tuple[str, ...] = texts((), "Further seeds, on which the best trials are scored anew.")
    confirm_trials: int | None = setting(
        None, f"How many of the best are; by default {CONFIRM_TRIALS}.", minimum=1, maximum=10**6
    )
    runs_dir: str = setting("runs/tuning", "Folder for the run folders.")
    output: str = setting("", "The table of all trials, a .csv; by default trials.csv beside the runs.")
    experiment: str = setting("", "Experiment or flagfile whose settings the trials start from, in place of --algo.")
    trials: int | None = setting(
        None,
        f"How many trials; by default {TRIALS}, without --experiment a whole grid of at most {MOST_OF_WHOLE_GRID}.",
        minimum=1,
        maximum=10**6,
    )
    sampler: str = setting(
        "",
        f"{GRID} draws points of a grid at random, {EVEN} takes points that lie evenly, {TPE} learns from the trials "
        f"before, by Optuna; by default {GRID} where all are choices, else {EVEN}, and {TPE} with --pruner.",
        choices=("", GRID, EVEN, TPE),
        expected=f"one of {GRID}, {EVEN}, {TPE}",
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
    rounds: int | None = setting(None, "Rounds of every run; by default its settings'.", minimum=1, maximum=10**6)


def parse_request(argv: Sequence[str]) -> Request:
    """The first of `parse_requests`: with --experiment, and with one algorithm, the only one."""
    return parse_requests(argv)[0]


def parse_requests(argv: Sequence[str]) -> list[Request]:
    """Reads the command line, without the program's name: a search for each algorithm.

    What is no flag of ours is one of the runs. Each algorithm gets those that it has, and so it does of --search.

    Raises:
      FlagError: a wrong flag, or flags that do not go together.
    """
    own = define_flags(list_fields(Flags))
    left = join_values(read_known(own, expand_search(argv)))
    if stray := next((each for each in left if not get_flag(each)), None):
        raise FlagError("nothing is expected after --") if stray == "--" else refuse_stray(stray, list(own))
    given = read_given(own)
    given.setdefault("seeds", SEEDS_OF_EXPERIMENT if given.get("experiment") else SEEDS)
    values = dataclasses.replace(Flags(), **given)
    recipes = _find_recipes(values)
    check_handed_on(list(own), recipes, left, OWN_FLAGS)
    if values.objective and values.objective not in OBJECTIVES:
        raise FlagError(
            f"--objective={values.objective}: expected one of {', '.join(OBJECTIVES)}; settings that "
            "test examples chose cannot be judged on them"
        )
    if values.output and not values.output.endswith(".csv"):
        raise FlagError(f"--output={values.output}: expected the name of a .csv for the table of trials")
    if values.output and len(recipes) > 1:
        raise FlagError(f"--output={values.output}: is the table of one algorithm, not of {len(recipes)}; leave it out")
    has_own_list = not (values.search or values.experiment)
    space = {} if has_own_list else parse_search(values.search)
    for name, other in (("first_pruning_round", f"--pruner={MEDIAN}"), ("confirm_trials", "--confirm_seeds")):
        is_idle = values.pruner == NO_PRUNER if name == "first_pruning_round" else not values.confirm_seeds
        if getattr(values, name) is not None and is_idle:
            raise FlagError(f"--{name}: does nothing without {other}")
    fixed, _ = share_arguments(recipes, left)
    spaces = _build_own_spaces(recipes, fixed) if has_own_list else _share_space(space, recipes)
    if twice := next((name for name in map(get_flag, left) if name in space), None):
        raise FlagError(f"--{twice}: is searched as well; leave it out, or give one value more in --search")
    requests = [_build_request(values, recipe, spaces[recipe.name], fixed[recipe.name]) for recipe in recipes]
    # No algorithm may have more trials than another.
    fewest = min(request.num_trials for request in requests)
    requests = [request._replace(num_trials=fewest) for request in requests] if len(requests) > 1 else requests
    for request in requests:
        if searched := [seed for seed in request.confirm_seeds if seed in request.seeds]:
            raise FlagError(f"--confirm_seeds={searched[0]}: is one of --seeds; expected seeds that are not searched")
        if request.objective:
            check_output(request)
    return requests


def _find_recipes(values: Flags) -> list[Recipe]:
    """What is tuned: the experiment, or each algorithm."""
    if values.experiment:
        if values.algo:
            raise FlagError(f"--algo={','.join(values.algo)}: is in --experiment={values.experiment}; give one of both")
        return [find_recipe(values.experiment)]
    if not values.algo:
        raise FlagError(
            "--algo is missing: expected --algo=fedavg and further flags of launch.train, or --experiment=<a flagfile "
            "or an experiment such as fedsikd/fedavg_mnist_alpha0.1>"
        )
    recipes = {recipe.name: recipe for recipe in map(from_algorithm, values.algo)}
    for unknown in (recipe for recipe in recipes.values() if not recipe.algorithm):
        unknown.resolve()
    return list(recipes.values())


def _share_space(space: SearchSpace, recipes: Sequence[Recipe]) -> dict[str, SearchSpace]:
    """Of each recipe what its algorithm has of the search, `--<algo>_X` in the place of X.

    Raises:
      FlagError: a setting of none of the algorithms, or an algorithm that has none of the settings.
    """
    if len(recipes) == 1:
        return {recipes[0].name: space}
    # The value names the flag as it was typed, so that what is meant for one algorithm alone can be told.
    try:
        check_handed_on([], recipes, [f"--{name}={name}" for name in space], OWN_FLAGS)
        arguments, _ = share_arguments(recipes, [f"--{name}={name}" for name in space])
    except FlagError as error:
        raise FlagError(f"--search: {error}") from None
    shared = {
        name: {get_flag(each): space[each.partition("=")[2]] for each in given} for name, given in arguments.items()
    }
    if without := next((name for name, found in shared.items() if not found), None):
        raise FlagError(f"--search: {without} has none of {', '.join(space)}; give one of its settings, too")
    return shared


def _build_own_spaces(recipes: Sequence[Recipe], fixed: Mapping[str, Sequence[str]]) -> dict[str, SearchSpace]:
    """Of each recipe what its algorithm's own list has, less what is given.

    Raises:
      FlagError: flags that `launch.train` would refuse, or an algorithm of which nothing is left to search.
    """
    spaces = {}
    for recipe in recipes:
        arguments = fixed[recipe.name]

        def resolve(more: Sequence[str], recipe=recipe, arguments=arguments) -> RunConfig:
            return recipe.resolve((*arguments, *more))

        resolve(())
        algorithm, given = recipe.algorithm, parse_given([recipe.argument, *arguments])
        if not (space := build_own_space(algorithm, resolve, given)):
            why = "what its list has is given" if algorithm.searched else "it has no list of its own"
            raise FlagError(f"--search is missing: {recipe.name} leaves nothing to search, since {why}; give a=1|2|3")
        spaces[recipe.name] = space
    return spaces


def _build_request(values: Flags, recipe: Recipe, space: SearchSpace, fixed: Sequence[str]) -> Request:
    is_plain = not values.experiment
    # What runs are made from is in the name: other data get another folder.
    recipe = recipe._replace(name=f"{recipe.name}_{name_data(recipe.resolve(fixed))}") if is_plain else recipe
    runs_dir, sampler = pathlib.Path(values.runs_dir), _choose_sampler(values, space)
    return Request(
        recipe,
        space,
        sampler,
        values.trials or _choose_number(space, sampler, is_plain),
        read_seeds(values.seeds, "seeds"),
        values.rounds,
        values.objective or ("" if is_plain else VALIDATION_ACCURACY),
        runs_dir,
        pathlib.Path(values.output or runs_dir / recipe.name / "trials.csv"),
        values.jobs,
        values.pruner,
        values.first_pruning_round or 1,
        read_seeds(values.confirm_seeds, "confirm_seeds", may_be_none=True),
        values.confirm_trials or CONFIRM_TRIALS,
        fixed=tuple(fixed),
        is_plain=is_plain,
        is_own_list=not (values.search or values.experiment),
    )


def _choose_number(space: SearchSpace, sampler: str, is_plain: bool) -> int:
    """How many trials, unless it is said."""
    is_small = is_plain and sampler == GRID and compute_grid_size(space) <= MOST_OF_WHOLE_GRID
    return compute_grid_size(space) if is_small else TRIALS


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
        return TPE if is_pruned else EVEN if has_ranges(space) else GRID
    if is_pruned and values.sampler != TPE:
        raise FlagError(f"--sampler={values.sampler}: does not go with --pruner={MEDIAN}; expected --sampler={TPE}")
    if values.sampler == GRID and has_ranges(space):
        expected = f"--sampler={EVEN} or --sampler={TPE}"
        raise FlagError(f"--sampler={GRID}: does not go with a range in --search; expected {expected}")
    return values.sampler


def name_scores(objective: str, seeds: Iterable[str]) -> list[str]:
    """The columns of the table of trials that hold the scores with these seeds."""
    return [f"{objective}_seed_{seed}" for seed in seeds]


def check_output(request: Request) -> None:
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
