"""Trials drawn at random from a grid, all of them before the first is trained. Needs no extra."""

import itertools
import math
from collections.abc import Mapping, Sequence

from launch.sweeps.tasks import Task
from launch.tuning.request import Request
from launch.tuning.scored_runs import OpenEngine, ScoresOfTrials, score_runs
from launch.tuning.search_space import Settings
from launch.tuning.trials import Outcome, State, build_task, write_trials

DRAW_SEED = 0  # of the trials: the same request draws the same ones
DRAWS = 100  # as many are looked at for one that varies every flag


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
    return next((draw for draw in itertools.chain([first], draws) if _varies_every_flag(draw, grid)), first)


def _varies_every_flag(trials: Sequence[Settings], grid: Mapping[str, Sequence[str]]) -> bool:
    return all(len({trial[name] for trial in trials}) >= min(2, len(grid[name])) for name in grid)


def build_tasks(request: Request) -> dict[tuple[int, str], Task]:
    """The runs by trial (counted from 1) and seed: all trials with the first seed, then with the next.

    Raises:
      FlagError: settings that `launch.train` would refuse.
    """
    rounds = () if request.rounds is None else (f"--rounds={request.rounds}",)
    request.experiment.resolve(rounds)  # what is wrong from here on is wrong in --search
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
