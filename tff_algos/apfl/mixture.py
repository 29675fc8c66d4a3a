"""The steps of APFL on a batch: of w, of v through the mixture of both, and of the mixture's share alpha."""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from tff_algos.client.joined_optimizer import Carried, JoinedOptimizer, as_written
from tff_algos.client.training_steps import Measure, list_values


class Carry(NamedTuple):
    """What goes from batch to batch.

    Attributes:
      w: the optimizer's part of w.
      v: the optimizer's part of v.
      statistics: what is not trained, such as BatchNorm's statistics, as the mixture sees it.
      alpha: float32 scalar.
      is_first: whether no step has been taken, bool.
    """

    w: Carried
    v: Carried
    statistics: tuple[tf.Tensor, ...]
    alpha: tf.Tensor
    is_first: tf.Tensor


@as_written
def mix(alpha, own: Sequence, shared: Sequence) -> tuple:
    """alpha v + (1 - alpha) w for each weight, in any graph or in NumPy."""
    return tuple(alpha * v + (1 - alpha) * w for v, w in zip(own, shared, strict=True))


@as_written
def step_alpha(alpha, own: Sequence, shared: Sequence, gradients: Sequence, rate) -> tf.Tensor:
    """alpha - rate <v - w, gradient at the mixture>, held between 0 and 1."""
    products = [tf.reduce_sum((v - w) * g) for v, w, g in zip(own, shared, gradients, strict=True)]
    return tf.clip_by_value(alpha - rate * tf.add_n(products), 0.0, 1.0)


class MixtureRule:
    """Between steps the variables are w, and what is not trained is as w sees it.

    Args:
      optimizer: takes the steps of w, and those of v.
      model: whose variables they are.
      own: v before the first step, in the order of `model.weights`.
      alpha: before the first step, float32 scalar.
      rate: of alpha, which moves in the first step alone; 0 holds it.
    """

    def __init__(self, optimizer: JoinedOptimizer, model: tf.keras.Model, own: Sequence[tf.Tensor], alpha, rate):
        self._optimizer, self._model, self._alpha, self._rate = optimizer, model, alpha, rate
        own_of = {variable.ref(): value for variable, value in zip(model.weights, own, strict=True)}
        trained = {variable.ref() for variable in optimizer.variables}
        self._others = [variable for variable in model.weights if variable.ref() not in trained]
        self._own, self._statistics = (
            tuple(own_of[variable.ref()] for variable in part) for part in (optimizer.variables, self._others)
        )

    @as_written
    def start(self) -> Carry:
        variables = self._optimizer.variables
        w, shared = self._optimizer.start(), _read(variables)
        _assign(variables, self._own)
        v = self._optimizer.start()
        _assign(variables, shared)
        return Carry(w, v, self._statistics, self._alpha, tf.constant(True))

    def take(self, carried: Carry, measure: Measure) -> tuple[Carry, tf.Tensor]:
        """The loss is that of w."""
        variables, alpha = self._optimizer.variables, carried.alpha
        shared, own = _read(variables), self._optimizer.split(carried.v)
        loss, gradients = measure(None)
        of_shared = _read(self._others)
        _assign(variables, mix(alpha, own, shared))
        _assign(self._others, carried.statistics)
        _, of_mixture = measure(None)
        of_own = _read(self._others)
        # The gradient of the mixture's loss by v is alpha times that by the mixture.
        v = self._optimizer.step(carried.v, [alpha * gradient for gradient in of_mixture])
        moved = step_alpha(alpha, own, shared, of_mixture, self._rate)
        w = self._optimizer.step(carried.w, gradients)
        _assign(self._others, of_shared)
        return Carry(w, v, of_own, tf.where(carried.is_first, moved, alpha), tf.constant(False)), loss

    @as_written
    def finish(self, carried: Carry) -> tuple[tuple[tf.Tensor, ...], tf.Tensor]:
        """v as the weights of a model, in their order, and alpha."""
        values = *self._optimizer.split(carried.v), *carried.statistics
        return list_values(self._model.weights, [*self._optimizer.variables, *self._others], values), carried.alpha


@as_written
def _read(variables: Sequence[tf.Variable]) -> tuple[tf.Tensor, ...]:
    return tuple(variable.read_value() for variable in variables)


@as_written
def _assign(variables: Sequence[tf.Variable], values: Sequence[tf.Tensor]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
