"""A contest: methods are tried on a problem by successive halving, and the few that are left run on fresh seeds.

Trials are scored on validation examples alone, on seeds of their own. Every run is an ordinary run folder:
`<folder>/trials/<method>/trial_<n>/seed_<s>`, and on fresh seeds `<folder>/seeds/<method>/seed_<s>`, which
`launch.compare --runs=<folder>/seeds` opens. Whatever was decided stands in `<folder>/contest.jsonl`, so that a contest
that was killed goes on as it began. Imports no TensorFlow.
"""

import contextlib
import functools
import pathlib
import re
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from launch.contests.contest_runs import Builder
from launch.contests.journal import FRESH, JOURNAL, NO_TRIAL, TIME, Journal, Key
from launch.contests.kept_engine import KeptEngine
from launch.contests.methods import REFERENCE, ROLES, Method
from launch.contests.outcome import Entered, Outcome, TrialResult
from launch.contests.plan import Plan
from launch.contests.problem import Limits, Problem
from launch.contests.results import Results
from launch.contests.spending import BYTES, VIRTUAL_S, Spending
from launch.contests.stage_runner import StageRunner
from launch.contests.stages import Stages
from launch.settings.errors import FlagError
from launch.sweeps.held_journal import hold_journal
from launch.sweeps.jobs import open_engine
from launch.sweeps.pool import Engine
from launch.sweeps.tasks import Task
from launch.sweeps.tuning.search_space import format_search, format_settings

__all__ = ["BYTES", "VIRTUAL_S", "ChooseMore", "Entered", "Outcome", "TrialResult", "run_contest"]

# Of its time, after which a run is killed that was asked to end; and seconds at most.
_PATIENCE, _MOST_PATIENCE_S = 0.03, 30.0
# For an engine that is opened before it is known how many there will be.
_MANY_RUNS = 64
_SNAKE_CASE = re.compile("[a-z][a-z0-9]*(_[a-z0-9]+)*")

OpenEngine = Callable[[Sequence[Task], int | None], Engine]
# The runs' own output would bury what is said of the contest.
OPEN_ENGINE: OpenEngine = functools.partial(open_engine, keeps_logs=True)
# Which methods get one more fresh seed, by their names; none: it is decided. Asked again after each seed, and again
# with the same outcome if the contest was killed, so it must answer by that alone.
ChooseMore = Callable[[Outcome], Collection[str]]


