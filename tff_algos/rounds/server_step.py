"""The server's step along the clients' mean update: the last part of a round.

Plain, the default: model + learning rate * mean update. Otherwise the negative mean update is the gradient of one of
TFF's optimizers (Reddi et al. 2021, "Adaptive Federated Optimization", Algorithm 2), whose state is kept from round to
round, one for each model.

| paper | here |
|---|---|
| Delta_t | the mean update; the gradient is -Delta_t |
| eta, beta_1, beta_2, tau | `learning_rate`, `beta_1`, `beta_2`, `epsilon` |
| m_t, v_t | the optimizer's `accumulator` and `preconditioner` |
| v_-1 | 0 for Adam, 1e-6 for Yogi (tau^2 by default), `initial_accumulator` for Adagrad; the paper: at least tau^2 |

Deviations from the paper, all of them TFF's optimizers:
- Adam and Yogi correct the bias of the first rounds: the rate of step t is eta * sqrt(1 - beta_2^t) / (1 - beta_1^t).
  The paper's has no correction. tau is added to the root of the uncorrected v.
- Adagrad divides by sqrt(v + epsilon), the paper by sqrt(v) + tau, and it has no m_t (beta_1 = 0).

TFF's SGD has no Nesterov momentum and its RMSprop has no momentum: `StepMomentum` adds both.

A step is not checked: a rate that is too large makes weights that are not finite, as with plain averaging.
"""

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_algos.protocol import Weights
from tff_algos.settings.aggregation import ADAGRAD, ADAM, RMSPROP, YOGI, ServerStepConfig
from tff_algos.weights import add_deltas, is_float

State = tuple[np.ndarray, ...]
ROOT_AT_FIRST = 1e-6  # v_-1 of Yogi, TFF's default


class StepMomentum(tff.learning.optimizers.Optimizer):
    """Momentum on the steps of another optimizer, Nesterov's if asked for.

    With d the other's step: a = momentum * a + d; w = w + a, or w + momentum * a + d (Nesterov).
    """

    def __init__(self, inner: tff.learning.optimizers.Optimizer, momentum: float, is_nesterov: bool = False):
        self._inner, self._momentum, self._is_nesterov = inner, momentum, is_nesterov

    def initialize(self, specs: Any) -> collections.OrderedDict:
        zeros = tf.nest.map_structure(lambda spec: tf.zeros(spec.shape, spec.dtype), specs)
        return collections.OrderedDict(accumulator=zeros, inner=self._inner.initialize(specs), momentum=self._momentum)

    def next(self, state: Any, weights: Any, gradients: Any) -> tuple[collections.OrderedDict, Any]:
        # From zeros, so that what comes out is the step itself, without the rounding of a sum.
        inner, steps = self._inner.next(state["inner"], tf.nest.map_structure(tf.zeros_like, weights), gradients)
        momentum = state["momentum"]
        accumulator = tf.nest.map_structure(lambda a, d: momentum * a + d, state["accumulator"], steps)
        moved = accumulator
        if self._is_nesterov:
            moved = tf.nest.map_structure(lambda a, d: momentum * a + d, accumulator, steps)
        next_state = collections.OrderedDict(accumulator=accumulator, inner=inner, momentum=momentum)
        return next_state, tf.nest.map_structure(tf.add, weights, moved)


def build_optimizer(config: ServerStepConfig) -> tff.learning.optimizers.Optimizer:
    """TFF's optimizer of the settings; plain SGD for a plain step."""
    optimizers, rate = tff.learning.optimizers, config.learning_rate
    if config.optimizer == ADAM:
        return optimizers.build_adam(rate, config.beta_1, config.beta_2, config.epsilon)
    if config.optimizer == YOGI:
        return optimizers.build_yogi(rate, config.beta_1, config.beta_2, config.epsilon, ROOT_AT_FIRST)
    if config.optimizer == ADAGRAD:
        return optimizers.build_adagrad(rate, config.initial_accumulator, config.epsilon)
    if config.optimizer == RMSPROP:
        inner = optimizers.build_rmsprop(rate, config.decay, config.epsilon)
        return StepMomentum(inner, config.momentum) if config.momentum else inner
    if config.momentum and config.nesterov:
        return StepMomentum(optimizers.build_sgdm(rate), config.momentum, is_nesterov=True)
    return optimizers.build_sgdm(rate, config.momentum or None)


