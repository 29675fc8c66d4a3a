"""Runs that are all known beforehand: those of trials drawn at random from a grid, and those that score the best anew.

Needs no extra.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from launch.console.progress import say
from launch.sweeps.pool import Engine, run_tasks
from launch.sweeps.tasks import Task
from launch.sweeps.tuning.request import Request
from launch.sweeps.tuning.search_space import Settings
from launch.sweeps.tuning.trials import Outcome, Scores, State, build_task, name_seeds, rank, read_score, write_trials

# Of the trials: the same request draws the same ones.
DRAW_SEED = 0
# As many are looked at for one that varies every flag.
DRAWS = 100

OpenEngine = Callable[[Sequence[Task], int | None], Engine]
ScoresOfTrials = Mapping[int, Scores]


def score_runs(
    tasks: Mapping[tuple[int, str], Task],
    request: Request,
    open_engine: OpenEngine,
    keep: Callable[[ScoresOfTrials], None],
) -> list[str]:
    """Trains what is not finished and returns a line for each run that failed.

    Args:
      tasks: by trial and seed.
      keep: is given the scores by trial and seed, at first those that are there already, then again after each run.
    """
    scores: dict[int, dict[str, float]] = {}
    keys = {task.run_dir: key for key, task in tasks.items()}

    def collect(task: Task) -> float | None:
        number, seed = keys[task.run_dir]
        score = read_score(task, request.objective)
        if score is not None:
            scores.setdefault(number, {})[seed] = score
        return score

    def collect_one(task: Task) -> None:
        score = collect(task)
        keep(scores)
        if score is not None:
            say_score(request, *keys[task.run_dir], score)

    for task in tasks.values():
        collect(task)
    keep(scores)
    every = list(tasks.values())
    return run_tasks(every, open_engine(every, request.jobs), collect_one)


def say_score(request: Request, number: int, seed: str, score: float) -> None:
    """A line for a run that has its score."""
    say(f"score    trial {number}, seed {seed}: {request.objective} {score:.4f}")


def confirm_best(
    request: Request, outcomes: Sequence[Outcome], open_engine: OpenEngine, keep: Callable[[ScoresOfTrials], None]
) -> list[str]:
    """Scores the best trials on seeds that were not searched, as `score_runs` does."""
    best = rank(outcomes, request.sign)[: request.confirm_trials]
    if not request.confirm_seeds or not best:
        return []
    tasks = {
        (each.number, seed): build_task(request, each.number, each.settings, seed)
        for seed in request.confirm_seeds
        for each in best
    }
    say(f"confirm  the best {len(best)} trials on {name_seeds(request.confirm_seeds)}")
    return score_runs(tasks, request, open_engine, keep)


def compute_grid_size(grid: Mapping[str, Sequence[str]]) -> int:
    """How many points the grid has."""
    return math.prod(map(len, grid.values()))


def draw_trials(grid: Mapping[str, Sequence[str]], number: int) -> tuple[Settings, ...]:
    """Different points of the grid, drawn at random; all of them if it has no more than `number`.

    A draw in which a flag has one of its values alone cannot choose among them: it is drawn anew, whatever it would
    have scored.
    """
    # Here, since it takes a second.
    from sklearn.model_selection import ParameterSampler

    choices, number = {name: list(values) for name, values in grid.items()}, min(number, compute_grid_size(grid))
    draws = (tuple(ParameterSampler(choices, number, random_state=DRAW_SEED + each)) for each in range(DRAWS))
    first = next(draws)
    for draw in itertools.chain([first], draws):
        if all(len({trial[name] for trial in draw}) >= min(2, len(grid[name])) for name in grid):
            return draw
    return first


def build_tasks(request: Request) -> dict[tuple[int, str], Task]:
    """The runs by trial (counted from 1) and seed: all trials with the first seed, then with the next.

    Raises:
      FlagError: settings that `launch.train` would refuse.
    """
    # What is wrong from here on is wrong in --search.
    request.experiment.resolve(request.arguments)
    trials = list(enumerate(draw_trials(request.space, request.num_trials), 1))
    return {
        (number, seed): build_task(request, number, trial, seed) for seed in request.seeds for number, trial in trials
    }


def run_grid_search(request: Request, open_engine: OpenEngine) -> tuple[list[Outcome], list[str]]:
    """Trains what is not finished. Returns the trials and a line for each run that failed."""
    trials = list(enumerate(draw_trials(request.space, request.num_trials), 1))
    outcomes: list[Outcome] = []

    def keep(scores: ScoresOfTrials) -> None:
        outcomes.clear()
        for number, settings in trials:
            found = scores.get(number, {})
            state = State.COMPLETE if len(found) == len(request.seeds) else State.OPEN
            outcomes.append(Outcome(number, settings, state, found))
        write_trials(request, outcomes)

    failures = score_runs(build_tasks(request), request, open_engine, keep)
    return outcomes, failures
