"""Runs what a stage of a contest has, as far as time allows, and notes in the journal what became of each run.

Imports no TensorFlow.
"""

import pathlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from launch.console.progress import say
from launch.console.shown_text import escape_hidden
from launch.contests.contest_runs import Builder, read_reason
from launch.contests.journal import (
    CALIBRATION,
    FRESH,
    NO_TRIAL,
    RUNG_0,
    RUNG_1,
    SKIP,
    STOP,
    WHOLE,
    Ended,
    Journal,
    Key,
)
from launch.contests.kept_engine import KeptEngine
from launch.contests.methods import REFERENCE, Method
from launch.contests.plan import FIRST_TRIAL_SEED, LONGEST_LINE
from launch.contests.problem import Problem
from launch.contests.results import NO_TIME, TIME_IS_OVER, Results
from launch.contests.spending import BYTES, Spending
from launch.pages.report.words import NBSP, show_share
from launch.runs.errors import FIRST_ROUND_TAKES, RunFolderError
from launch.runs.task_columns import PERCENT, format_value
from launch.settings.errors import FlagError
from launch.sweeps.pool import LATER, Later, run_tasks
from launch.sweeps.tasks import Task, is_finished
from launch.sweeps.tuning.search_space import Settings

# Of all the time, by which a run of the rungs may pass the end of its stage.
GRACE = 0.05
# A run is stopped when it has taken so many times what was estimated, and so much of its stage.
MOST_OF_ESTIMATE, MOST_OF_STAGE = 3, 0.25
STAGE_IS_OVER, TOO_SLOW = "the time of the trials is over", "it took far too long"
UNFINISHED = "it ended without an error, but before its end"
_LOG = "; its output: "
FIRST_TOO_SLOW, OTHER_SEED_FAILED = "a trial of it took far too long", "its run with another seed failed"


class _Going(NamedTuple):
    """A run that was handed to the engine.

    Attributes:
      key: which.
      estimate_s: its real seconds.
      rounds: of FedAvg in whose place it runs now; None if that is not known, since it was interrupted before.
    """

    key: Key
    estimate_s: float
    rounds: float | None


