"""Trials of which each is chosen by those before, and runs that end early where they are behind. Needs Optuna."""

import contextlib
import pathlib
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from launch.console.progress import say
from launch.runs.columns import CONFIG_FILE, PRUNED_FILE
from launch.runs.errors import RunFolderError
from launch.runs.tables import write_json
from launch.settings.flags import FlagError
from launch.sweeps.pool import run_tasks
from launch.sweeps.tasks import Task, is_finished
from launch.sweeps.tuning.answer import say_trial
from launch.sweeps.tuning.request import MEDIAN, Request
from launch.sweeps.tuning.scored_runs import OpenEngine
from launch.sweeps.tuning.search_space import check_space, format_search
from launch.sweeps.tuning.study import Study
from launch.sweeps.tuning.trials import Outcome, State, build_task, read_curve, read_score, write_trials

# Complete ones, before whose median no run is stopped.
MIN_TRIALS = 5


class Behind(NamedTuple):
    """Where a run was found to be behind.

    Attributes:
      round_num: after this round.
      value: its objective then.
      median: that of the complete trials after the same round, with the same seed.
    """

    round_num: int
    value: float
    median: float

    def __str__(self) -> str:
        side = "above" if self.value > self.median else "below"
        return f"stopped after round {self.round_num}: {self.value:.4f} is {side} the median {self.median:.4f}"


def find_behind(
    curve: Mapping[int, float], complete: Sequence[Mapping[int, float]], rounds: range, sign: int = 1
) -> Behind | None:
    """The first of these rounds after which the curve is worse than the median of the complete ones.

    After the last round of a run there is nothing left to save, so it is no use to ask for that one.

    Args:
      curve: the objective by round.
      complete: those of the complete trials with the same seed. Only those with a value after a round count there, and
        fewer than `MIN_TRIALS` judge nothing.
      rounds: to look at.
      sign: 1 if a larger objective is better, -1 if a lower one is.
    """
    for round_num, value in sorted(curve.items()):
        others = [each[round_num] for each in complete if round_num in each]
        if round_num in rounds and len(others) >= MIN_TRIALS:
            median = statistics.median(others)
            if sign * value < sign * median:
                return Behind(round_num, value, median)
    return None


def mark_pruned(run_dir: pathlib.Path, reason: str, behind: Behind) -> None:
    """Notes in a run's folder that the search has stopped it. The run can be resumed like any other."""
    write_json(
        run_dir / PRUNED_FILE,
        {"reason": reason, **behind._asdict()},
    )


def open_study(request: Request) -> Study:
    """The study of a request, new or as far as it was before.

    Raises:
      FlagError: settings that `launch.train` would refuse, or a search of what the flags do not take.
      RunFolderError: the folder is that of another search.
    """
    config = request.experiment.resolve(request.arguments)
    check_space(request.space, config.algo)
    search = {
        "--search": format_search(request.space),
        "--seeds": ",".join(request.seeds),
        "--objective": request.objective,
        "--rounds": str(config.rounds),
        "--pruner": f"{request.pruner} from round {request.first_pruning_round}",
    }
    return Study(request.folder, request.space, request.seeds, config, search, request.sign)


def check_same_data(request: Request, outcome: Outcome) -> None:
    """Raises RunFolderError if a trial that is over was trained on other data or code than there are now."""
    if outcome.state not in (State.COMPLETE, State.PRUNED):
        # What is open is looked at when its turn comes.
        return
    with contextlib.suppress(FlagError):
        for seed in request.seeds:
            task = build_task(request, outcome.number, outcome.settings, seed)
            if change := task.present.find_change(task.run_dir, task.config):
                raise RunFolderError(
                    f"{task.run_dir}: a trial {change}, with which others cannot be compared; choose another "
                    "--runs_dir, or move the search away"
                )


def run_adaptive_search(request: Request, open_engine: OpenEngine, study: Study) -> tuple[list[Outcome], list[str]]:
    """Makes the trials that are left. Returns all, and a line for each run that failed."""
    search = _Search(request, study)
    num_over = sum(outcome.state is not State.OPEN for outcome in search.outcomes)
    num_left = (request.num_trials - num_over) * len(request.seeds)
    # The runs are not known yet, only that they are much like the experiment's own.
    like_all = build_task(request, 0, {}, request.seeds[0])
    engine = open_engine([like_all] * max(num_left, 0), request.jobs)
    rounds = [like_all.config.rounds] * (request.num_trials * len(request.seeds))
    failures = run_tasks(search.iterate_tasks(), engine, search.collect, search.find_end, rounds, is_brief=True)
    search.write()
    return search.outcomes, failures


