"""The personal models of a finished run, made anew from its last checkpoint. Imports no TensorFlow before it must."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from datasets.federated_data import FederatedData
from launch.runs.columns import WORKER_LOG
from launch.runs.errors import RunFolderError, RunStopped
from launch.runtimes.runtime import WorkerError, run_tff
from launch.training.finished_run import FinishedRun

if TYPE_CHECKING:
    from tff_algos.protocol import Weights


def compute_personal_weights(
    run: FinishedRun, data: FederatedData, client_names: Sequence[str]
) -> Mapping[str, "Weights"]:
    """What each of these clients made of its shared model at the end of the run, by the client's name.

    Starts a TFF worker for it, unless there are no clients to do it for.

    Raises:
      RunFolderError: the run has no checkpoint of its end.
      RunStopped: the worker failed.
    """
    if not client_names:
        return {}
    try:
        with run_tff(str(run.path / WORKER_LOG)):
            return _personalize(run, data, client_names)
    except WorkerError as error:
        raise RunStopped(f"error: {error}", 1) from error


def _personalize(run: FinishedRun, data: FederatedData, client_names: Sequence[str]) -> dict[str, "Weights"]:
    from launch.runs.checkpoints import Checkpoints
    from launch.training.training_run import build_process

    process = build_process(run.config, run.build_spec(), data)
    checkpoints = Checkpoints(run.path / "checkpoints")
    try:
        round_num, state = checkpoints.restore(process.initialize())
    finally:
        checkpoints.close()
    if round_num != run.rounds:
        raise RunFolderError(f"--run_dir={run.path}: its last checkpoint is of round {round_num}, not {run.rounds}")
    clients = [client for client in data.clients if client.name in client_names]
    return {client.name: weights for client, weights in process.personalize(state, clients)}
