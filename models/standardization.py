"""The scaling of features inside a model: (x - mean) / deviation, a pair of numbers a feature or channel.

The numbers are constants of the model and no weights, so nothing aggregates, clips or rounds them. While a model trains
they follow the preprocessing (`ModelSpec.preprocess`), in float32 whatever the layers compute in; in a saved model they
are its first layers, in a TFLite file its first operators.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from models.model_names import ModelError

LEAST_DEVIATION = 1e-30  # below it, 1 divided by it leaves float32


@dataclasses.dataclass(frozen=True)
class Standardization:
    """What is taken from each feature, and what it is divided by then.

    Attributes:
      means: of each of (features,) or (features, 1), or of each channel where the last axis has several; after the
        preprocessing by scale and offset.
      deviations: as many, each at least `LEAST_DEVIATION`; 1 where a feature is constant.

    Raises:
      ModelError: they are not as many, or not such numbers.
    """

    means: tuple[float, ...]
    deviations: tuple[float, ...]

    def __post_init__(self):
        fits = self.means and len(self.means) == len(self.deviations)
        largest = float(np.finfo(np.float32).max)
        if not fits or not all(abs(mean) <= largest for mean in self.means):
            raise ModelError(f"feature_means={self.means}: expected a finite number for each deviation")
        if not all(LEAST_DEVIATION <= deviation <= largest for deviation in self.deviations):
            raise ModelError(f"feature_deviations={self.deviations}: expected numbers of at least {LEAST_DEVIATION:g}")

    def arrange(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """(means, factors), float32, as they meet examples of this shape; a factor is 1 divided by a deviation.

        Raises:
          ModelError: the shape has another number of features or channels.
        """
        if count_scaled(shape) != len(self.means):
            found = f"{len(self.means)} means"
            raise ModelError(f"feature_means: {found} for examples of shape {shape}, expected {count_scaled(shape)}")
        form = (-1, 1) if shape[1:] == (1,) else (-1,)
        means, deviations = np.array(self.means, np.float32), np.array(self.deviations, np.float64)
        return means.reshape(form), (1 / deviations).astype(np.float32).reshape(form)

    def apply(self, x: tf.Tensor, shape: tuple[int, ...]) -> tf.Tensor:
        """Model inputs, float32 (batch, *shape), to those that the layers get, in any graph."""
        means, factors = self.arrange(shape)
        return (x - means) * factors


def count_scaled(shape: tuple[int, ...]) -> int:
    """How many features or channels are scaled in examples of a shape, without the batch axis."""
    is_flat = len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)
    return shape[0] if is_flat else shape[-1]


def put_before(standardization: Standardization, model: tf.keras.Model, shape: tuple[int, ...]) -> tf.keras.Model:
    """A model of unscaled inputs, float32 (batch, *shape): two layers of Keras's with the constants, then `model`.

    The weights are those of `model`. Two layers, since x * factor - mean * factor would lose the digits of a feature
    whose mean is large beside its deviation.
    """
    means, factors = standardization.arrange(shape)
    rescaling = tf.keras.layers.Rescaling
    inputs = tf.keras.Input(shape, dtype="float32")
    shifted = rescaling(1.0, (-means).tolist(), name="take_feature_means", dtype="float32")(inputs)
    scaled = rescaling(factors.tolist(), name="divide_by_feature_deviations", dtype="float32")(shifted)
    return tf.keras.Model(inputs, model(scaled))
