"""Runs that are all known beforehand: those of a grid's trials, and those that score the best trials anew."""

from collections.abc import Callable, Mapping, Sequence

from launch.progress import say
from launch.sweeps.pool import Engine, run_tasks
from launch.sweeps.tasks import Task
from launch.tuning.request import Request
from launch.tuning.trials import Outcome, Scores, build_task, name_seeds, rank, read_score

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
