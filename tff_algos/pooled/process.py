"""Pooled data: all clients' train examples in one place, and one model that is trained on them there.

No federated method, but the bound that they are measured by: what one model could learn if the data need not stay with
the clients. A round:
1. In the first, each client sends its train examples, once and for all. Nothing is sent after that.
2. The model is trained on all examples, as a client of FedAvg trains on its own: `training.epochs` passes, or
   `training.steps` batches. One whose training is not finite stays as it was.

All clients are tested with this model, those that take no part in training, too.

Limit case: of one client, it is local training, and FedAvg of one client.

Deviations: there is no paper. By the virtual clock, the pool is trained as fast as the fastest device trains and is
always there; a server would be faster, but the count says what work it is. Its energy is nobody's. Validation and test
examples stay with the clients, and the model does not travel back to them.
"""

import functools
import math

import numpy as np

from datasets.federated_data import FederatedData
from datasets.pooled_client import pool_clients
from models.model_spec import ModelSpec
from tff_algos.client.local_training import count_examples_trained
from tff_algos.pooled.config import PooledConfig
from tff_algos.protocol import ClientWork, Weights
from tff_algos.rounds.separate_training import SeparateProcess, ServerState, build_separate_parts
from tff_algos.weights import take_model


class PooledProcess(SeparateProcess):
    """Training on the pool, as the only client."""

    takes_new_clients = True

    @functools.cached_property
    def trained(self) -> FederatedData:
        return pool_clients(self.clients)

    def list_work(self, state: ServerState, next_state: ServerState) -> list[ClientWork]:
        """Step 1: what each client's examples weigh, as they lie in its files, in the first round."""
        if state.round_num:
            return []
        example, label = self.clients.format, self.clients.format.labels
        num_bytes = math.prod(example.input_shape) * np.dtype(example.input_dtype).itemsize
        num_bytes += math.prod(label.shape) * np.dtype(label.dtype).itemsize
        num_bytes += 0 if example.weights is None else np.dtype(np.float32).itemsize
        return [ClientWork(self.everyone, bytes_up=num_bytes * self.clients.num_train)]

    def compute_seconds(self, state: ServerState) -> float:
        num_examples = count_examples_trained(self.config.training, self.trained.clients[0].num_train)
        fastest = self.clients.profiles.examples_per_s[self.everyone].max()
        return super().compute_seconds(state) + num_examples / float(fastest)

    def get_models(self, state: ServerState) -> dict[str, Weights]:
        return {"global": take_model(state.models, 0)}

    def client_model(self, state: ServerState) -> list[str]:
        return ["global"] * len(self.clients.everyone)


def build_pooled_process(
    model_spec: ModelSpec, clients: FederatedData, config: PooledConfig, seed: int
) -> PooledProcess:
    """Training on pooled data as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the model to train.
      clients: the federation; the examples of all clients are trained on, but for the new ones'.
      config: settings.
      seed: of the first weights and the training.
    """
    return PooledProcess(**build_separate_parts(model_spec, clients, config, seed))
