"""IFCA: Algorithm 1 of Ghosh, Chung, Yin and Ramchandran 2020, with averaged models; an algorithm of your own.

"An Efficient Framework for Clustered Federated Learning", NeurIPS 2020. In the project's folder, type
`python -m launch.train --algo=examples.ifca:ALGORITHM`; in the folder of this file, `--algo=ifca:ALGORITHM`. A round:
1. The server sends all k models to a cohort (all clients by default).
2. Each client finds the model with the least loss on its examples, trains that one, and sends its update.
3. The server adds to each model the mean of its updates.

All that a round has beside this comes from `SynchronousProcess`: cohorts, weights, compression, other aggregators, the
server's optimizer, bytes and virtual time. A client keeps which model was its best; who was not asked yet has the
first. Deviation from the paper: the models begin as k random ones, with no start near their clusters.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from launch.settings.algorithms import Algorithm
from tff_algos.client.client_data import read_split
from tff_algos.client.local_training import predict_logits, train_locally
from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.rounds.synchronous import SynchronousProcess, build_parts
from tff_algos.rounds.training_phase import Sent
from tff_algos.settings.config_fields import setting
from tff_algos.settings.synchronous import SynchronousConfig
from tff_algos.weights import initialize_weights, stack_models, take_model


@dataclasses.dataclass(frozen=True)
class IFCAConfig(SynchronousConfig):
    """Each field is a flag, `--ifca_<field>`, with this default, help text and range; so are those of the base."""

    num_models: int = setting(2, "Models that the clients choose from (paper: k).", minimum=1)


def build_choice(model_spec, config):
    """Step 2 as a client does it; called while a graph is traced."""

    def work(told):
        client = told.client
        x, y = read_split(client.path, "train", model_spec)
        models = [tuple(stacked[index] for stacked in told.models) for index in range(config.num_models)]
        logits = [predict_logits(model_spec, each, x) for each in models]
        losses = [tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, each)) for each in logits]
        best = tf.argmin(losses, output_type=tf.int32)
        start = tuple(stacked[best] for stacked in told.models)
        result = train_locally(model_spec, config.training, start, x, y, client.seed, client.learning_rate)
        return Sent(ClientUpdate(result, best, client.weight), kept=(best,))

    return work


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class IFCAProcess(SynchronousProcess):
    """IFCA; what is not here is FedAvg's. `first_models` are the k models before the first round, stacked."""

    first_models: tuple[np.ndarray, ...]

    takes_new_clients = False

    def initialize(self):
        parts = self.initialize_parts(self.config.num_models)
        return super().initialize()._replace(models=self.first_models, **parts)

    def list_phases(self, state, cohort):
        (work,), num_models = super().list_phases(state, cohort), self.config.num_models
        return [work._replace(bytes_down=num_models * work.bytes_down)]

    def get_models(self, state):
        sent = self.distribute(state)
        return {f"model_{index}": take_model(sent, index) for index in range(self.config.num_models)}

    def client_model(self, state):
        return [f"model_{best}" for (best,) in self.store.iterate(state.kept, self.everyone)]


def build_ifca_process(model_spec, clients, config, seed):
    """IFCA as a process."""
    work, kept = build_choice(model_spec, config), lambda weights: (np.int32(0),)
    models = [initialize_weights(model_spec, seed, f"model {index}") for index in range(config.num_models)]
    parts = build_parts(model_spec, clients, config, seed, work, kept=kept)
    return IFCAProcess(**parts, first_models=stack_models(models))


ALGORITHM = Algorithm(
    name="ifca",
    title="IFCA",
    color="#56B4E9",
    summary="IFCA (Ghosh et al. 2020): each client trains the best of several models.",
    config_class=IFCAConfig,
    builder="build_ifca_process",
    unused=("privacy",),
)
