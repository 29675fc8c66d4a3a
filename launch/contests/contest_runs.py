"""The runs of a contest: their folders, their flags, and what is read of them. Imports no TensorFlow."""

import functools
import math
import pathlib
from collections.abc import Iterable, Mapping, Sequence

from launch.contests.journal import FRESH, Ended, Key
from launch.contests.methods import Method
from launch.contests.problem import OWN, Limits, Problem
from launch.contests.search_points import draw_points
from launch.runs.columns import BYTES_DOWN, BYTES_UP, METRICS_FILE, ROUND_S, SUMMARY_FILE, TIMING_FILE, VIRTUAL_TIME_S
from launch.runs.errors import RunFolderError
from launch.runs.run_records import read_rounds
from launch.settings.errors import FlagError
from launch.settings.flags import parse_config
from launch.settings.run_config import RunConfig
from launch.settings.run_flags import NO_PLOTS
from launch.settings.runtimes import OFF
from launch.sweeps.present_data import PresentData
from launch.sweeps.recipes import ALGO, Recipe
from launch.sweeps.tasks import Task
from launch.sweeps.tuning.own_space import drop_idle, find_nearest_point
from launch.sweeps.tuning.search_space import Settings, format_settings
from launch.sweeps.tuning.trials import UNSEEN

TRIALS, SEEDS = "trials", "seeds"
# Only the end counts, where every client's model is tested; what runs on the way is a share of a short run.
_NEVER = 10**6
_INTERVALS = ("rounds_per_evaluation", "rounds_per_shared_evaluation", "rounds_per_checkpoint")
# What "auto" compiles depends on the rounds, which differ between methods and between rungs.
END = ("--fairness", f"--compile={OFF}", *(f"--{name}={_NEVER}" for name in _INTERVALS))


class Builder:
    """Makes tasks, and reads what came of them.

    Args:
      problem: of the contest.
      methods: all.
      folder: of the contest.
    """

    def __init__(self, problem: Problem, methods: Iterable[Method], folder: pathlib.Path):
        self._problem, self._folder = problem, folder
        self._methods = {method.name: method for method in methods}
        self._present = PresentData()

    def find_run_dir(self, key: Key) -> pathlib.Path:
        """The folder of a run; the rungs, and what measures its speed, go on in the same one."""
        if key.stage == FRESH:
            return self._folder / SEEDS / key.method / f"seed_{key.seed}"
        return self._folder / TRIALS / key.method / f"trial_{key.trial}" / f"seed_{key.seed}"

    def choose_points(self, method: Method, number: int) -> list[Settings]:
        """The settings of a method's trials; the first has those of its algorithm, where the space contains them.

        Each setting by itself, so that one that lies outside does not take the others' along; see `Method.start`.

        Raises:
          FlagError: the flags of all its runs are refused.
        """
        common = [f"{ALGO}{method.algo}", *self._problem.arguments, *method.fixed, *format_settings(method.start)]

        def resolve(further: Sequence[str]) -> RunConfig:
            return parse_config([*common, *further])

        first = find_nearest_point(method.space, resolve)
        simplify = functools.partial(drop_idle, space=method.space, resolve=resolve)
        privacy = getattr(resolve(format_settings(simplify(first))).algorithm, "privacy", None)
        if getattr(privacy, "is_active", False):
            expected = "0, since trials go on for longer, and the noise of a private run is planned for its rounds"
            raise FlagError(f"--dp_epsilon={privacy.epsilon:g}: expected {expected}")
        return list(draw_points(method.space, number, first=first, simplify=simplify))

    def build(self, key: Key, settings: Settings, limits: Limits) -> Task:
        """A run.

        Args:
          key: which one.
          settings: what is varied.
          limits: what it may spend.

        Raises:
          FlagError: `launch.train` would refuse it; one line.
        """
        method, run_dir, is_trial = self._methods[key.method], self.find_run_dir(key), key.stage != FRESH
        recipe = Recipe(method.name, f"{ALGO}{method.algo}")
        # Trials are scored by the clients' own examples, which spares an evaluation of many models on many examples.
        shared = ("--rounds_per_shared_evaluation=0",) if is_trial and self._problem.judged == OWN else ()
        arguments = (
            *END,
            *shared,
            *(UNSEEN if is_trial else (f"--plot_formats={NO_PLOTS}",)),
            *self._problem.arguments,
            *method.fixed,
            *format_settings(settings),
            *limits.arguments,
            f"--seed={key.seed}",
            f"--run_dir={run_dir}",
        )
        config = parse_config([recipe.argument, *arguments])
        label = f"trial {key.trial}" if is_trial else ""
        return Task(recipe, arguments, run_dir, config, label=label, present=self._present)

    def read(self, task: Task, key: Key) -> Ended:
        """What came of a finished run, as far as its folder says it."""
        try:
            rows = read_rounds(task.run_dir / METRICS_FILE)
            last = rows[max(rows)]
        except (OSError, ValueError, KeyError) as error:
            return Ended(failure=f"its {METRICS_FILE} cannot be read ({error})")
        column = self._problem.result if key.stage == FRESH else self._problem.objective
        score = last.get(column, math.nan)
        # On fresh seeds whoever judges the run says what it lacks.
        is_scored = math.isfinite(score)
        failure = "" if is_scored or key.stage == FRESH else f"it has no {column} after its last round"
        num_bytes = sum(row.get(BYTES_DOWN, 0.0) + row.get(BYTES_UP, 0.0) for row in rows.values())
        return Ended(
            score if is_scored else None,
            failure,
            last.get(VIRTUAL_TIME_S, 0.0),
            num_bytes,
            num_rounds=len(rows),
        )

    def count_rounds(self, key: Key) -> int:
        """The rounds of a run so far; 0 of one that has not begun."""
        try:
            return len(read_rounds(self.find_run_dir(key) / METRICS_FILE))
        except (OSError, ValueError, KeyError):
            return 0

    def read_round_s(self, key: Key) -> float | None:
        """Mean real seconds of a run's rounds after the first, which builds what all need; None if not known."""
        try:
            timing = read_rounds(self.find_run_dir(key) / TIMING_FILE)
            seconds = [row[ROUND_S] for number, row in sorted(timing.items()) if number > 1]
        except (OSError, ValueError, KeyError):
            return None
        return sum(seconds) / len(seconds) if seconds else None

    def check_same(self, key: Key, task: Task, runs: Mapping[Key, Ended]) -> None:
        """Holds what counts already to what is there now.

        Args:
          key: of a finished run, whose data and code are compared.
          task: that run.
          runs: what is known of all.

        Raises:
          RunFolderError: the data or somebody's own code are others now, or a run on a fresh seed is gone.
        """
        if change := self._present.find_change(task.run_dir, task.config):
            raise RunFolderError(f"{task.run_dir}: a run {change}; choose another folder, or move the contest away")
        fresh = [each for each, ended in runs.items() if each.stage == FRESH and not ended.failure]
        if gone := next((each for each in fresh if not (self.find_run_dir(each) / SUMMARY_FILE).exists()), None):
            raise RunFolderError(f"{self.find_run_dir(gone)}: this run of the contest is gone; choose another folder")


def read_reason(text: str) -> str:
    """What a run failed by, without what the pool adds: "exit code 2; error: X; its output: Y" becomes "X"."""
    reason = text.partition("; its output: ")[0]
    return reason.partition("error: ")[2] or reason
