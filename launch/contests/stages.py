"""The stages of a contest: FedAvg's speed, the plan, two rungs of trials, fresh seeds. Imports no TensorFlow.

Two things decide: results, which are the same again, and measured time, which never is. So whatever time decides is a
line of the journal before it acts: the plan, a run that is not started or stopped, one more seed, the end.
"""

import itertools
import statistics
from collections.abc import Callable, Collection, Iterable, Sequence

from launch.console.progress import format_duration, say
from launch.console.shown_text import format_count
from launch.contests.contest_runs import Builder
from launch.contests.journal import CALIBRATION, CHOSEN, END, FRESH, KEPT, NO_TRIAL, RUNG_0, RUNG_1, SEED, Journal, Key
from launch.contests.methods import REFERENCE, Method
from launch.contests.outcome import Outcome
from launch.contests.plan import (
    CALIBRATION_ROUNDS,
    FIRST_TRIAL_SEED,
    NO_LIMIT_S,
    PLANNED_SHARE,
    Pace,
    Plan,
    Planned,
    describe_plan,
    estimate_makespan,
    estimate_stages,
    make_plan,
)
from launch.contests.results import TIME_IS_OVER, Results
from launch.contests.spending import Spending
from launch.contests.stage_runner import StageRunner
from launch.pages.comparison.seed_statistics import LEAST_SEEDS
from launch.runs.errors import RunStopped
from launch.settings.errors import FlagError

# Methods that go to fresh seeds by their trials, if the time allows more than was planned.
MOST_FINALISTS = 6
# Of a run beside its rounds, where it was interrupted and so was not measured as a whole.
_UNKNOWN_OVERHEAD_S = 10.0
# A plan is cut where time is short, but one that is so many times too long is none.
_MOST_TOO_LONG = 1.5
# Trial seeds on which FedAvg is measured before there is a plan, if as many runs go on at a time.
_MOST_CALIBRATIONS = 2
# Of the time, which the first of these may take for as many others to follow. The first ones read data and libraries
# from a disk that later runs find in memory, and would make the plan smaller or larger by how long ago that was.
_WARM_UP = 0.03
# Of the runs of all methods for one of FedAvg whose graphs an earlier one has built: they build graphs of their own.
_OVERHEAD_OF_OTHERS = 1.4


