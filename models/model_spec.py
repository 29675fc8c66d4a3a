"""What an algorithm knows of a model: how to build it, and how a stored example becomes its input."""

import dataclasses
from collections.abc import Callable

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class ModelSpec:
    """A Keras model that can be built anew inside any graph.

    Attributes:
      name: for reports, for example "image_student".
      build: takes nothing, returns a built Keras model with logits as output.
      input_shape: shape of one stored example, without the batch axis.
      input_dtype: dtype of a stored example, "uint8" or "float32".
      num_classes: width of the logits.
      scale: factor of the preprocessing.
      offset: summand of the preprocessing.
      teacher: the larger model that can teach this one, if there is one.
    """

    name: str
    build: Callable[[], tf.keras.Model]
    input_shape: tuple[int, ...]
    input_dtype: str
    num_classes: int
    scale: float = 1.0
    offset: float = 0.0
    teacher: "ModelSpec | None" = None

    def preprocess(self, x: tf.Tensor) -> tf.Tensor:
        """Stored examples, shape (batch, *input_shape), to model inputs in float32, in any graph."""
        return tf.cast(x, tf.float32) * self.scale + self.offset