class _Search:
    """The trials, those that go on, and what was found of their runs."""

    def __init__(self, request: Request, study: Study):
        self._request, self._study = request, study
        self._outcomes = {outcome.number: outcome for outcome in study.read()}
        for outcome in self._outcomes.values():
            check_same_data(request, outcome)
        # Trial and seed of each that was asked for.
        self._runs: dict[pathlib.Path, tuple[int, str]] = {}
        # The seed of the run that ends a trial, and where.
        self._behind: dict[int, tuple[str, Behind]] = {}
        # The last round that was compared.
        self._judged: dict[pathlib.Path, int] = {}

    @property
    def outcomes(self) -> list[Outcome]:
        """As many as are asked for; an earlier command may have made more."""
        return [self._outcomes[number] for number in sorted(self._outcomes)[: self._request.num_trials]]

    def write(self) -> None:
        """The table of trials as they are now."""
        write_trials(self._request, self.outcomes)

    def iterate_tasks(self) -> Iterator[Task | None]:
        """The runs of all trials in turn, None for each that is not needed. A trial is chosen when its turn comes."""
        for number in range(1, self._request.num_trials + 1):
            if number not in self._outcomes:
                self._outcomes[number] = self._study.ask()
            tasks = self._prepare(self._outcomes[number])
            for seed in self._request.seeds:
                yield self._find_left(number, tasks[seed]) if tasks else None

    def _prepare(self, outcome: Outcome) -> dict[str, Task]:
        """The runs of a trial by seed; none if there is nothing to train, which is then on record."""
        if outcome.state is not State.OPEN:
            return {}
        others = (each for each in self._outcomes.values() if each.state is not State.OPEN)
        # The same runs would only give the same numbers.
        if twin := next((each for each in others if each.settings == outcome.settings), None):
            say(f"trial {outcome.number}: the settings of trial {twin.number}, and so its result")
            self._finish(twin._replace(number=outcome.number))
            return {}
        try:
            tasks = {
                seed: build_task(self._request, outcome.number, outcome.settings, seed) for seed in self._request.seeds
            }
        except FlagError as error:
            say(f"trial {outcome.number}: {error}")
            self._finish(outcome._replace(state=State.REFUSED), str(error))
            return {}
        self._runs.update({task.run_dir: (outcome.number, seed) for seed, task in tasks.items()})
        return tasks

    def _find_left(self, number: int, task: Task) -> Task | None:
        """The run, if anything is left of it to do; an earlier command may have done it, or got as far as its end."""
        if self._outcomes[number].state is not State.OPEN or number in self._behind:
            return None
        self._judge(task)
        if number not in self._behind and not is_finished(task):
            return task
        self.collect(task)
        return None

    def find_end(self, task: Task) -> str:
        """Why a run that goes on should end now; "" if it should not."""
        self._judge(task)
        return self._explain(self._runs[task.run_dir][0])

    def _judge(self, task: Task) -> None:
        """Compares the rounds of a run that are new, where runs are pruned and nothing is found of its trial yet."""
        number, seed = self._runs[task.run_dir]
        if self._request.pruner != MEDIAN or number in self._behind:
            return
        curve = read_curve(task.run_dir, self._request.objective)
        first = max(self._request.first_pruning_round, self._judged.get(task.run_dir, 0) + 1)
        self._judged[task.run_dir] = max(curve, default=0)
        complete = [each.curves[seed] for each in self._outcomes.values() if each.state is State.COMPLETE]
        behind = find_behind(curve, complete, range(first, task.config.rounds), self._request.sign)
        if behind is not None:
            self._behind[number] = seed, behind

    def _explain(self, number: int) -> str:
        if number not in self._behind:
            return ""
        seed, behind = self._behind[number]
        return f"{behind} (seed {seed})"

    def collect(self, task: Task) -> None:
        """Keeps what a run gave that has ended, and with the last of its trial what became of that."""
        number, seed = self._runs[task.run_dir]
        self._judge(task)
        if number in self._behind:
            self._collect_pruned(task)
        elif is_finished(task):
            self._collect_scored(number, seed, task)
        self.write()

    def _collect_pruned(self, task: Task) -> None:
        number, seed = self._runs[task.run_dir]
        ending_seed, behind = self._behind[number]
        if (task.run_dir / CONFIG_FILE).exists():
            mark_pruned(task.run_dir, self._explain(number), behind)
        outcome = self._outcomes[number]
        if seed != ending_seed or outcome.state is not State.OPEN:
            return
        # Of its rounds, those that were run before it had stopped do not count: how many there are is by chance.
        curve = read_curve(task.run_dir, self._request.objective)
        known = {each: outcome.curves[each] for each in self._request.seeds if each in outcome.curves and each != seed}
        curves = {**known, seed: {each: value for each, value in curve.items() if each <= behind.round_num}}
        pruned = (behind.round_num, behind.value)
        self._finish(outcome._replace(state=State.PRUNED, curves=curves, pruned=pruned), self._explain(number))

    def _collect_scored(self, number: int, seed: str, task: Task) -> None:
        curve = read_curve(task.run_dir, self._request.objective)
        score = read_score(task, self._request.objective)
        if score is None:
            return
        outcome = self._outcomes[number]
        outcome = outcome._replace(scores={**outcome.scores, seed: score}, curves={**outcome.curves, seed: curve})
        self._outcomes[number] = outcome
        if len(outcome.scores) == len(self._request.seeds):
            self._finish(outcome._replace(state=State.COMPLETE))
            num_over = sum(each.state is not State.OPEN for each in self._outcomes.values())
            say_trial(task.label, outcome.scores, num_over, self._request.num_trials)

    def _finish(self, outcome: Outcome, reason: str = "") -> None:
        self._outcomes[outcome.number] = outcome
        self._study.tell(outcome, reason)
        self.write()
