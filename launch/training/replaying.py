"""`--replay=<run>`: a simulation whose devices do what those of a live run did. No TensorFlow at its top."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from datasets.federated_data import FederatedData
from files.digests import compute_sum
from launch.console.shown_text import format_count
from launch.live.record import Record, read_record
from launch.runs.checksums import check_sums
from launch.runs.columns import CONFIG_FILE, METRICS_FILE, MODELS, RECORD_FILE
from launch.runs.errors import RunFolderError
from launch.runs.run_folder import RunFolder
from launch.settings.errors import FlagError
from launch.settings.replaying import RUN_NAME, TWIN_OF, LiveRun, is_stand_in, read_live_run
from launch.settings.run_config import RunConfig, flag_values
from launch.training.partners import Lines, Partners
from tff_algos.protocol import FederatedProcess, State
from tff_algos.settings.config_fields import ConfigError

if TYPE_CHECKING:
    from models.model_spec import ModelSpec

RECORD_DIGEST = "record"  # in config.json, under TWIN_OF


class Replay(Partners):
    """The clients of a run that repeats a live one.

    Args:
      config: of the run.

    Raises:
      FlagError: `--replay` names no live run, or none of so many rounds.
      RunFolderError: its record is damaged or was edited.
    """

    def __init__(self, config: RunConfig):
        self._run: LiveRun = read_live_run(config.replay)
        if config.rounds > self._run.num_rounds:
            raise FlagError(
                f"--rounds={config.rounds}: expected at most {self._run.num_rounds}, as many as "
                f"--replay={config.replay} has done"
            )
        check_sums(self._run.folder, (CONFIG_FILE, METRICS_FILE, RECORD_FILE))
        path = self._run.folder / RECORD_FILE
        self._record: Record = read_record(path, self._run.num_clients, self._run.num_rounds)
        self._is_stand_in = is_stand_in(self._run, flag_values(config))
        self._rounds, self._models = config.rounds, dict[str, Any]()
        self._spec: ModelSpec | None = None

    def check(self, config: RunConfig, data: FederatedData) -> None:
        """Raises ConfigError or FlagError if these data cannot be in the place of those of the live run."""
        there, needed = len(data.clients), self._run.num_clients
        if there != needed:
            expected = f"as many clients as the run in --replay={config.replay} had, {needed}; the data have {there}"
            raise ConfigError("num_clients", there, expected)
        if not self._is_stand_in and self._run.digest not in ("", data.digest):
            raise FlagError(
                f"--replay={config.replay}: its federation was another one than the same flags give now, so the data "
                "have changed; restore them, or name those that stand in for them by --data or --dataset"
            )

    def describe(self) -> Lines:
        """What the user should know of the run that is repeated."""
        rounds = format_count(self._run.num_rounds, "round")
        data = "with other data in place of its clients' own" if self._is_stand_in else "with the same parts of data"
        return [("twin", f"of {self._run.folder}, {rounds}, {data}: who took part, and when, is from its record")]

    def gather(
        self, config: RunConfig, folder: RunFolder, data: FederatedData, dealt: FederatedData, spec: "ModelSpec"
    ) -> FederatedData:
        """The federation as it is. Raises RunFolderError if the run goes on with another record than it began with."""
        if not folder.is_new:
            before = json.loads(folder.config.read_text(encoding="utf-8")).get(TWIN_OF)
            if not isinstance(before, dict) or before.get(RECORD_DIGEST) != self._sum_record():
                raise RunFolderError(
                    f"{folder.path}: the record in --replay={config.replay} is another one than it began with; restore "
                    "that, or start a new run"
                )
        return data

    def join(
        self, process: FederatedProcess, config: RunConfig, spec: "ModelSpec", data: FederatedData, folder: RunFolder
    ) -> FederatedProcess:
        """The process whose clients are those of the record.

        Raises:
          ConfigError: the algorithm, with these settings, has no live runs.
        """
        from tff_algos.rounds.partners import RepeatedFrom

        if process.ask is None:
            raise ConfigError("replay", config.replay, f"none with --algo={config.algo} and these settings")
        self._spec = spec
        return process.ask(RepeatedFrom(self._record))

    def finish(self, process: FederatedProcess, state: State, data: FederatedData) -> FederatedData:
        """Keeps the models, to compare them with those of the live run, if both have as many rounds and parts."""
        if self._rounds == self._run.num_rounds and not self._is_stand_in:
            self._models = process.get_models(state)
        return data

    def describe_end(self) -> Lines:
        """How far the weights are from those that the live run has saved."""
        from launch.runs.file_names import encode_name
        from models.saved_models import load_weights

        for name, weights in self._models.items():
            folder = self._run.folder / MODELS / encode_name(name)
            if not folder.is_dir():  # the live run was stopped
                continue
            there = load_weights(self._spec, folder)
            largest = max(float(np.abs(each).max(initial=0)) for each in there)
            most = max(float(np.abs(a - b).max(initial=0)) for a, b in zip(there, weights, strict=True))
            shown = f"within {most / largest:.1e} of the largest" if most else "the same"
            yield "twin", f"its weights and the live run's are {shown} (SGD: expect 1e-6; Adam makes much of rounding)"

    def describe_run(self) -> Mapping[str, Any]:
        """Which live run it repeats, by the name of its folder, and the digest of its record."""
        return {TWIN_OF: {RUN_NAME: self._run.folder.resolve().name, RECORD_DIGEST: self._sum_record()}}

    def _sum_record(self) -> str:
        return compute_sum(self._run.folder / RECORD_FILE)
