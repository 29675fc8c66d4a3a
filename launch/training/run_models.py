"""The models that a run saves: those of its end, those of its best round, and whether Keras can write them at all.

`--keep_best`: while a run goes on, the state after the best round so far, by the clients' validation examples, lies
beside the checkpoints, and `models/best/` is made of it: `<name>/model.keras` for each model, or its weights alone, and
`clients.csv` with the model of each client. Which round is best stands in `metrics.csv`, so a run that was killed keeps
the same one when it is resumed, whatever it had saved since its last checkpoint.
"""

import dataclasses
import pathlib

from datasets.federated_data import FederatedData
from files.writing import replace_folder
from launch.console.progress import say
from launch.runs.checkpoints import Checkpoints, find_checkpoints
from launch.runs.columns import CLIENT, CLIENTS_FILE, MODEL, MODELS
from launch.runs.file_names import encode_name
from launch.runs.run_folder import RunFolder
from launch.runs.tables import format_cell, write_table
from launch.settings.run_config import RunConfig
from launch.training.run_end import ValidatedRounds
from models.model_names import ARRAYS_FILE, KERAS_FILE, is_own_model
from models.model_spec import ModelSpec
from models.saved_models import save_model
from models.saving_trial import try_saving
from tff_algos.protocol import FederatedProcess, State


class BestRound:
    """Keeps the state and the models of the best round of a run."""

    def __init__(
        self,
        folder: RunFolder,
        data: FederatedData,
        spec: ModelSpec,
        process: FederatedProcess,
        checkpoints: Checkpoints,
    ):
        self._folder, self._data, self._spec = folder, data, spec
        self._process, self._checkpoints = process, checkpoints

    def restore(self, rounds: ValidatedRounds, template: State) -> None:
        """Makes `models/best/` anew as it was after the last of these rounds, for a run that goes on.

        Raises:
          RunFolderError: the state of the best round is gone or damaged.
        """
        if (best := rounds.find_best()) is not None:
            self._write_models(self._checkpoints.load_best(best, template))

    def update(self, rounds: ValidatedRounds, state: State, round_num: int) -> None:
        """Keeps the state after a round, which is the last one, and its models, if that round is the best so far."""
        if rounds.find_best() == round_num:
            self._checkpoints.save_best(state, round_num)
            self._write_models(state)

    def prune(self, rounds: ValidatedRounds) -> None:
        """Removes states that were the best once, but for those that a run needs which goes on from a checkpoint."""
        # None stands for the end of what is in the table now.
        ends = [None, *find_checkpoints(self._folder.checkpoints)]
        self._checkpoints.prune_best({rounds.find_best(end) for end in ends})

    def _write_models(self, state: State) -> None:
        with replace_folder(self._folder.best_models) as folder:
            save_models(folder, self._spec, self._process, state)
            names = [client.name for client in self._data.everyone]
            rows = zip(names, self._process.client_model(state), strict=True)
            write_table(folder / CLIENTS_FILE, [CLIENT, MODEL], [[format_cell(cell) for cell in row] for row in rows])


def save_models(folder: pathlib.Path, spec: ModelSpec, process: FederatedProcess, state: State) -> None:
    """Saves each shared model of a state, and each teacher, in a folder of its name.

    Where Keras fails as no trial has foreseen, that is said, and the weights alone are saved.
    """
    models = [(spec.of_weights(weights), name, weights) for name, weights in process.get_models(state).items()]
    models += [(spec.teacher, name, weights) for name, weights in process.get_teachers(state).items()]
    for each, name, weights in models:
        path = folder / encode_name(name)
        if reason := save_model(each, weights, path):
            say(f"note     {path / ARRAYS_FILE} holds the weights of {each.name}, and there is no {KERAS_FILE}, since "
                f"Keras failed to write it: {reason}")  # fmt: skip


def check_saving(config: RunConfig, spec: ModelSpec) -> ModelSpec:
    """The specification, with those of its teacher and variants, that knows which of them Keras cannot write.

    Says in a line of each what is written in its place, and what to change. Our own models need no trial.

    Args:
      config: of the run.
      spec: its model.
    """
    checked: dict[tuple[str, bool], ModelSpec] = {}

    def check(each: ModelSpec) -> ModelSpec:
        # A teacher may be of the same function, and a quantized model beside its float one.
        key = each.name, each.quantization is not None
        if is_own_model(each.name) and key not in checked:
            checked[key] = _check(each)
        is_written = checked[key].has_keras_file if key in checked else True
        return dataclasses.replace(each, has_keras_file=is_written)

    changed = {"peers": tuple(map(check, spec.peers))}
    if spec.teacher is not None and config.algorithm.trains_teacher:
        changed["teacher"] = check(spec.teacher)
    if spec.quantization is not None and config.qat_start_round > 1:
        float_spec = check(spec.quantization.float_spec)
        changed["quantization"] = dataclasses.replace(spec.quantization, float_spec=float_spec)
    return dataclasses.replace(check(spec), **changed)


def _check(spec: ModelSpec) -> ModelSpec:
    trial = try_saving(spec)
    readers = "evaluate, export, predict and --resume"
    if trial.unwritten:
        say(f"note     {spec.name}: {MODELS}/<name>/ will hold its weights alone, {ARRAYS_FILE} in place of "
            f"{KERAS_FILE} ({readers} read them all the same), since {trial.unwritten}")  # fmt: skip
    elif trial.unread:
        say(f"note     {spec.name}: tf.keras.models.load_model will not read its {KERAS_FILE} as it is "
            f"({readers} do): {trial.unread}")  # fmt: skip
    return dataclasses.replace(spec, has_keras_file=not trial.unwritten)
