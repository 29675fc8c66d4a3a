"""Local training alone: every client trains a model on its own examples, and nothing is ever sent.

All clients start from the same model. A round:
1. Each client trains its own model of the round before, as a client of FedAvg trains the global one.
2. The trained model is the client's model; a client whose training is not finite keeps the one it had.

There is no shared model, so `test_accuracy` is the mean over the clients' models.
"""

import numpy as np

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.client.local_training import count_examples_trained
from tff_algos.local_only.config import LocalOnlyConfig
from tff_algos.protocol import ClientWork, Weights
from tff_algos.rounds.separate_training import SeparateProcess, ServerState, build_separate_parts
from tff_algos.weights import take_model


class LocalOnlyProcess(SeparateProcess):
    """Local training: a model for each client, under its name."""

    shares_models = False

    def list_work(self, state: ServerState, next_state: ServerState) -> list[ClientWork]:
        """Every client trains; nothing travels."""
        num_examples = np.array([count_examples_trained(self.config.training, n) for n in self.clients.num_train])
        return [ClientWork(self.everyone, num_examples)]

    def get_models(self, state: ServerState) -> dict[str, Weights]:
        return {client.name: take_model(state.models, client.index) for client in self.clients.clients}

    def client_model(self, state: ServerState) -> list[str]:
        return [client.name for client in self.clients.clients]


def build_local_only_process(
    model_spec: ModelSpec, clients: FederatedData, config: LocalOnlyConfig, seed: int
) -> LocalOnlyProcess:
    """Local training as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the model to train.
      clients: the federation; all clients train in every round.
      config: settings.
      seed: of the first weights and the local training.
    """
    return LocalOnlyProcess(**build_separate_parts(model_spec, clients, config, seed))
