"""The rounds of a run: the algorithm's next state, its evaluation, its row in each table, its checkpoint."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import psutil

from launch.console.progress import Progress, say
from launch.live.record import RecordLog
from launch.runs import columns
from launch.runs.checkpoints import Checkpoints
from launch.runs.client_rounds import ClientRounds
from launch.runs.errors import RunFolderError
from launch.runs.round_table import EventLog, RoundTable
from launch.runs.run_folder import RunFolder
from launch.runs.task_columns import TaskColumns, format_value
from launch.settings.renamed_flags import rename_stored_flags
from launch.settings.resuming import CHANGEABLE_ON_RESUME
from launch.settings.run_config import RunConfig, find_algorithm, flag_values
from launch.training.partners import Partners
from launch.training.run_end import CostLimits, ValidatedRounds
from tff_algos.protocol import COMMON_METRICS, FederatedProcess, State

if TYPE_CHECKING:
    from launch.training.evaluation import EvaluateState
    from launch.training.run_models import BestRound


class RoundLoop:
    """Runs the rounds of a run, from its newest checkpoint on if it has one.

    Attributes:
      round_num: rounds done.
      is_evaluated: whether the last of them was evaluated, and by this loop.
      metrics: the table `metrics.csv`.
      timing: the table `timing.csv`.

    With live `partners`, its events go into `record.csv` as well.

    Raises:
      RunFolderError: the run has done more rounds than the config asks for, or its checkpoints or tables are damaged.
    """

    def __init__(
        self,
        config: RunConfig,
        folder: RunFolder,
        process: FederatedProcess,
        checkpoints: Checkpoints,
        evaluate_state: "EvaluateState",
        worker_memory_bytes: Callable[[], int],
        task: TaskColumns,
        further_metrics: Sequence[str] = (),
        best: "BestRound | None" = None,
        clients_by_round: ClientRounds | None = None,
        partners: Partners | None = None,
    ):
        self._config, self._process, self._checkpoints = config, process, checkpoints
        self._evaluate_state, self._worker_memory_bytes, self._best = evaluate_state, worker_memory_bytes, best
        self._task, self.is_evaluated = task, False
        self._evaluation_metrics = (*task.evaluation, *further_metrics)
        # With archetypes or personal models it is the clients' own test splits that count.
        self._shows_clients = bool(further_metrics)
        last_round = checkpoints.last_round()
        if last_round > config.rounds:
            raise RunFolderError(f"--rounds={config.rounds}: the run has done {last_round}; expected as many or more")
        # Before the state is restored: what clients keep may lie in files of this folder.
        process.keep_in(folder.kept)
        self.round_num, self._state = checkpoints.restore(process.initialize())
        self._client_files = ClientStateFiles(process, checkpoints)
        self.metrics = RoundTable(folder.metrics, self.round_num)
        self.timing = RoundTable(folder.timing, self.round_num)
        self._events = EventLog(folder.events, self.round_num)
        is_live = partners is not None and partners.is_live
        self._record = RecordLog(folder.record, self.round_num) if is_live else None
        self._partners = partners
        if partners is not None:
            partners.begin(folder, self.round_num)
        self._clients = clients_by_round
        if clients_by_round is not None:
            clients_by_round.begin(folder.clients_by_round, self.round_num)
        self._validated = ValidatedRounds(self.metrics, task)
        self._limits = CostLimits(config, process, self.metrics)
        # As they are after `round_num`, also while the next round is written.
        self._digests = self._list_digests()
        if self.round_num:
            check_record(checkpoints.read_record(self.round_num), folder, config, self._digests)
            if self._best is not None:
                self._best.restore(self._validated, self._state)

    def run(self, after_round: Callable[[], None] = lambda: None) -> State:
        """Runs the rounds that are left, calls `after_round` after each, and returns the last state, which is saved."""
        for line in self._process.get_notes(self._state):
            say(line)
        if not self.round_num:
            self._limits.check_first(self._state)
        progress = Progress(self._config.rounds, self.round_num, self._task.title, format_value)
        try:
            while not self._is_done():
                # One statement, so that Ctrl-C cannot come between a state and its number: what is saved on the way
                # out must be the state of the round that it claims to be.
                self._state, self.round_num, evaluation, self._digests = self._run_round()
                if self.round_num % self._config.rounds_per_checkpoint == 0:
                    self._save()
                after_round()
                of_clients = evaluation.get(self._task.client_test) if self._shows_clients else None
                further = self._partners.describe_round() if self._partners else ""
                progress.update(self.round_num, evaluation.get(self._task.test), of_clients, further)
        except (Exception, SystemExit) as error:
            error.add_note(f"round {self.round_num + 1}")
            raise
        finally:
            progress.close()
            # However the rounds end, those since the last checkpoint are not lost. Before round 1 there are none.
            if self.round_num:
                self._save()
        if self.round_num < self._config.rounds and self._process.is_spent(self._state):
            say(f"spent    after round {self.round_num}: a further one would exceed the budget")
        elif self.round_num < self._config.rounds and self._limits.are_reached(self._state):
            say(f"stopped  after round {self.round_num}: a further one would pass {self._limits.spell()}")
        elif self._validated.has_stopped_early(self._config):
            say(f"stopped  after round {self.round_num} by --patience={self._config.patience}: the clients' own "
                f"validation {self._task.title} was best in round {self._validated.find_best() or 'none'}")  # fmt: skip
        return self._state

    def _save(self) -> None:
        # Of the run's other files, what a flip of a bit in them, or a file of another run, changes.
        record = json.dumps({"flags": _list_flags(self._config), "digests": self._digests}, sort_keys=True)
        self._checkpoints.save(self._state, self.round_num, record)
        if self._best is not None:
            self._best.prune(self._validated)
        # After the checkpoint is written, so that no file goes that an older one still needs.
        self._client_files.prune(self.round_num, self._state)

    def _list_digests(self) -> dict[str, str]:
        digests = {columns.METRICS_FILE: self.metrics.digest(), columns.EVENTS_FILE: self._events.digest()}
        if self._record is not None:
            digests[columns.RECORD_FILE] = self._record.digest()
        if self._partners is not None:
            digests |= self._partners.list_digests()
        if self._clients is not None:
            digests[columns.CLIENTS_BY_ROUND_FILE] = self._clients.digest()
        return digests

    def _is_done(self) -> bool:
        if self.round_num >= self._config.rounds or self._process.is_spent(self._state):
            return True
        if self.round_num and self._limits.are_reached(self._state):
            return True
        reached = self.metrics.last(self._task.test) if self.round_num else None
        return self._task.has_reached_target(self._config, reached) or self._validated.has_lost_patience(self._config)

    def _run_round(self) -> tuple[State, int, Mapping[str, float], dict[str, str]]:
        """Runs the next round and records it.

        Returns:
          (state, round, evaluation, digests of the tables); the evaluation is empty if there is none in this round.
        """
        round_num = self.round_num + 1
        output, round_s = self._limits.next(self._state)
        trained_s = time.perf_counter()
        every, shared_every = self._config.rounds_per_evaluation, self._config.rounds_per_shared_evaluation
        is_last = round_num == self._config.rounds or self._process.is_spent(output.state)
        is_last = is_last or self._limits.are_reached(output.state)
        self.is_evaluated = is_evaluated = round_num % every == 0 or is_last
        # Changes are measured only against a round that was evaluated, so that a resumed run measures the same ones.
        previous = self._state if round_num > 1 and (round_num - 1) % every == 0 else None
        with_shared = bool(shared_every) and (round_num % shared_every == 0 or is_last)
        evaluation = self._evaluate_state(output.state, previous, with_shared) if is_evaluated else {}
        # The tables come before the checkpoint: after a kill in between, a resumed run drops their last row.
        events = self._process.get_events(output.state)
        self._events.append(round_num, events)
        if self._record is not None:
            self._record.append(round_num, events)
        if self._partners is not None:
            self._partners.note_round(round_num, events)
        if self._clients is not None and is_evaluated:
            self._clients.append(round_num)
        self.metrics.append(build_metrics_row(round_num, output.metrics, evaluation, self._evaluation_metrics))
        self._validated.update()
        if self._best is not None:
            self._best.update(self._validated, output.state, round_num)
        self.timing.append(
            {
                columns.ROUND: round_num,
                columns.ROUND_S: round_s,
                columns.EVALUATION_S: time.perf_counter() - trained_s - self._limits.ahead_s,
                columns.HOST_MEMORY_BYTES: psutil.Process().memory_info().rss,
                columns.WORKER_MEMORY_BYTES: self._worker_memory_bytes(),
            }
        )
        return output.state, round_num, evaluation, self._list_digests()


def build_metrics_row(
    round_num: int,
    metrics: Mapping[str, float],
    evaluation: Mapping[str, float | None],
    evaluation_metrics: Sequence[str],
) -> dict[str, Any]:
    """A row of `metrics.csv`: the common columns, those of the evaluation (None without one), the algorithm's own."""
    common = {name: metrics[name] for name in COMMON_METRICS}
    measured = {name: evaluation.get(name) for name in evaluation_metrics}
    own = {name: value for name, value in metrics.items() if name not in COMMON_METRICS}
    return {columns.ROUND: round_num, **common, **measured, **own}


