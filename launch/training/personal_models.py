"""The personal models of a finished run, made anew from its last checkpoint or its best round.

Imports TensorFlow only when it must.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from datasets.federated_data import FederatedData
from launch.runs.checkpoints import Checkpoints
from launch.runs.columns import CHECKPOINTS, KEPT, WORKER_LOG
from launch.runs.errors import RunFolderError, RunStopped
from launch.runtimes.runtime import WorkerError, quiet_tensorflow
from launch.training.finished_run import FinishedRun
from launch.training.run_runtime import ensure_installed, keep_to_this_machine, open_run_runtime, settle_device_again

if TYPE_CHECKING:
    from tff_algos.protocol import Weights


def compute_personal_weights(
    run: FinishedRun, data: FederatedData, client_names: Sequence[str]
) -> Mapping[str, "Weights"]:
    """The weights that each of these clients ends up with, by the client's name.

    The run's own runtime trains them, a TFF worker of this machine for example, unless no client is asked for.

    Raises:
      RunFolderError: the run has no checkpoint of its last round, or no state of its best one if that is asked for.
      RunStopped: the worker failed.
      FlagError: the worker is not installed and cannot be got.
    """
    if not client_names:
        return {}
    ensure_installed(run.config)
    try:
        log_path = str(run.path / WORKER_LOG)
        with quiet_tensorflow(log_path):
            config = settle_device_again(run.config)
        with open_run_runtime(keep_to_this_machine(config), log_path):
            from launch.training.training_run import build_process

            process = build_process(run.config, run.build_spec(to_train=True), data)
            process.keep_in(run.path / KEPT)
            checkpoints, done, start = Checkpoints(run.path / CHECKPOINTS), run.rounds, process.initialize()
            if run.is_best:
                state = checkpoints.load_best(done, start)
            else:
                done, state = checkpoints.restore(start)
            if done != run.rounds:
                raise RunFolderError(f"--run_dir={run.path}: its last checkpoint is of round {done}, not {run.rounds}")
            clients = [client for client in data.everyone if client.name in client_names]
            return {client.name: weights for client, weights in process.personalize(state, clients)}
    except WorkerError as error:
        raise RunStopped(f"error: {error}", 1) from error
