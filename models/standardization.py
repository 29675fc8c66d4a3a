"""The scaling of features inside a model: (x - mean) / deviation, a pair of numbers a feature or channel.

The numbers are constants of the model and no weights, so nothing aggregates, clips or rounds them. While a model trains
they follow the preprocessing (`ModelSpec.preprocess`), in float32 whatever the layers compute in; in a saved model they
are its first layers, in a TFLite file its first operators.

A feature that is no measurement has a mean of 0 and a deviation of 1, which changes no bit of it. Steps that fill
sequences up stay as they are, too, so that a model can mask them.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from datasets.example_format import ASIDE, Padding
from datasets.example_format import count_features as count_scaled
from models.model_names import ModelError

LEAST_DEVIATION = 1e-30  # below it, 1 divided by it leaves float32


@dataclasses.dataclass(frozen=True)
class Standardization:
    """What is taken from each feature, and what it is divided by then.

    Attributes:
      means: of each of (features,) or (features, 1), or of each channel where the last axis has several; after the
        preprocessing by scale and offset.
      deviations: as many, each at least `LEAST_DEVIATION`; 1 where a feature is constant.
      padding: the steps of sequences that stay as they are; None scales all.

    Raises:
      ModelError: they are not as many, or not such numbers.
    """

    means: tuple[float, ...]
    deviations: tuple[float, ...]
    padding: Padding | None = None

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
        axes = (-1, 1) if shape[1:] == (1,) else (-1,)
        means, deviations = np.array(self.means, np.float32), np.array(self.deviations, np.float64)
        return means.reshape(axes), (1 / deviations).astype(np.float32).reshape(axes)

    def apply(self, x: tf.Tensor, shape: tuple[int, ...]) -> tf.Tensor:
        """Model inputs, float32 (batch, *shape), to those that the layers get, in any graph."""
        means, factors = self.arrange(shape)
        scaled = (x - means) * factors
        return scaled if self.padding is None else keep_padding(x, scaled, self.padding)


def keep_padding(x: tf.Tensor, scaled: tf.Tensor, padding: Padding) -> tf.Tensor:
    """The scaled steps, and those of padding as they were in x.

    Another step that scaling has made equal to the padding, as one of means is to 0, moves aside, so that no model
    masks it. In any graph, also that of Keras's layers; shapes as in `find_measured`.
    """
    is_equal = tf.equal(scaled, padding.value)
    if len(x.shape) == 3 and x.shape[2] > 1:
        is_equal = tf.reduce_all(is_equal, axis=2, keepdims=True)
    return tf.where(find_measured(x, padding), tf.where(is_equal, padding.value + ASIDE, scaled), x)


def find_measured(x: tf.Tensor, padding: Padding) -> tf.Tensor:
    """Which steps are no padding, bool, of a shape that broadcasts with x, (batch, steps, channels) or (batch, steps).

    In any graph, also that of Keras's layers.
    """
    differs = tf.not_equal(x, padding.value)
    if len(x.shape) == 3 and x.shape[2] > 1:
        differs = tf.reduce_any(differs, axis=2, keepdims=True)
    if padding.is_anywhere:
        return differs
    number = tf.cast(differs, "int32")
    return tf.minimum(tf.cumsum(number, axis=1), tf.cumsum(number, axis=1, reverse=True)) > 0


def put_before(standardization: Standardization, model: tf.keras.Model, shape: tuple[int, ...]) -> tf.keras.Model:
    """A model of unscaled inputs, float32 (batch, *shape): layers of Keras's with the constants, then `model`.

    The weights are those of `model`. Two layers, since x * factor - mean * factor would lose the digits of a feature
    whose mean is large beside its deviation.
    """
    means, factors = standardization.arrange(shape)
    rescaling = tf.keras.layers.Rescaling
    inputs = tf.keras.Input(shape, dtype="float32")
    shifted = rescaling(1.0, (-means).tolist(), name="take_feature_means", dtype="float32")(inputs)
    scaled = rescaling(factors.tolist(), name="divide_by_feature_deviations", dtype="float32")(shifted)
    if standardization.padding is not None:
        scaled = keep_padding(inputs, scaled, standardization.padding)
    return tf.keras.Model(inputs, model(scaled))