class Stages:
    """Goes from stage to stage.

    Args:
      methods: all, the most important first.
      always: names of those that go to fresh seeds in any case.
      journal, builder, spending, results, runner: of the contest.
      total_s: real seconds that it may take.
      reserved_s: real seconds that whoever asked takes afterwards.
      slots: runs at a time.
    """

    def __init__(
        self,
        methods: Sequence[Method],
        always: Collection[str],
        journal: Journal,
        builder: Builder,
        spending: Spending,
        results: Results,
        runner: StageRunner,
        total_s: float,
        slots: int,
        reserved_s: float = 0.0,
    ):
        self._methods, self._always = {method.name: method for method in methods}, {*always, REFERENCE}
        self._journal, self._builder, self._spending = journal, builder, spending
        self._results, self._runner, self._total_s, self._slots = results, runner, total_s, slots
        self._reserved_s = reserved_s

    def plan(self, rounds: int | None, is_alone: bool = False, given: Plan | None = None) -> Planned:
        """The plan, for which FedAvg's speed is measured if it is not known.

        Args:
          rounds: of FedAvg; None: what the time allows.
          is_alone: whether nothing follows, so that it is said also of a contest that has ended.
          given: what is done, whatever time it takes; None: what the time allows.

        Raises:
          RunStopped: FedAvg cannot be run, or the time is too short.
          FlagError: the flags of its runs are refused.
        """
        all_s = None
        if self._journal.planned is None:
            start_s = self._journal.seconds
            say(f"measuring  {CALIBRATION_ROUNDS} rounds of {self._methods[REFERENCE].title}, to plan the time")
            self._calibrate(first := self._list_calibration_seeds(0))
            if self._are_cheap(first):
                self._calibrate(self._list_calibration_seeds(1))
            say(f"         took {format_duration(self._journal.seconds - start_s)}")
            self._make_plan(rounds, given)
            all_s = self._total_s + self._reserved_s
        planned, spent_s = self._journal.planned, self._journal.seconds + self._reserved_s
        if self._journal.end is not None and not is_alone:
            say("done     before; this is the answer again")
            return planned
        methods, limit, limits_alone = list(self._methods.values()), self._spending.words, self._spending.limits_alone
        for line in describe_plan(planned, methods, self._always, spent_s, all_s, limit, limits_alone):
            say(line)
        return planned

    def _list_calibration_seeds(self, turn: int) -> range:
        number = min(self._slots, _MOST_CALIBRATIONS)
        return range(FIRST_TRIAL_SEED + turn * number, FIRST_TRIAL_SEED + (turn + 1) * number)

    def _are_cheap(self, seeds: Iterable[int]) -> bool:
        ended = [self._journal.runs.get(Key(CALIBRATION, REFERENCE, 0, seed)) for seed in seeds]
        return all(each and each.took_s is not None and each.took_s <= _WARM_UP * self._total_s for each in ended)

    def _calibrate(self, seeds: Sequence[int]) -> None:
        keys = [Key(CALIBRATION, REFERENCE, 0, seed) for seed in seeds]
        self._runner.run(keys, self._total_s)
        title = self._methods[REFERENCE].title
        if self._runner.failure:
            raise RunStopped(
                f"error: {title} cannot be run, beside which all others are seen: {self._runner.failure}", 1
            )
        first = self._journal.runs.get(keys[0])
        if first is not None and first.failure:
            raise RunStopped(f"error: {title} cannot be scored: {first.failure}", 1)
        if first is None and self._journal.planned is None:
            raise RunStopped(
                f"error: {format_duration(self._total_s)} are too short: {CALIBRATION_ROUNDS} rounds of {title} take "
                "longer; give more time",
                1,
            )

    def _make_plan(self, rounds: int | None, given: Plan | None) -> None:
        points, refused = {}, {}
        for name, method in self._methods.items():
            try:
                points[name] = self._builder.choose_points(method, 1)
            except FlagError as error:
                refused[name] = str(error)
        usable = [method for name, method in self._methods.items() if name not in refused]
        now_s = self._journal.seconds
        pace = self._measure_pace()
        if given:
            names = tuple(method.name for method in usable)
            planned = Planned(given, names, {}, estimate_stages(given, usable, self._always, pace), pace)
        else:
            planned = make_plan(usable, self._always, self._total_s - now_s, pace, rounds)
            self._check_time(planned, now_s)
        planned = planned._replace(left_out={**refused, **planned.left_out})
        points = {name: self._builder.choose_points(self._methods[name], planned.plan.trials) for name in planned.names}
        # Each stage has its share of the time, also where that is too short for all or longer than it takes.
        shares = list(itertools.accumulate(planned.stages_s))
        until_s = tuple(now_s + (self._total_s - now_s) * share / shares[-1] for share in shares[:2])
        self._journal.add_plan(planned, points, until_s)

    def _check_time(self, planned: Planned, now_s: float) -> None:
        """Raises RunStopped if not even the smallest plan is near to what fits: it would tell nothing."""
        needed_s = sum(planned.stages_s)
        if needed_s > _MOST_TOO_LONG * (self._total_s - now_s):
            raise RunStopped(
                f"error: {format_duration(self._total_s)} are too short for anything to be told; here about "
                f"{format_duration(now_s + needed_s / PLANNED_SHARE)} are needed; give more time",
                1,
            )

    def _measure_pace(self) -> Pace:
        runs = {key: each for key, each in self._journal.runs.items() if key.stage == CALIBRATION and not each.failure}
        warm = {key: each for key, each in runs.items() if key.seed in self._list_calibration_seeds(1)}
        overheads, rounds_s = [], []
        for key, ended in (warm or runs).items():
            round_s = self._builder.read_round_s(key)
            if round_s is None:
                round_s = (ended.took_s or 0.0) / CALIBRATION_ROUNDS
            rounds_s.append(round_s)
            if ended.took_s is not None:
                overheads.append(max(ended.took_s - round_s * CALIBRATION_ROUNDS, 0.0))
        overhead_s = statistics.fmean(overheads) if overheads else _UNKNOWN_OVERHEAD_S
        overhead_s *= _OVERHEAD_OF_OTHERS if warm else 1
        return Pace(overhead_s, statistics.fmean(rounds_s), self._slots)

    def run(self, choose_more: Callable[[Outcome], Collection[str]]) -> Outcome:
        """All that is left after the plan."""
        plan, journal = self._journal.planned.plan, self._journal
        self._calibrate(plan.trial_seeds)
        self._run_first_rung()
        if journal.kept is None:
            journal.add(KEPT, kept=self._results.choose_kept())
        self._run_second_rung()
        if journal.chosen is None:
            self._choose(plan)
        plan = journal.planned.plan
        self._run_stage("fresh seeds", self._list_fresh(plan.seeds, journal.finalists), self._total_s)
        self._run_further(choose_more)
        if journal.end is None:
            journal.add(END, is_cut=self._results.is_cut())
        return self.build_outcome()

    def _choose(self, plan: Plan) -> None:
        """Chooses as many finalists as there is time for by now, each on whole seeds."""
        sizes = [(plan.seeds, most) for most in range(max(plan.finalists, MOST_FINALISTS), plan.finalists - 1, -1)]
        sizes += [(plan.seeds[:LEAST_SEEDS], most) for most in range(plan.finalists, 0, -1)]
        left_s = PLANNED_SHARE * (self._total_s - self._journal.seconds)
        for seeds, most in sizes:
            chosen, finalists, out = self._results.choose(most)
            keys = self._list_fresh(seeds, finalists)
            seconds = [self._spending.estimate_s(key, plan.rounds) for key in keys]
            if estimate_makespan(seconds, self._slots) <= left_s:
                break
        self._journal.add(CHOSEN, chosen=chosen, finalists=finalists, out=out, seeds=seeds)

    def build_outcome(self) -> Outcome:
        """The outcome as far as it is known."""
        return self._results.build_outcome(self._spending, self._builder)

    def _run_first_rung(self) -> None:
        plan, points = self._journal.planned.plan, self._journal.points
        # The first trials of all methods, then the second ones: where time is short all have as many.
        keys = [
            Key(RUNG_0, name, number, plan.trial_seeds[0])
            for number in range(plan.trials)
            for name in self._results.names
            if number < len(points[name])
        ]
        self._run_stage("first trials", keys, self._journal.until_s[0])

    def _run_second_rung(self) -> None:
        plan, kept = self._journal.planned.plan, self._journal.kept
        keys = [
            Key(RUNG_1, name, kept[name][rank], seed)
            for rank in range(plan.kept)
            for name in self._results.sort_by_first_rung()
            if rank < len(kept[name])
            for seed in plan.trial_seeds
        ]
        self._run_stage("second trials", keys, self._journal.until_s[1])

    def _list_fresh(self, seeds: Sequence[int], names: Sequence[str]) -> list[Key]:
        return [Key(FRESH, name, NO_TRIAL, seed) for seed in seeds for name in names]

    def _run_further(self, choose_more: Callable[[Outcome], Collection[str]]) -> None:
        plan, journal = self._journal.planned.plan, self._journal
        for seed in range(plan.seeds[-1] + 1, plan.seeds[0] + plan.most_seeds):
            if seed not in journal.further:
                is_over = any(key.stage == FRESH and why == TIME_IS_OVER for key, (why, _) in journal.stopped.items())
                if journal.end is not None or is_over:
                    return
                asked = set(choose_more(self.build_outcome()))
                # FedAvg says what the others may spend on this seed.
                names = [name for name in journal.finalists if name in asked or name == REFERENCE]
                if not asked.intersection(journal.finalists) or not self._has_time_for(seed, names):
                    return
                journal.add(SEED, seed=seed, methods=names)
            names = journal.further[seed]
            self._run_stage("one more seed", self._list_fresh([seed], names), self._total_s)

    def _has_time_for(self, seed: int, names: Sequence[str]) -> bool:
        rounds = self._journal.planned.plan.rounds
        seconds = [self._spending.estimate_s(key, rounds) for key in self._list_fresh([seed], names)]
        return self._journal.seconds + estimate_makespan(seconds, self._slots) <= self._total_s

    def _run_stage(self, what: str, keys: Sequence[Key], until_s: float) -> None:
        """Makes the runs of a stage, and says so if there is anything to do."""
        num_left = sum(not self._journal.is_over(key) for key in keys)
        if num_left:
            now_s = self._journal.seconds
            left = f", {format_duration(max(self._total_s - now_s, 0.0))} left" * (self._total_s < NO_LIMIT_S)
            say(f"stage    {what}: {format_count(num_left, 'run')}; {format_duration(now_s)} gone{left}")
        self._runner.run(keys, until_s)