class ClientStateFiles:
    """Knows which files of the clients' states each checkpoint needs.

    Args:
      process: the algorithm, which knows where its files lie.
      checkpoints: those of the run.
    """

    def __init__(self, process: FederatedProcess, checkpoints: Checkpoints):
        self._process, self._checkpoints = process, checkpoints
        # By round, None for a state that needs no file.
        self._needed: dict[int, Any] = {}

    def prune(self, round_num: int, state: State) -> None:
        """Removes the files that no checkpoint needs, after the state of a round was saved as the newest."""
        newest = self._process.find_kept(state)
        if newest is None:
            return
        self._needed[round_num] = newest
        self._needed = {each: self._find(each, state) for each in self._checkpoints.list_rounds()}
        self._process.forget([needed for needed in self._needed.values() if needed is not None])

    def _find(self, round_num: int, template: State) -> Any:
        """What the state after a round needs; it is read if it was saved before a resume, or between checkpoints."""
        if round_num in self._needed:
            return self._needed[round_num]
        try:
            return self._process.find_kept(self._checkpoints.load_any(round_num, template))
        # Of many types, see `Checkpoints.load`; a damaged state is of no use, whatever it needs.
        except Exception:
            return None


def check_record(record: str, folder: RunFolder, config: RunConfig, digests: Mapping[str, str]) -> None:
    """Compares a run that is resumed with the record of its checkpoint.

    Raises:
      RunFolderError: the settings or a table have changed since.
    """
    recorded: dict[str, Any] = json.loads(record)
    flags = _list_flags(config)
    # A flag that only one of them has was added or removed by another version.
    recorded_flags = rename_stored_flags(recorded["flags"], find_algorithm(config.algo))
    changed = [name for name, value in recorded_flags.items() if name in flags and flags[name] != value]
    if changed:
        name = changed[0]
        raise RunFolderError(
            f"{folder.config}: says --{name}={flags[name]}, but its checkpoint was made with {recorded_flags[name]}; "
            "restore the file that is damaged or another run's, or start a new run"
        )
    for name, digest in digests.items():
        if recorded["digests"].get(name, digest) != digest:
            raise RunFolderError(
                f"{folder.path / name}: changed since its checkpoint was made: damaged, or another run's; "
                "restore it, or start a new run"
            )


def _list_flags(config: RunConfig) -> dict[str, Any]:
    values = json.loads(json.dumps(flag_values(config)))
    return {name: value for name, value in values.items() if name not in CHANGEABLE_ON_RESUME}
