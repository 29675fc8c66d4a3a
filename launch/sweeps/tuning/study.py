"""The trials of a search in Optuna's journal, and what Optuna would try next. The only module that knows Optuna.

What is tried next follows from the seed, the number of the trial and the trials in the journal alone. So a search that
was killed tries the same as one that was not, as long as one trial goes on at a time.
"""

import importlib.util
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from launch.runs.errors import RunFolderError
from launch.runs.run_records import list_other_settings
from launch.settings.flags import FlagError
from launch.settings.run_config import RunConfig, flag_values
from launch.sweeps.held_journal import drop_torn_line
from launch.sweeps.tuning.search_space import INT, LOG, Range, SearchSpace, Settings, find_own_point
from launch.sweeps.tuning.trials import Outcome, State

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

INSTALL = ".venv/bin/python -m pip install --no-deps --require-hashes -r requirements-tune.lock"
JOURNAL = "optuna.journal"
SAMPLER_SEED = 0
SCORES, PRUNED, REASON, SEARCH, FLAGS = "scores", "pruned", "reason", "search", "flags"


def check_installed() -> None:
    """Raises FlagError if Optuna cannot be imported."""
    if importlib.util.find_spec("optuna") is None:
        raise FlagError(f"--sampler=tpe and --pruner=median need Optuna, which is not installed; {INSTALL}")


class Study:
    """The trials of one search. The first has the settings that all start from, if they lie in the space.

    Args:
      folder: where its journal lies or will lie; see `hold_journal`.
      space: what is searched.
      seeds: of every trial.
      config: the settings that the trials start from.
      search: what else they depend on, in words by name. A journal of another search is refused.
      sign: 1 if a larger score is better, -1 if a lower one is.

    Raises:
      RunFolderError: the journal is of another search, or damaged.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        space: SearchSpace,
        seeds: tuple[str, ...],
        config: RunConfig,
        search: Mapping[str, str],
        sign: int = 1,
    ):
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space, self._seeds, self._rounds = space, seeds, config.rounds
        self._direction = "maximize" if sign > 0 else "minimize"
        self._distributions = {name: _describe(searched) for name, searched in space.items()}
        self._start = find_own_point(space, config)
        path = folder / JOURNAL
        drop_torn_line(path)
        try:
            self._storage = JournalStorage(JournalFileBackend(str(path)))
            self.optuna_study = optuna.create_study(
                storage=self._storage, study_name=folder.name, direction=self._direction, load_if_exists=True
            )
            stored = self.optuna_study.user_attrs
        except (ValueError, KeyError, TypeError):
            raise RunFolderError(f"{path}: damaged; move it away, or choose another --runs_dir") from None
        if SEARCH not in stored:
            self.optuna_study.set_user_attr(SEARCH, {FLAGS: flag_values(config), **search})
            return
        of = stored[SEARCH]
        other = [f"{name} {of.get(name)}, not {value}" for name, value in search.items() if of.get(name) != value]
        if other := [*other, *list_other_settings(of[FLAGS], config)]:
            raise RunFolderError(f"{path}: another search ({'; '.join(other)}); choose another --runs_dir")

    def read(self) -> list[Outcome]:
        """All trials so far, in the order of their numbers."""
        return [self._read_trial(trial) for trial in self.optuna_study.get_trials(deepcopy=False)]

    def ask(self) -> Outcome:
        """The next trial, which is in the journal from now on."""
        from optuna.trial import TrialState, create_trial

        trials = self.optuna_study.get_trials(deepcopy=False)
        settings = self._start if not trials and self._start else self._format(self._suggest(trials))
        # What is typed counts, which has fewer digits than what was drawn.
        rounded = {name: self._parse(name, value) for name, value in settings.items()}
        trial = create_trial(state=TrialState.RUNNING, params=rounded, distributions=self._distributions)
        # One record, so that no trial is ever there in part.
        self.optuna_study.add_trial(trial)
        return Outcome(len(trials) + 1, settings)

    def tell(self, outcome: Outcome, reason: str = "") -> None:
        """Keeps what came of an open trial."""
        from optuna.trial import TrialState

        trial = self.optuna_study.get_trials(deepcopy=False)[outcome.number - 1]
        for index, seed in enumerate(self._seeds):
            for round_num, value in outcome.curves.get(seed, {}).items():
                # Optuna has one curve a trial; those of the seeds lie in it one behind the other.
                step = index * self._rounds + round_num
                self._storage.set_trial_intermediate_value(trial._trial_id, step, value)
        for name, value in ((SCORES, dict(outcome.scores)), (PRUNED, outcome.pruned), (REASON, reason)):
            if value:
                self._storage.set_trial_user_attr(trial._trial_id, name, value)
        if outcome.state is State.COMPLETE:
            self.optuna_study.tell(trial.number, outcome.mean)
        else:
            pruned = outcome.state is State.PRUNED
            self.optuna_study.tell(trial.number, state=TrialState.PRUNED if pruned else TrialState.FAIL)

    def compute_importance(self) -> dict[str, float]:
        """The share of each flag in what makes the complete trials' scores differ; empty where that is unknown.

        By fANOVA (Hutter et al. 2014), on a forest of regression trees, with a fixed seed.
        """
        from optuna.importance import FanovaImportanceEvaluator, get_param_importances
        from optuna.trial import TrialState

        complete = self.optuna_study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if len({trial.value for trial in complete}) < 2:
            return {}
        return get_param_importances(self.optuna_study, evaluator=FanovaImportanceEvaluator(seed=SAMPLER_SEED))

    def _suggest(self, trials: list["FrozenTrial"]) -> Mapping[str, Any]:
        import numpy as np
        import optuna

        # By the number of the trial, so that a search that goes on draws as one that never stopped.
        (seed,) = np.random.SeedSequence((SAMPLER_SEED, len(trials))).generate_state(1)
        sampler = optuna.samplers.TPESampler(seed=int(seed))
        # A study in memory: asking the stored one would draw by its own sampler's state.
        study = optuna.create_study(sampler=sampler, direction=self._direction)
        study.add_trials(trials)
        return study.ask(self._distributions).params

    def _format(self, params: Mapping[str, Any]) -> Settings:
        """The flags of a trial, in the order of the search."""
        return {
            name: searched.format_value(params[name]) if isinstance(searched, Range) else params[name]
            for name, searched in self._space.items()
        }

    def _parse(self, name: str, value: str) -> Any:
        searched = self._space[name]
        if not isinstance(searched, Range):
            return value
        return int(value) if searched.kind == INT else float(value)

    def _read_trial(self, trial: "FrozenTrial") -> Outcome:
        from optuna.trial import TrialState

        states = {TrialState.COMPLETE: State.COMPLETE, TrialState.PRUNED: State.PRUNED, TrialState.FAIL: State.REFUSED}
        curves: dict[str, dict[int, float]] = {}
        for step, value in trial.intermediate_values.items():
            index, before = divmod(step - 1, self._rounds)
            curves.setdefault(self._seeds[index], {})[before + 1] = value
        pruned = trial.user_attrs.get(PRUNED)
        return Outcome(
            trial.number + 1,
            self._format(trial.params),
            states.get(trial.state, State.OPEN),
            trial.user_attrs.get(SCORES, {}),
            curves,
            tuple(pruned) if pruned else None,
        )


def _describe(searched: tuple[str, ...] | Range) -> "BaseDistribution":
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if not isinstance(searched, Range):
        return CategoricalDistribution(searched)
    if searched.kind == INT:
        return IntDistribution(int(searched.low), int(searched.high))
    return FloatDistribution(searched.low, searched.high, log=searched.kind == LOG)
