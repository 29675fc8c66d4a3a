"""What the journal's scores say: which trials go on, which is chosen, who is a finalist, and the outcome.

Scores decide here and nothing else, so that the same scores give the same answer again. Imports no TensorFlow.
"""

import statistics
from collections.abc import Collection, Mapping, Sequence

from launch.contests.contest_runs import Builder
from launch.contests.journal import FRESH, RUNG_0, RUNG_1, Journal, Key
from launch.contests.methods import REFERENCE, Method
from launch.contests.outcome import Entered, Outcome, TrialResult
from launch.contests.problem import Problem
from launch.contests.spending import Spending
from launch.runs.task_columns import format_value

NO_TIME, TIME_IS_OVER = "there was no time for it", "the time is over"
Scores = Mapping[int, float]  # by seed


class Results:
    """Answers by the journal.

    Args:
      problem: of the contest.
      methods: all, in their order.
      always: names of those that go to fresh seeds in any case.
      journal: of the contest.
    """

    def __init__(self, problem: Problem, methods: Sequence[Method], always: Collection[str], journal: Journal):
        self._problem, self._methods, self._journal = problem, methods, journal
        self._always, self._sign = {*always, REFERENCE}, problem.task.sign

    @property
    def names(self) -> list[str]:
        """The methods that the plan has, in their order."""
        return [method.name for method in self._methods if method.name in self._journal.planned.names]

    def get_scores(self, stage: str, name: str, number: int) -> dict[int, float]:
        """A trial's scores in a rung, by seed."""
        found = self._journal.runs.items()
        scores = {key.seed: ended.score for key, ended in found if key[:3] == (stage, name, number)}
        return {seed: score for seed, score in sorted(scores.items()) if score is not None}

    def find_failure(self, name: str, number: int) -> str:
        """Why a run of a trial has no score; "" if none failed."""
        keys = (key for key in self._journal.runs if key[1:3] == (name, number) and key.stage in (RUNG_0, RUNG_1))
        return next((why for key in keys if (why := self._journal.runs[key].failure)), "")

    def choose_kept(self) -> dict[str, list[int]]:
        """{method: its best trials after the first rung}, the best first; a method of `always` has one in any case."""
        kept = {}
        for name in self.names:
            scores = self._list_means(RUNG_0, name, range(len(self._journal.points[name])))
            kept[name] = self._rank(scores)[: self._journal.planned.plan.kept]
            if not kept[name] and name in self._always:
                kept[name] = [0]
        return kept

    def sort_by_first_rung(self) -> list[str]:
        """The methods in the order in which they go on: if time is short, the most promising have been run."""
        best = {name: self._list_means(RUNG_0, name, self._journal.kept[name]) for name in self.names}
        scored = {name: max(self._sign * score for score in scores.values()) for name, scores in best.items() if scores}
        promising = sorted(scored, key=lambda name: -scored[name])
        first = [name for name in self.names if name in self._always]
        return [*first, *(name for name in promising if name not in self._always)]

    def choose(self, most: int) -> tuple[dict[str, int], list[str], dict[str, str]]:
        """(the best trial of each method, names of those that go to fresh seeds, why the others do not).

        Args:
          most: how many go to fresh seeds beside those that always do.
        """
        kept, chosen, scores = self._journal.kept, {}, {}
        for name in self.names:
            by_trial = {number: self.get_scores(RUNG_1, name, number) for number in kept[name]}
            longest = max(map(len, by_trial.values()), default=0)
            # A mean over fewer seeds says less.
            means = {
                number: statistics.fmean(each.values()) for number, each in by_trial.items() if longest == len(each) > 0
            }
            if means:
                chosen[name] = self._rank(means)[0]
                scores[name] = by_trial[chosen[name]]
        others = [name for name in self.names if name not in self._always]
        if not any(name in scores for name in others):
            # The time was over before a whole run of any was: then the short ones say who is the best.
            for name in others:
                if short := self._list_means(RUNG_0, name, kept[name]):
                    chosen[name] = self._rank(short)[0]
                    scores[name] = self.get_scores(RUNG_0, name, chosen[name])
        for name in self._always.intersection(self.names):
            chosen.setdefault(name, kept[name][0])
        ranked = self._rank_methods({name: scores[name] for name in others if name in scores})
        finalists = [REFERENCE, *(name for name in self.names if name in self._always and name != REFERENCE)]
        out = {name: self._explain(name, scores.get(name), most) for name in others if name not in ranked[:most]}
        return chosen, [*finalists, *ranked[:most]], out

    def _rank_methods(self, scores: Mapping[str, Scores]) -> list[str]:
        """The methods, the best first, by the mean over the seeds that all of them have, or else over their own."""
        common = set.intersection(*(set(each) for each in scores.values())) if scores else set()
        return self._rank(
            {
                name: statistics.fmean([score for seed, score in each.items() if seed in common or not common])
                for name, each in scores.items()
            }
        )

    def _explain(self, name: str, scores: Scores | None, most: int) -> str:
        if scores:
            mean = format_value(statistics.fmean(scores.values()))
            best = "the best" if most == 1 else f"the best {most}"
            return f"not among {best} on validation examples ({self._problem.task.title} {mean})"
        numbers = range(len(self._journal.points[name]))
        failures = [why for number in numbers if (why := self.find_failure(name, number))]
        skipped = [why for key, (why, _) in self._journal.skipped.items() if key.method == name]
        stopped = [why for key, (why, _) in self._journal.stopped.items() if key.method == name]
        return (failures or stopped or skipped or [NO_TIME])[0]

    def _list_means(self, stage: str, name: str, numbers: Collection[int]) -> dict[int, float]:
        scores = {number: self.get_scores(stage, name, number) for number in numbers}
        return {number: statistics.fmean(each.values()) for number, each in scores.items() if each}

    def _rank(self, scores: Mapping) -> list:
        """The keys by their scores, the best first, of equals the earlier one."""
        return sorted(scores, key=lambda name: -self._sign * scores[name])

    def build_outcome(self, spending: Spending, builder: Builder) -> Outcome:
        """The outcome as far as it is known."""
        planned, journal = self._journal.planned, self._journal
        entered = [self._describe_method(method, builder) for method in self._methods]
        is_cut, seconds = journal.end or (self.is_cut(), journal.seconds)
        limits = {name: spending.summarize(name) for name in self.names}
        return Outcome(self._problem, planned.plan, limits, tuple(entered), seconds, is_cut)

    def is_cut(self) -> bool:
        """Whether the end of the minutes cut the plan; trials have a part of them, and further seeds are none of it."""
        further = set(self._journal.further)
        skipped = [key for key, (_, for_time) in self._journal.skipped.items() if for_time and key.stage == FRESH]
        stopped = [key for key, (why, _) in self._journal.stopped.items() if why == TIME_IS_OVER]
        return any(key.stage != FRESH or key.seed not in further for key in [*skipped, *stopped])

    def _describe_method(self, method: Method, builder: Builder) -> Entered:
        name, journal = method.name, self._journal
        if name not in journal.planned.names:
            return Entered(method, why_out=journal.planned.left_out.get(name, ""))
        trials = tuple(
            self._describe_trial(name, number, settings) for number, settings in enumerate(journal.points[name])
        )
        number = (journal.chosen or {}).get(name)
        chosen = None if number is None else journal.points[name][number]
        runs = {
            key.seed: builder.find_run_dir(key)
            for key, ended in sorted(journal.runs.items())
            if key.stage == FRESH and key.method == name and not ended.failure
        }
        return Entered(method, trials, chosen, journal.out.get(name, ""), runs)

    def _describe_trial(self, name: str, number: int, settings: Mapping[str, str]) -> TrialResult:
        scores = self.get_scores(RUNG_0, name, number), self.get_scores(RUNG_1, name, number)
        keys = [Key(RUNG_0, name, number, self._journal.planned.plan.trial_seeds[0])]
        keys += [Key(RUNG_1, name, number, seed) for seed in self._journal.planned.plan.trial_seeds]
        why = self.find_failure(name, number)
        ended = [each[key][0] for each in (self._journal.stopped, self._journal.skipped) for key in keys if key in each]
        kept = (self._journal.kept or {}).get(name, [number])
        if not why:
            why = ended[0] if ended else "" if number in kept else "others were better by then"
        return TrialResult(number, settings, scores, why)
