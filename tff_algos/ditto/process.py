"""Ditto: Algorithm 1 of Li, Hu, Beirami and Smith 2021.

"Ditto: Fair and Robust Federated Learning Through Personalization", ICML 2021. A round is one of FedAvg, in which each
client of the cohort also trains its personal model v_k, which it keeps, on F_k(v_k) + lambda / 2 |v_k - w|^2.

| paper | here |
|---|---|
| w^t, v_k | `ServerState.models`, what a client keeps |
| lambda | `pull` |

Limit case: a pull of 0 is local training. Whatever the pull, w is the model of FedAvg. Deviations from the paper:
- v_k and the copy of w are trained with the same settings, on the same batches. The optimizer can be Adam.
- A client whose personal training is not finite keeps the v_k it had, and counts as rejected.
"""

import dataclasses

import tensorflow as tf

from tff_algos.client.client_data import read_split
from tff_algos.client.local_training import train_locally
from tff_algos.protocol import NUM_REJECTED
from tff_algos.rounds.synchronous import SynchronousProcess, build_parts
from tff_algos.rounds.training_phase import Sent, Told, build_group_training
from tff_algos.weights import add_deltas


class DittoProcess(SynchronousProcess):
    """Ditto; who has not taken part yet has the first model as a personal one."""

    is_personal, takes_new_clients = True, False
    models_trained = 2

    def describe(self, state, new_state, outcome, cohort):
        num_rejected = int(outcome.totals.num_rejected) + int(outcome.sums)
        return {NUM_REJECTED: num_rejected, **super().describe(state, new_state, outcome, cohort)}

    def personalize(self, state, clients):
        return self.iterate_kept(state, clients)


def build_personal_training(model_spec, config):
    """A client's work: the shared model's training, and that of the personal model, which it keeps."""
    train_shared = build_group_training(model_spec, config.training)
    pulled = dataclasses.replace(config.training, proximal_weight=config.pull)

    def work(told: Told) -> Sent:
        sent, client = train_shared(told), told.client
        x, y = read_split(client.path, "train", model_spec)
        own = train_locally(model_spec, pulled, told.kept, x, y, client.seed, client.learning_rate, anchor=told.model)
        # Deltas that are not finite come as zeros, so v_k stays then.
        kept = add_deltas(told.kept, own.weights_delta)
        return sent._replace(sums=tf.cast(~own.is_finite, tf.float32), kept=kept)

    return work


def build_ditto_process(model_spec, clients, config, seed):
    """Ditto as a process; the arguments are those of `build_fed_avg_process`."""
    work = build_personal_training(model_spec, config)
    parts = build_parts(model_spec, clients, config, seed, work, kept=tuple)
    return DittoProcess(**parts)