class StageRunner:
    """Runs the stages.

    Attributes:
      failure: why the first run failed, by which FedAvg's speed is measured; "" if it did not.

    Args:
      problem: of the contest.
      journal: of the contest.
      builder: of its runs.
      spending: their limits and estimates.
      results: what is known of trials.
      engine: makes the runs.
      total_s: real seconds at which everything ends.
      calibrated: FedAvg's settings while its speed is measured.
      methods: all.
    """

    def __init__(
        self,
        problem: Problem,
        journal: Journal,
        builder: Builder,
        spending: Spending,
        results: Results,
        engine: KeptEngine,
        total_s: float,
        calibrated: Settings,
        methods: Sequence[Method],
    ):
        self._problem, self._journal, self._builder = problem, journal, builder
        self._spending, self._results, self._engine, self._total_s = spending, results, engine, total_s
        self._calibrated = calibrated
        self._titles = {method.name: escape_hidden(method.title) for method in methods}
        self._keys: Sequence[Key] = ()
        # Methods of which was said that they cannot keep to FedAvg's time.
        self._left_out: set[str] = set()
        self._going: dict[pathlib.Path, _Going] = {}
        # What failed and is no fact of the contest.
        self._unnoted: set[Key] = set()
        self._stage_s = self._until_s = 0.0
        self.failure = ""

    def run(self, keys: Sequence[Key], until_s: float) -> None:
        """Makes those that are not over, in this order as far as it can be; at the end all are over.

        Args:
          keys: of one stage.
          until_s: seconds of the contest, after which no run of them should end.
        """
        # A plan may have been made for more time than this command has.
        self._keys, until_s = keys, min(until_s, self._total_s)
        while left := [key for key in keys if not self._journal.is_over(key)]:
            self._stage_s, self._until_s = max(until_s - self._journal.seconds, 0.0), until_s
            rounds, num_whole = [self._spending.get_rounds(key) for key in left], len(self._journal.whole)
            tasks = self._iterate(left)
            run_tasks(tasks, self._engine, self._collect, self._find_end, rounds, True, self._note_failure, True)
            # Those whose limits were too tight are made once more.
            if self.failure or len(self._journal.whole) == num_whole:
                return

    def build(self, key: Key) -> Task:
        """A run with its settings and limits. Raises FlagError if it is refused."""
        return self._builder.build(key, self._get_settings(key), self._spending.limit(key))

    def _iterate(self, keys: Sequence[Key]) -> Iterator[Task | Later | None]:
        left = list(keys)
        while left:
            key = next((each for each in left if self._spending.is_known(each)), None)
            if key is None:
                # All that are left depend on a run of FedAvg that goes on.
                yield LATER
                continue
            left.remove(key)
            yield self._prepare(key)

    def _prepare(self, key: Key) -> Task | None:
        """The run, if anything is left of it to do, and time for it."""
        if self._journal.is_over(key):
            return None
        if why := self._find_hindrance(key):
            self._journal.add(SKIP, key=key, why=why, is_cut=False)
            return None
        try:
            task = self.build(key)
            is_over = is_finished(task)
        except (FlagError, RunFolderError) as error:
            # Data that have changed were found before; here a run cannot be made longer, as a private one.
            if key.stage == CALIBRATION or (isinstance(error, RunFolderError) and key.stage != RUNG_1):
                raise
            self._journal.add_run(key, Ended(failure=str(error)))
            return None
        self._unnoted.discard(key)
        rounds, is_whole = self._count_left(key)
        estimate_s = self._spending.estimate_s(key, rounds)
        self._going[task.run_dir] = _Going(key, estimate_s, rounds if is_whole and not is_over else None)
        if is_over:
            # The command was killed before it could note that.
            self._collect(task)
            return None
        if self._journal.seconds + estimate_s > self._until_s:
            self._journal.add(SKIP, key=key, why=NO_TIME, is_cut=True)
            return None
        return task

    def _get_settings(self, key: Key) -> Settings:
        if key.stage == CALIBRATION:
            return self._calibrated
        number = self._journal.chosen[key.method] if key.trial == NO_TRIAL else key.trial
        return self._journal.points[key.method][number]

    def _find_hindrance(self, key: Key) -> str:
        if key.stage not in (RUNG_0, RUNG_1):
            return ""
        if self._results.find_failure(key.method, key.trial):
            return OTHER_SEED_FAILED
        is_slow = any(other[:2] == key[:2] and why == TOO_SLOW for other, (why, _) in self._journal.stopped.items())
        has_any = any(key[:2] == other[:2] and not ended.failure for other, ended in self._journal.runs.items())
        return FIRST_TOO_SLOW if is_slow and not has_any else ""

    def _count_left(self, key: Key) -> tuple[int, bool]:
        """(FedAvg's rounds in whose place a run still has to run, whether that is known)."""
        wanted, done = self._spending.get_rounds(key), self._builder.count_rounds(key)
        if not done:
            return wanted, True
        for stage in (RUNG_0, CALIBRATION):
            before = key._replace(stage=stage)
            ended = self._journal.runs.get(before)
            if before != key and ended is not None and ended.num_rounds == done:
                return max(wanted - self._spending.get_rounds(before), 0), True
        return wanted, False

    def _find_end(self, task: Task) -> str:
        """Why a run that goes on should end, which is in the journal then; "" if it should not."""
        going, now_s = self._going[task.run_dir], self._journal.seconds
        took_s = self._engine.get_seconds(task)
        grace_s = GRACE * self._total_s if going.key.stage in (RUNG_0, RUNG_1) else 0.0
        if now_s >= self._total_s:
            why = TIME_IS_OVER
        elif now_s >= self._until_s + grace_s:
            why = STAGE_IS_OVER
        elif going.key.stage != CALIBRATION and took_s > max(
            MOST_OF_ESTIMATE * going.estimate_s, MOST_OF_STAGE * self._stage_s
        ):
            why = TOO_SLOW
        else:
            return ""
        if not self._journal.is_over(going.key):
            self._journal.add(STOP, key=going.key, why=why, took_s=round(took_s, 3))
        return why

    def _collect(self, task: Task) -> None:
        """Notes what a run gave that has ended, if nothing is known of it yet."""
        key, _, rounds = self._going[task.run_dir]
        if key in self._journal.stopped and key not in self._journal.runs:
            self._say(key, f"stopped, {self._journal.stopped[key][0]}")
        if self._journal.is_over(key) or key in self._unnoted:
            return
        if not is_finished(task):
            # Others may wait for what it takes, so that something must be known of it.
            self._journal.add_run(key, Ended(failure=UNFINISHED))
            self._say(key, UNFINISHED)
            return
        ended = self._builder.read(task, key)
        if rounds is not None:
            ended = ended._replace(took_s=round(self._engine.get_seconds(task), 3), rounds=rounds)
        self._journal.add_run(key, ended)
        if key.stage != CALIBRATION:
            self._say(key, ended.failure or self._show(ended.score))

    def _say(self, key: Key, what: str) -> None:
        """What became of a run, in a line, by how many of its stage are over."""
        num_over = sum(map(self._journal.is_over, self._keys))
        which = f", setting {key.trial + 1}" if key.stage in (RUNG_0, RUNG_1) else ""
        has_seeds = len({each.seed for each in self._keys}) > 1
        which += f", seed {key.seed}" if has_seeds or key.stage == FRESH else ""
        line = f"run {num_over}/{len(self._keys)}  {self._titles[key.method]}{which}: {escape_hidden(what)}"
        say(line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 3]}...")

    def _show(self, score: float | None) -> str:
        if score is None:
            return "done"
        metric = self._problem.task.metric
        if metric.unit == PERCENT:
            return show_share(score).replace(NBSP, " ")
        return f"{format_value(score)} {metric.unit}".rstrip()

    def _note_failure(self, task: Task, reason: str) -> None:
        key = self._going[task.run_dir].key
        if self._journal.is_over(key):
            return
        if key.stage == CALIBRATION and key.seed == FIRST_TRIAL_SEED:
            # Not in the journal: it may be what only this command met.
            self.failure = f"{task.name}: {reason}"
            self._unnoted.add(key)
        elif key.stage == RUNG_0 and FIRST_ROUND_TAKES in reason and self._is_short(key, task):
            self._unnoted.add(key)
            # Of two that went on at a time the other has noted it.
            if key.method not in self._journal.whole:
                self._journal.add(WHOLE, method=key.method)
        elif FIRST_ROUND_TAKES in reason:
            cost = "sends more bytes" if f"--{BYTES}" in reason else "takes more device time"
            why = f"its first round {cost} than {self._titles[REFERENCE]}'s whole training"
            self._journal.add_run(key, Ended(failure=why))
            if key.method not in self._left_out:
                say(f"left out {self._titles[key.method]}: {why}")
            self._left_out.add(key.method)
        else:
            self._journal.add_run(key, Ended(failure=read_reason(reason)))
            self._say(key, f"failed: {read_reason(reason)}")
            if log := reason.partition(_LOG)[2]:
                say(f"{'':9}its output: {log}")

    def _is_short(self, key: Key, task: Task) -> bool:
        """Whether a run has tighter limits than a whole one."""
        return task.config.rounds < self._spending.limit(key._replace(stage=RUNG_1)).rounds
