"""FedNova: Wang, Liu, Liang, Joshi and Poor 2020.

"Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization", NeurIPS 2020. A round is one of
FedAvg, but a client's update is divided by the norm |a_i|_1 of what its steps weigh, and the server multiplies the
mean by tau_eff = sum_i p_i |a_i|_1, so that clients with more steps do not pull the model to their own optimum (Eq. 5
and 6, with tau_eff of section 4.2).

| paper | here |
|---|---|
| tau_i | `count_steps` |
| a_i, |a_i|_1 | `sum_step_weights` |
| d_i, p_i | the update that is sent, the client's weight over the sum of them |
| rho, mu | `training.momentum`, `training.proximal_weight` |

Limit case: clients with equally many steps are FedAvg. Deviations from the paper: the drift in the metrics is that of
the divided updates. Momentum together with a proximal term is refused, since the paper gives a_i for each alone.
"""

import tensorflow as tf

from tff_algos.client.client_data import read_split
from tff_algos.client.local_training import count_steps, train_locally
from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.rounds.synchronous import SynchronousProcess, build_parts
from tff_algos.rounds.training_phase import Sent, Told


class FedNovaProcess(SynchronousProcess):
    """FedNova; the server's step is along the mean of the divided updates, times tau_eff."""

    def apply(self, state, outcome):
        aggregate = outcome.aggregate
        weighted, weight = map(float, outcome.sums)
        models, server = self.server_step.step(
            *(state.models, aggregate.update, state.server, aggregate.has_update, aggregate.divisor),
            factor=weighted / weight if weight else 0.0,
        )
        return state._replace(models=models, server=server)


def sum_step_weights(num_steps: tf.Tensor, momentum: float, pull: tf.Tensor) -> tf.Tensor:
    """|a_i|_1, float32, in any graph.

    Args:
      num_steps: tau_i, float32.
      momentum: rho; 0 with a pull.
      pull: eta mu, by which a step goes back to the start, float32 scalar below 1; 0 without a proximal term.
    """
    # The momentum is a setting, so Python decides; the pull has the rate of the round, a tensor.
    if momentum:
        return (num_steps - momentum * (1 - momentum**num_steps) / (1 - momentum)) / (1 - momentum)
    # (1 - (1 - pull)^tau) / pull; of a small pull the power would be 1 but for rounding.
    return tf.where(pull > 0, -tf.math.divide_no_nan(tf.math.expm1(num_steps * tf.math.log1p(-pull)), pull), num_steps)


def build_normalized_training(model_spec, training):
    """A client's work: the usual training, and the update divided by |a_i|_1; p_i |a_i|_1 and p_i are summed."""

    def work(told: Told) -> Sent:
        client = told.client
        x, y = read_split(client.path, "train", model_spec)
        start = told.model
        result = train_locally(model_spec, training, start, x, y, client.seed, client.learning_rate)
        num_steps = tf.cast(count_steps(training, tf.shape(y)[0]), tf.float32)
        total = sum_step_weights(num_steps, training.momentum, client.learning_rate * training.proximal_weight)
        divided = tuple(tf.math.divide_no_nan(delta, total) for delta in result.weights_delta)
        # Who is left out of the mean must not count in tau_eff either.
        weight = tf.where(result.is_finite, client.weight, 0.0)
        squared = tf.math.divide_no_nan(result.squared_norm, tf.square(total))
        sent = result._replace(weights_delta=divided, squared_norm=squared)
        return Sent(ClientUpdate(sent, client.group, client.weight), (weight * total, weight))

    return work


def build_fed_nova_process(model_spec, clients, config, seed):
    """FedNova as a process; the arguments are those of `build_fed_avg_process`."""
    return FedNovaProcess(
        **build_parts(model_spec, clients, config, seed, build_normalized_training(model_spec, config.training))
    )
