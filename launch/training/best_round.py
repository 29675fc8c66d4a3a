"""`--keep_best`: the models of the best round so far, by the clients' validation examples, while a run goes on.

The state after that round lies beside the checkpoints, and `models/best/` is made of it: `<name>/model.keras` for each
model, or its weights alone, and `clients.csv` with the model of each client. Which round is best stands in
`metrics.csv`, so a run that was killed keeps the same one when it is resumed, whatever it had kept since its last
checkpoint.
"""

import pathlib

from datasets.federated_data import FederatedData
from files.writing import replace_folder
from launch.console.progress import say
from launch.runs.checkpoints import Checkpoints, find_checkpoints
from launch.runs.columns import CLIENT, CLIENTS_FILE, MODEL
from launch.runs.file_names import encode_name
from launch.runs.run_folder import RunFolder
from launch.runs.tables import format_cell, write_table
from launch.training.validated_rounds import ValidatedRounds
from models.model_names import ARRAYS_FILE, KERAS_FILE
from models.model_spec import ModelSpec
from models.saved_models import save_model
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
        place = folder / encode_name(name)
        if reason := save_model(each, weights, place):
            say(f"note     {place / ARRAYS_FILE} holds the weights of {each.name}, and there is no {KERAS_FILE}, since "
                f"Keras failed to write it: {reason}")  # fmt: skip