@dataclasses.dataclass(frozen=True, eq=False)
class ServerStep:
    """The server's step; made by `build_server_step`.

    The state is () if the step is plain. Else it is a tuple of NumPy arrays, the leaves of the optimizer's state in the
    order of `tf.nest.flatten`: as they are for one model, along a new axis 0 for stacked models.

    Attributes:
      config: settings.
      is_plain: whether the update is only added, without an optimizer.
      optimizer: TFF's.
      initial: the optimizer's first state, nested as the optimizer has it, leaves NumPy.
    """

    config: ServerStepConfig
    is_plain: bool
    optimizer: tff.learning.optimizers.Optimizer
    initial: Any

    def initialize_one(self) -> State:
        """The first state of a model that is not stacked."""
        return () if self.is_plain else tuple(tf.nest.flatten(self.initial))

    def initialize(self, num_models: int) -> State:
        """The first state of so many stacked models, the same for each."""
        return tuple(np.stack([leaf] * num_models) for leaf in self.initialize_one())

    def step(
        self,
        models: Weights,
        means: Sequence[np.ndarray],
        state: State,
        has_update: np.ndarray,
        divisor: float = 1,
        factor: float = 1.0,
    ) -> tuple[Weights, State]:
        """The next models and the next state.

        Args:
          models: stacked along axis 0.
          means: the mean update of each model, one array a floating-point weight, stacked likewise; zeros for a model
            without an update.
          state: of `initialize`, or of the step before.
          has_update: bool, shape (models,). A model without an update keeps its weights and its state; momentum does
            not carry it on.
          divisor, factor: the update is mean * factor / divisor.

        Returns:
          (models, state), NumPy; integer weights are those of `models`.
        """
        if self.is_plain:
            return self._add(models, means, divisor, factor), state
        # Copies, into which the rows are written.
        stepped, leaves = [np.array(array) for array in models], [np.array(leaf) for leaf in state]
        # Row by row: an optimizer's state belongs to one model, and some models rest in a round.
        for row in np.flatnonzero(has_update):
            model, row_state = (tuple(array[row] for array in arrays) for arrays in (models, state))
            mean = [np.asarray(array)[row] for array in means]
            for arrays, values in zip(
                (stepped, leaves), self.step_one(model, mean, row_state, divisor, factor), strict=True
            ):
                for array, value in zip(arrays, values, strict=True):
                    array[row] = value
        return tuple(stepped), tuple(leaves)

    def step_one(
        self, model: Weights, mean: Sequence[np.ndarray], state: State, divisor: float = 1, factor: float = 1.0
    ) -> tuple[Weights, State]:
        """As `step`, of one model that is not stacked and has an update; its state is that of `initialize_one`."""
        if self.is_plain:
            return self._add(model, mean, divisor, factor), state
        # As tensors, so that all arithmetic is TensorFlow's in float32, as it is inside a computation.
        nested = tf.nest.pack_sequence_as(self.initial, [tf.constant(leaf) for leaf in state])
        floats = tuple(tf.constant(array) for array in model if is_float(array))
        # Optimizers go down a gradient, and an update points where weights should go.
        gradient = tuple(
            tf.constant(np.asarray(-(array * factor) / divisor, array.dtype)) for array in map(np.asarray, mean)
        )
        next_state, moved = self.optimizer.next(nested, floats, gradient)
        remaining = iter(moved)
        weights = tuple(next(remaining).numpy() if is_float(array) else np.asarray(array) for array in model)
        return weights, tuple(np.asarray(leaf) for leaf in tf.nest.flatten(next_state))

    def copy_rows(self, state: State, sources: Sequence[int] | np.ndarray) -> State:
        """The state of new stacked models, the i-th of which goes on from row `sources[i]` of the old ones."""
        return tuple(leaf[np.asarray(sources, int)] for leaf in state)

    def _add(self, models: Weights, means: Sequence[np.ndarray], divisor: float, factor: float) -> Weights:
        return add_deltas(models, map(np.asarray, means), self.config.learning_rate * factor / divisor)


def build_server_step(
    config: ServerStepConfig, template_weights: Weights, always_by_optimizer: bool = False
) -> ServerStep:
    """The server's step.

    Args:
      config: settings.
      template_weights: one model's weights, for their shapes and dtypes.
      always_by_optimizer: whether a plain step is one of TFF's SGD, too, which has a state (its rate).
    """
    # Also for a plain step, whose optimizer is never called: the fields are alike then.
    optimizer = build_optimizer(config)
    specs = tuple(tf.TensorSpec(array.shape, array.dtype) for array in template_weights if is_float(array))
    # Hyperparameters are Python numbers in the state.
    initial = tf.nest.map_structure(lambda leaf: tf.convert_to_tensor(leaf).numpy(), optimizer.initialize(specs))
    return ServerStep(config, config.is_plain and not always_by_optimizer, optimizer, initial)
