"""The steps of pFedMe on a batch: to the proximal point of the loss, and of w towards that."""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from tff_algos.client.joined_optimizer import Carried, JoinedOptimizer, as_written
from tff_algos.client.training_steps import Measure, list_values


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
