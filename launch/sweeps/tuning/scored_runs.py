"""Runs that are all known beforehand: of trials from a grid or that lie evenly, and those that score the best anew.

Needs no extra.
"""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from launch.console.progress import say
from launch.console.shown_text import format_count
from launch.runs.columns import CONFIG_FILE
from launch.runs.run_records import read_rows
from launch.settings.flags import read_flags_of_run
from launch.settings.run_config import is_algorithm_spelling
from launch.sweeps.pool import Engine, run_tasks
from launch.sweeps.tasks import Task
from launch.sweeps.tuning.answer import say_trial
from launch.sweeps.tuning.even_points import iterate_even_points
from launch.sweeps.tuning.request import GRID, Request
from launch.sweeps.tuning.search_space import (
    Settings,
    check_space,
    compute_grid_size,
    find_own_point,
    find_start,
    holds,
    read_values,
)
from launch.sweeps.tuning.trials import Outcome, Scores, State, build_task, name_seeds, rank, read_score, write_trials

# Of the trials: the same request draws the same ones.
DRAW_SEED = 0

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
    keys, num_runs = {task.run_dir: key for key, task in tasks.items()}, Counter(number for number, _ in tasks)

    def collect(task: Task) -> float | None:
        number, seed = keys[task.run_dir]
        score = read_score(task, request.objective)
        if score is not None:
            scores.setdefault(number, {})[seed] = score
        return score

    def collect_one(task: Task) -> None:
        score, number = collect(task), keys[task.run_dir][0]
        keep(scores)
        if score is not None and len(scores[number]) == num_runs[number]:
            num_done = sum(len(found) == num_runs[each] for each, found in scores.items())
            say_trial(task.label, scores[number], num_done, len(num_runs))

    for task in tasks.values():
        collect(task)
    keep(scores)
    every = list(tasks.values())
    return run_tasks(every, open_engine(every, request.jobs), collect_one, is_brief=True)


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
    say(f"confirm  the best {format_count(len(best), 'trial')} on {name_seeds(request.confirm_seeds)}")
    return score_runs(tasks, request, open_engine, keep)


def draw_trials(grid: Mapping[str, Sequence[str]], number: int) -> tuple[Settings, ...]:
    """Different points of the grid, drawn at random; all of them if it has no more than `number`.

    The first are the same whatever the number, so that a search with more trials goes on. The second differs from the
    first in every flag that has several values, or else few trials might leave one at the same value.
    """
    return tuple(itertools.islice(_iterate_points(grid), number))


def _iterate_points(grid: Mapping[str, Sequence[str]]) -> Iterator[Settings]:
    points = _shuffle_points(grid)
    yield (first := next(points))
    passed_over = []
    for point in points:
        if all(point[name] != first[name] for name, values in grid.items() if len(values) > 1):
            yield point
            break
        passed_over.append(point)
    yield from itertools.chain(passed_over, points)


def _shuffle_points(grid: Mapping[str, Sequence[str]]) -> Iterator[Settings]:
    """All points, by the shuffle of Fisher and Yates, which needs no list of a grid that may be huge."""
    size, rng, moved = compute_grid_size(grid), random.Random(DRAW_SEED), {}
    for i in range(size):
        # Of `random`, this alone is promised to stay the same.
        j = i + int(rng.random() * (size - i))
        rest, point = moved.pop(j, j), {}
        if j != i:
            moved[j] = moved.pop(i, i)
        for name, values in grid.items():
            rest, place = divmod(rest, len(values))
            point[name] = values[place]
        yield point


def list_trials(request: Request) -> list[tuple[int, Settings]]:
    """The trials by number: those that are in the folder or the table already, then further ones as they are drawn.

    So what an earlier version made, which drew others, keeps its trials. A number that a trial outside of this space
    has is left out. The settings that were given are, without an experiment, trial 0, unless a grid holds them; of
    ranges, which would hardly ever meet them, they are the first point.
    """
    known, taken = _read_known_trials(request)
    own = find_own_point(request.space, request.experiment.resolve(request.arguments))
    if request.sampler == GRID:
        points = _iterate_points(request.space)
    else:
        points = itertools.chain([own] if own else [], iterate_even_points(request.space))
    trials = dict(itertools.islice(known.items(), request.num_trials))
    free = (number for number in itertools.count(1) if number not in taken)
    for point in points:
        if len(trials) >= request.num_trials:
            break
        if point not in trials.values():
            trials[next(free)] = point
    if request.is_plain and own is None:
        trials[0] = {}
    return sorted(trials.items())


def _read_known_trials(request: Request) -> tuple[dict[int, Settings], set[int]]:
    """The trials of the folder and of the table that are points of the space, by number; and the numbers in use."""
    known: dict[int, Settings] = {}
    taken: set[int] = set()
    for path in request.folder.glob(f"trial_*/seed_*/{CONFIG_FILE}"):
        number, flags = path.parts[-3].removeprefix("trial_"), read_flags_of_run(path.parent)
        if number.isdecimal() and flags and is_algorithm_spelling(flags.get("algo")):
            taken.add(int(number))
            if point := find_start(request.space, read_values(request.space, flags)):
                known[int(number)] = point
    # A paper's kept table lies without its runs.
    for row in read_rows(request.output) if request.output.is_file() else ():
        point, number = {name: row.get(name, "") for name in request.space}, row.get("trial", "")
        is_point = all(holds(request.space[name], value) for name, value in point.items())
        if is_point and number.isdecimal() and int(number) not in taken and point not in known.values():
            known[int(number)] = point
    return dict(sorted(known.items())), taken | known.keys()


def build_tasks(request: Request) -> dict[tuple[int, str], Task]:
    """The runs by trial and seed: all seeds of the first trial, then of the next.

    Raises:
      FlagError: settings that `launch.train` would refuse.
    """
    # What is wrong from here on is wrong in --search.
    config = request.experiment.resolve(request.arguments)
    if request.sampler != GRID:
        check_space(request.space, config.algo)
    trials = list_trials(request)
    return {
        (number, seed): build_task(request, number, trial, seed) for number, trial in trials for seed in request.seeds
    }


def run_grid_search(request: Request, open_engine: OpenEngine) -> tuple[list[Outcome], list[str]]:
    """Trains what is not finished. Returns the trials and a line for each run that failed."""
    # Before the first run: the folder, by which they are chosen, fills then.
    tasks, trials = build_tasks(request), list_trials(request)
    outcomes: list[Outcome] = []

    def keep(scores: ScoresOfTrials) -> None:
        outcomes.clear()
        for number, settings in trials:
            found = scores.get(number, {})
            state = State.COMPLETE if len(found) == len(request.seeds) else State.OPEN
            outcomes.append(Outcome(number, settings, state, found))
        write_trials(request, outcomes)

    failures = score_runs(tasks, request, open_engine, keep)
    return outcomes, failures
