"""The step that a training file takes: the local optimizer of a run, with its state among the file's variables.

It is the step of `tff_algos.client.training_steps` with TFF's optimizers, in operations that TFLite has itself. A round
begins where the weights are set: the optimizer starts afresh there, and the proximal term pulls to those weights.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from models.model_names import ModelError
from models.training_terms import constrain

OPTIMIZERS = SGD, ADAM = ("sgd", "adam")
# Those of TFF's `build_adam`.
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-7


class LocalStep(NamedTuple):
    """How a step follows from a gradient; by default plain gradient descent.

    Attributes:
      optimizer: of OPTIMIZERS.
      momentum: of sgd, from 0 to below 1.
      weight_decay: times a kernel, a trained weight of two or more axes, is added to its gradient.
      proximal_weight: times what lies between a weight and the one that the round began with is added to its gradient.
    """

    optimizer: str = SGD
    momentum: float = 0.0
    weight_decay: float = 0.0
    proximal_weight: float = 0.0


PLAIN = LocalStep()


class StepState:
    """The variables of a step beside the weights, of those that are trained only, and what is done with them.

    Args:
      rule: the step.
      trained: the variables that are trained, float32, with the values that the first round begins with.

    Raises:
      ModelError: an unknown optimizer, or a momentum with adam.
    """

    def __init__(self, rule: LocalStep, trained: Sequence[tf.Variable]):
        if rule.optimizer not in OPTIMIZERS:
            raise ModelError(f"local optimizer {rule.optimizer}: expected one of {', '.join(OPTIMIZERS)}")
        if rule.momentum and rule.optimizer == ADAM:
            raise ModelError(f"momentum={rule.momentum:g}: expected 0 with adam, which has no such setting")
        self._rule, self._trained = rule, list(trained)
        averages = {"accumulator": rule.momentum or rule.optimizer == ADAM, "preconditioner": rule.optimizer == ADAM}
        zeros = {name: [np.zeros(variable.shape, np.float32) for variable in trained] for name in averages}
        self._anchors = self._make("anchor", [variable.numpy() for variable in trained] if rule.proximal_weight else [])
        self._accumulators, self._preconditioners = (
            self._make(name, zeros[name] if is_kept else []) for name, is_kept in averages.items()
        )
        self._count = self._make("step", [np.float32(0)] if self._accumulators else [])

    def _make(self, name: str, values: Sequence[np.ndarray]) -> list[tf.Variable]:
        return [tf.Variable(value, trainable=False, name=f"{name}_{i}") for i, value in enumerate(values)]

    @property
    def variables(self) -> dict[str, tf.Variable]:
        """All of them, by name."""
        kept = (*self._anchors, *self._accumulators, *self._preconditioners, *self._count)
        return {variable.name.removesuffix(":0"): variable for variable in kept}

    def begin_round(self, weights: Mapping[int, tf.Tensor]) -> None:
        """Starts the optimizer afresh and pulls to these weights from now on, by the id of their variable."""
        for anchor, variable in zip(self._anchors, self._trained, strict=True) if self._anchors else ():
            anchor.assign(weights[id(variable)])
        for count in self._count:
            count.assign(0.0)  # at which a step takes the averages for zeros, whatever they are

    def take(self, gradients: Sequence[tf.Tensor], learning_rate: tf.Tensor) -> None:
        """Takes a step; gradients are of the loss with the model's own losses, one for each trained variable."""
        values = [variable.read_value() for variable in self._trained]
        dense = [tf.convert_to_tensor(gradient) for gradient in gradients]  # an embedding's are the rows looked up
        steps, kept = self._compute_steps(self._add_terms(dense, values), learning_rate)
        stepped = constrain(self._trained, [value - step for value, step in zip(values, steps, strict=True)])
        # All are computed before the first is assigned.
        for variable, value in (*zip(self._trained, stepped, strict=True), *kept):
            variable.assign(value)

    def _add_terms(self, gradients: Sequence[tf.Tensor], values: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
        pull, decay = self._rule.proximal_weight, self._rule.weight_decay
        if pull:
            moved = zip(gradients, values, self._anchors, strict=True)
            gradients = [gradient + pull * (value - anchor) for gradient, value, anchor in moved]
        if decay:
            pairs = zip(gradients, values, strict=True)
            gradients = [gradient + decay * value if value.shape.rank >= 2 else gradient for gradient, value in pairs]
        return gradients

    def _compute_steps(
        self, gradients: Sequence[tf.Tensor], rate: tf.Tensor
    ) -> tuple[list[tf.Tensor], list[tuple[tf.Variable, tf.Tensor]]]:
        """(what to subtract from each weight, the new value of each variable of the optimizer)."""
        if not self._count:
            return [rate * gradient for gradient in gradients], []
        count = self._count[0].read_value()
        counted = (self._count[0], count + 1.0)
        accumulators = self._read(self._accumulators, count)
        if self._rule.optimizer == SGD:
            pairs = zip(accumulators, gradients, strict=True)
            moments = [self._rule.momentum * average + gradient for average, gradient in pairs]
            return [rate * moment for moment in moments], [*zip(self._accumulators, moments, strict=True), counted]
        first, second = np.float32(1) - np.float32(BETA_1), np.float32(1) - np.float32(BETA_2)
        squares = [tf.square(gradient) for gradient in gradients]
        means = _move(accumulators, gradients, first)
        spreads = _move(self._read(self._preconditioners, count), squares, second)
        powers = [1.0 - tf.pow(base, counted[1]) for base in (BETA_1, BETA_2)]
        scaled = rate * tf.sqrt(powers[1]) / powers[0]
        steps = [scaled * mean / (tf.sqrt(spread) + EPSILON) for mean, spread in zip(means, spreads, strict=True)]
        kept = [*zip(self._accumulators, means, strict=True), *zip(self._preconditioners, spreads, strict=True)]
        return steps, [*kept, counted]

    def _read(self, averages: Sequence[tf.Variable], count: tf.Tensor) -> list[tf.Tensor]:
        """The averages, or zeros in the first step of a round: not a product, since NaN times 0 is NaN."""
        return [tf.where(count > 0, average.read_value(), 0.0) for average in averages]


def _move(averages: Sequence[tf.Tensor], values: Sequence[tf.Tensor], share: np.float32) -> list[tf.Tensor]:
    return [average + (value - average) * share for average, value in zip(averages, values, strict=True)]
