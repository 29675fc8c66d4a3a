"""pFedMe: Algorithm 1 of Dinh, Tran and Nguyen 2020.

"Personalized Federated Learning with Moreau Envelopes", NeurIPS 2020. A client's model theta minimizes its loss f_i
plus lambda / 2 |theta - w|^2, and the minimum as a function of w, f_i's Moreau envelope, is what w is trained on. A
round:
1. The server sends w, and a client of the cohort starts with w_i = theta_i = w.
2. On each of R batches it takes K steps of theta_i along the gradient of f_i(theta_i) + lambda / 2 |theta_i - w_i|^2,
   and then moves w_i to w_i - eta lambda (w_i - theta_i).
3. It keeps theta_i, its personal model, and sends w_i - w. The server's w becomes (1 - beta) w + beta mean(w_i).

| paper | here |
|---|---|
| w, theta_i | `ServerState.models`, what a client keeps |
| lambda, K, eta | `pull`, `inner_steps`, `outer_rate` |
| R, |D|, the rate of theta's steps | steps or epochs, batch size and rate of `training` |
| beta | `server.learning_rate`, 1 by default |

Limit cases: with K = 1 and eta lambda = 1, w_i is always theta_i, which is then FedAvg; with lambda = 0, w stays, and
theta_i is trained by itself. Deviations from the paper:
- Only the cohort works. In Algorithm 1 all clients do, and the server takes the mean of some; there are no others whose
  work would count. Who has not taken part yet has w for a personal model.
- theta_i goes on from batch to batch, as in the authors' code, and K steps end it, not an accuracy.
- BatchNorm's statistics are those that theta_i sees, in both models.
- Clients weigh by their examples by default.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from tff_algos.client.client_data import read_split
from tff_algos.client.joined_optimizer import Carried, JoinedOptimizer, as_written
from tff_algos.client.local_training import reject_if_not_finite, reject_unless, train_by_rule
from tff_algos.client.training_steps import Measure, list_values
from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.rounds.synchronous import SynchronousProcess, build_parts
from tff_algos.rounds.training_phase import Sent, Told
from tff_algos.weights import add_deltas, is_float, keep_finite, take_model


class Carry(NamedTuple):
    """What goes from batch to batch: the optimizer's part, with theta, and w, one tensor for each trained variable."""

    theta: Carried
    w: tuple[tf.Tensor, ...]


class EnvelopeRule:
    """The variables are theta. The proximal weight of the training is lambda.

    Args:
      optimizer: takes the steps of theta.
      model: whose variables they are.
      inner_steps: K, steps on a batch.
      move: eta lambda, by which w goes to theta.
    """

    def __init__(self, optimizer: JoinedOptimizer, model: tf.keras.Model, inner_steps: int, move: float):
        self._optimizer, self._model, self._inner_steps, self._move = optimizer, model, inner_steps, move

    @as_written
    def start(self) -> Carry:
        """theta and w are alike."""
        return Carry(self._optimizer.start(), tuple(each.read_value() for each in self._optimizer.variables))

    def take(self, carried: Carry, measure: Measure) -> tuple[Carry, tf.Tensor]:
        theta, total = carried.theta, tf.constant(0.0)
        for _ in tf.range(self._inner_steps):
            loss, gradients = measure(carried.w)
            theta = self._optimizer.step(theta, gradients)
            total += loss
        w = move_towards(carried.w, self._optimizer.variables, self._move)
        return Carry(theta, w), total / float(self._inner_steps)

    @as_written
    def finish(self, carried: Carry) -> tuple[tf.Tensor, ...]:
        """w as the weights of a model, in their order; what is not trained is theta's."""
        return list_values(self._model.weights, self._optimizer.variables, carried.w)


@as_written
def move_towards(
    weights: Sequence[tf.Tensor], targets: Sequence[tf.Tensor | tf.Variable], move: float
) -> tuple[tf.Tensor, ...]:
    """w - eta lambda (w - theta), the local update of Algorithm 1, for each weight."""
    return tuple(w - move * (w - theta) for w, theta in zip(weights, targets, strict=True))


class PFedMeProcess(SynchronousProcess):
    """pFedMe."""

    is_personal = True

    @property
    def models_trained(self):
        """Each example is trained on K times."""
        return self.config.inner_steps

    def personalize(self, state, clients):
        took_part, shared = set(state.kept.clients.tolist()), take_model(self.send(state), 0)
        for client, own in self.iterate_kept(state, clients):
            yield client, own if client.index in took_part else shared


def build_envelope_training(model_spec, config):
    """A client's work: theta, which it keeps, and w, whose change it sends."""
    # The term of FedProx with another anchor: each step is told the newest w_i.
    pulled = dataclasses.replace(config.training, proximal_weight=config.pull)
    make_rule = functools.partial(EnvelopeRule, inner_steps=config.inner_steps, move=config.outer_rate * config.pull)

    def work(told: Told) -> Sent:
        client, start = told.client, told.model
        x, y = read_split(client.path, "train", model_spec)
        own, w = train_by_rule(model_spec, pulled, start, x, y, client.seed, client.learning_rate, make_rule)
        deltas = [new - old for new, old in zip(w, start, strict=True) if is_float(old)]
        # w can look finite where theta has diverged.
        sent = reject_unless(own.is_finite, reject_if_not_finite(deltas, own.loss_sum, own.num_trained))
        kept = keep_finite(sent.is_finite, add_deltas(start, own.weights_delta), told.kept)
        return Sent(ClientUpdate(sent, client.group, client.weight), kept=kept)

    return work


def build_pfedme_process(model_spec, clients, config, seed):
    """pFedMe as a process; the arguments are those of `build_fed_avg_process`."""
    work = build_envelope_training(model_spec, config)
    return PFedMeProcess(**build_parts(model_spec, clients, config, seed, work, kept=tuple))
