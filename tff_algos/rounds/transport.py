"""How models and updates travel: rounded to fewer bits, both ways, or as they are.

Each trained weight tensor is rounded to 2^bits levels, evenly spaced from its smallest to its largest value. It travels
as its level numbers and these two values. Weights that are not trained (BatchNorm's statistics, the ranges of
quantization-aware training) stay at 32 bits, and integers do not travel. 32 bits means no compression.

Stochastic rounding takes the level above with a chance equal to the distance from the level below, measured in steps,
so that the mean over seeds is the value itself.
"""

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from models.model_spec import ModelSpec
from tff_algos.late_computation import OUTSIDE_GRAPHS
from tff_algos.protocol import Weights
from tff_algos.seeds import derive_seed
from tff_algos.settings.aggregation import CompressionConfig
from tff_algos.weights import compute_model_bytes, is_float

RANGE_BYTES = 8  # the smallest and the largest value of a tensor


def find_compressed(model_spec: ModelSpec) -> tuple[bool, ...]:
    """Whether each weight, in the order of `keras_model.weights`, is compressed: those that are trained."""
    model = model_spec.build()
    trained = {variable.ref() for variable in model.trainable_variables}
    return tuple(variable.ref() in trained for variable in model.weights)


def quantize_uniform(values: tf.Tensor, bits: int, seed: tf.Tensor | None = None, num_batch_axes: int = 0) -> tf.Tensor:
    """Rounds to 2^bits levels from the smallest to the largest value, at most half a step away (stochastic: a step).

    Args:
      values: float32, finite.
      bits: 2 to 16.
      seed: int32, shape (2,), for stochastic rounding; None rounds to the nearest level, ties to the even one.
      num_batch_axes: leading axes along which the tensors are stacked; each has a range of its own.
    """
    axes = list(range(num_batch_axes, len(values.shape)))
    low = tf.reduce_min(values, axes, keepdims=True)
    # The ends are levels themselves, so the largest values stay as they are.
    step = (tf.reduce_max(values, axes, keepdims=True) - low) / (2**bits - 1)
    levels = tf.math.divide_no_nan(values - low, step)  # a tensor of equal values has a step of 0
    if seed is None:
        levels = tf.round(levels)
    else:
        levels = tf.floor(levels + tf.random.stateless_uniform(tf.shape(levels), seed))
    # Rounding errors can put the largest value a level too high.
    return low + tf.minimum(levels, float(2**bits - 1)) * step


@dataclasses.dataclass(frozen=True, eq=False)
class Transport:
    """What one side gets of what the other sends.

    Attributes:
      config: bits and rounding.
      is_compressed: of each weight, see `find_compressed`; all False where nothing is rounded.
      seed: the run's, of what the host rounds.
      model_bytes: bytes of a model or an update on the wire.
      is_update_compressed: one a tensor of an update, which has the floating-point weights only.
    """

    config: CompressionConfig
    is_compressed: tuple[bool, ...]
    seed: int = dataclasses.field(metadata=OUTSIDE_GRAPHS)
    model_bytes: int
    is_update_compressed: tuple[bool, ...]

    def send(self, stacked: Weights, round_num: int) -> Weights:
        """Models stacked along axis 0, as the clients have them after round `round_num`.

        Each tensor of each model has a range of its own.
        """
        if not self.config.is_active:
            return stacked
        seed = derive_seed(self.seed, "compression", round_num)
        return tuple(np.asarray(array) for array in self._round(stacked, self.is_compressed, seed, num_batch_axes=1))

    def receive(self, deltas: Sequence[tf.Tensor], seed: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """An update as the server has it, in any graph; `seed` is its client's."""
        return self._round(deltas, self.is_update_compressed, seed) if self.config.is_active else tuple(deltas)

    def _round(
        self, tensors: Sequence[tf.Tensor], is_compressed: Sequence[bool], seed: tf.Tensor, num_batch_axes: int = 0
    ) -> tuple[tf.Tensor, ...]:
        """The tensors, those that are compressed rounded; each is drawn apart from the others."""
        received = []
        for index, (tensor, is_rounded) in enumerate(zip(tensors, is_compressed, strict=True)):
            own_seed = None
            if self.config.rounding == "stochastic":
                # Below 0, since the training of a client folds 0, 1, ... into the same seed.
                own_seed = tf.random.experimental.stateless_fold_in(seed, -1 - index)
            received.append(
                quantize_uniform(tensor, self.config.bits, own_seed, num_batch_axes) if is_rounded else tensor
            )
        return tuple(received)


def build_transport(
    model_spec: ModelSpec,
    weights: Weights,
    seed: int,
    config: CompressionConfig | None = None,
    travels: Sequence[bool] | None = None,
) -> Transport:
    """The transport of a model of these weights; without a config, nothing is rounded.

    `travels` says which of the model's weights these are; None: all.
    """
    config = config or CompressionConfig()
    is_compressed: tuple[bool, ...] = (False,) * len(weights)
    model_bytes = compute_model_bytes(weights)
    if config.is_active:
        # It builds the model, which takes a while: not where nothing is rounded.
        found = find_compressed(model_spec)
        is_compressed = found if travels is None else tuple(itertools.compress(found, travels))
        rounded = tuple(itertools.compress(weights, is_compressed))
        saved = compute_model_bytes(rounded) - compute_model_bytes(rounded, config.bits)
        model_bytes += RANGE_BYTES * len(rounded) - saved
    # An update lacks the integer weights that a model has.
    of_update = tuple(itertools.compress(is_compressed, map(is_float, weights)))
    return Transport(config, is_compressed, seed, model_bytes, of_update)
