"""SCAFFOLD: Algorithm 1 of Karimireddy et al. 2020, with option II for the control variates.

"SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML 2020. A round is one of FedAvg in which
- the server sends its control variate c beside the model x, and each step of client i is along g_i - c_i + c;
- after its K steps to y_i, client i keeps c_i+ = c_i - c + (x - y_i) / (K eta_l), and sends the difference to c_i;
- the server adds the sum of these differences over the cohort, divided by the number N of all clients, to c.

| paper | here |
|---|---|
| x, c | `ServerState.models`, `ServerState.own` |
| c_i | what a client keeps, zeros at first |
| K, eta_l, eta_g | `count_steps`, `training.learning_rate`, `server.learning_rate` |

Limit case: control variates that are held at zero are FedAvg. Deviations from the paper: clients weigh by their
examples by default (c is always the plain mean); one whose update is not finite keeps its c_i and sends none; the last
batch of an epoch may be smaller, and counts like another.
"""

import numpy as np
import tensorflow as tf

from tff_algos.client.client_data import read_split
from tff_algos.client.local_training import count_steps, train_locally
from tff_algos.protocol import Weights
from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.rounds.synchronous import SynchronousProcess, build_parts
from tff_algos.rounds.training_phase import Sent, Told
from tff_algos.weights import compute_model_bytes, is_float


class ScaffoldProcess(SynchronousProcess):
    """SCAFFOLD."""

    def initialize(self):
        return super().initialize()._replace(own=self.store.initial)

    def distribute(self, state):
        return self.send(state), state.own

    def finish(self, state, stepped, outcome, cohort):
        pairs = zip(state.own, outcome.sums, strict=True)
        return stepped._replace(own=tuple(c + np.asarray(d) / len(self.everyone) for c, d in pairs))

    def list_phases(self, state, cohort):
        """A control variate travels beside the model, both ways."""
        (work,), control_bytes = super().list_phases(state, cohort), compute_model_bytes(state.own)
        return [work._replace(bytes_down=work.bytes_down + control_bytes, bytes_up=work.bytes_up + control_bytes)]


def build_controls(weights: Weights) -> Weights:
    """Control variates before the first round."""
    return tuple(np.zeros_like(array) for array in weights if is_float(array))


def build_controlled_training(model_spec, training):
    """A client's work."""

    def work(told: Told) -> Sent:
        client, (models, server_control), own_control = told.client, told.models, told.kept
        x, y = read_split(client.path, "train", model_spec)
        start, rate = tuple(model[client.group] for model in models), client.learning_rate
        correction = tuple(c - c_i for c, c_i in zip(server_control, own_control, strict=True))
        result = train_locally(model_spec, training, start, x, y, client.seed, rate, correction=correction)
        # 0 without examples, where no step was taken that c_i could be read from.
        length = tf.cast(count_steps(training, tf.shape(y)[0]), tf.float32) * rate
        pairs = zip(server_control, result.weights_delta, strict=True)
        moves = [
            tf.where(result.is_finite & (length > 0), -c - tf.math.divide_no_nan(d, length), 0.0) for c, d in pairs
        ]
        kept = tuple(c_i + move for c_i, move in zip(own_control, moves, strict=True))
        return Sent(ClientUpdate(result, client.group, client.weight), tuple(moves), kept)

    return work


def build_scaffold_process(model_spec, clients, config, seed):
    """SCAFFOLD as a process; the arguments are those of `build_fed_avg_process`."""
    work = build_controlled_training(model_spec, config.training)
    return ScaffoldProcess(**build_parts(model_spec, clients, config, seed, work, kept=build_controls))