def run_contest(
    problem: Problem,
    methods: Sequence[Method],
    folder: pathlib.Path,
    *,
    seconds: float,
    jobs: int | None = None,
    always: Collection[str] = (),
    rounds: int | None = None,
    plan: Plan | None = None,
    choose_more: ChooseMore = lambda outcome: (),
    equal: Collection[str] = (VIRTUAL_S,),
    limits_alone: bool = False,
    spent_s: float = 0.0,
    reserved_s: float = 0.0,
    plan_only: bool = False,
    clock: Callable[[], float] = time.monotonic,
    open_engine: OpenEngine = OPEN_ENGINE,
) -> Outcome:
    """Runs a contest, or what is left of it, and says how it goes.

    Args:
      problem: what methods are tried on.
      methods: the most important first; a time that is short leaves out the last ones. One is "fedavg".
      folder: of this contest alone; what an earlier command left there goes on.
      seconds: that all commands together may take, of real time; more than before reopens a contest that has ended.
      jobs: runs at a time; None: what memory and cores allow.
      always: names of methods that go to fresh seeds whatever their trials gave; the plan leaves none of them out.
      rounds: of FedAvg; None: what the time allows.
      plan: what is done, whatever time it takes; None: as much as the time allows, see `make_plan`.
      choose_more: which methods get a further fresh seed.
      equal: what federated methods may spend as much of as FedAvg on the same seed: `VIRTUAL_S`, `BYTES` or both.
      limits_alone: whether clients that learn alone may spend no more time than FedAvg, where that is equal.
      spent_s: seconds that this command took before, which count in a new contest, too.
      reserved_s: that it takes afterwards, beside `seconds`; they count in what is said of the whole time.
      plan_only: whether nothing is run but what the plan needs, and the outcome is as far as it is known.
      clock: seconds from any start on.
      open_engine: makes the runs.

    Raises:
      FlagError: FedAvg's own flags, or those of all, are refused.
      RunFolderError: the folder is that of another contest or in use, or the data have changed since.
      ValueError: methods cannot be told apart, or something is named that there is not.
      RunStopped: FedAvg cannot be run at all, or the time is too short for anything to be told.
      KeyboardInterrupt: we were asked to stop; the same call goes on.
    """
    _check(methods, always, equal)
    request = _describe_request(problem, methods, always, rounds, equal)
    request |= {"plan": plan._asdict()} if plan else {}
    request |= {"limits_alone": True} if limits_alone else {}
    with hold_journal(folder, JOURNAL, "contest"), contextlib.ExitStack() as stack:
        journal = Journal(folder / JOURNAL, request, seconds, clock, spent_s)
        builder, spending = Builder(problem, methods, folder), Spending(journal, methods, equal, limits_alone)
        results = Results(problem, methods, always, journal)
        # The flags of all runs are looked at here.
        (calibrated,) = builder.choose_points(next(each for each in methods if each.name == REFERENCE), 1)
        engine = open_engine(_list_like_all(builder, methods), jobs)
        stack.callback(engine.close)
        kept = KeptEngine(engine, clock, min(_PATIENCE * seconds, _MOST_PATIENCE_S))
        runner = StageRunner(problem, journal, builder, spending, results, kept, seconds, calibrated, methods)
        _check_same(journal, builder, runner)
        stages = Stages(methods, always, journal, builder, spending, results, runner, seconds, kept.slots, reserved_s)
        try:
            stages.plan(rounds, plan_only, plan)
            return stages.build_outcome() if plan_only else stages.run(choose_more)
        finally:
            # However it ends, what it took counts. A finished one takes nothing any more.
            if journal.end is None:
                journal.add(TIME)


def _check(methods: Sequence[Method], always: Collection[str], equal: Collection[str]) -> None:
    """Raises ValueError, no user's mistake, unless the methods can be told apart and what is named is there."""
    names = [method.name for method in methods]
    wrong = [name for name in names if names.count(name) > 1 or not _SNAKE_CASE.fullmatch(name)]
    wrong += [method.name for method in methods if method.role not in ROLES]
    wrong += [name for name in (REFERENCE, *always) if name not in names]
    wrong += [name for name in equal if name not in (VIRTUAL_S, BYTES)]
    if wrong:
        raise ValueError(
            f"{wrong[0]}: expected names in snake case, each once, roles and limits of those that there are"
        )


def _describe_request(
    problem: Problem,
    methods: Sequence[Method],
    always: Collection[str],
    rounds: int | None,
    equal: Collection[str],
) -> dict[str, Any]:
    """What makes it this contest and no other, as JSON has it."""
    described = {
        method.name: [
            method.algo,
            method.role,
            *method.fixed,
            format_search(method.space),
            *format_settings(method.start),
            *([method.rounds] if method.rounds else []),
        ]
        for method in methods
    }
    return {
        "problem": [problem.name, *problem.arguments, problem.objective],
        "rounds": rounds,
        "always": sorted(always),
        "equal": sorted(equal),
        "methods": list(described),
        **described,
    }


def _list_like_all(builder: Builder, methods: Sequence[Method]) -> list[Task]:
    """Runs that are like those to come, by which an engine sees how many fit into memory."""
    tasks = []
    for method in methods:
        # What is refused here is refused again when its turn comes, and is left out then.
        with contextlib.suppress(FlagError):
            tasks.append(builder.build(Key(FRESH, method.name, NO_TRIAL, 10**9), {}, Limits(20)))
    return tasks * -(-_MANY_RUNS // max(len(tasks), 1))


def _check_same(journal: Journal, builder: Builder, runner: StageRunner) -> None:
    """Raises RunFolderError if runs of a method are of other data or code than there are now, or are gone."""
    first = {}
    for key, ended in journal.runs.items():
        if not ended.failure:
            first.setdefault(key.method, key)
    for key in first.values():
        builder.check_same(key, runner.build(key), journal.runs)
