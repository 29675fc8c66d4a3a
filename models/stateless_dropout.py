"""Dropout whose mask is a pure function of a seed, so that a training round can be repeated bit for bit.

Keras's own Dropout draws from a generator that cannot be reproduced in a TFF worker. Here the training loop gives the
seed of each step while the graph is traced:

    with dropout_seed(seed):  # an int32 tensor of shape (2,), symbolic inside a tf.function
        logits = model(x, training=True)
"""

import contextlib
import contextvars
from collections.abc import Iterator

import tensorflow as tf

_active_seed: contextvars.ContextVar[tf.Tensor | None] = contextvars.ContextVar("dropout_seed", default=None)


@contextlib.contextmanager
def dropout_seed(seed: tf.Tensor) -> Iterator[None]:
    """Gives every StatelessDropout that is called inside the seed of its mask; the innermost context applies.

    The seed is read when a layer is called, that is, while a graph is traced. So open the context inside the traced
    function (and inside the body of a loop whose steps have their own seeds), not around a call to a function that was
    traced earlier.

    Args:
      seed: int32, shape (2,), a tensor of the graph being traced or of one around it, or an array.
    """
    token = _active_seed.set(seed)
    try:
        yield
    finally:
        _active_seed.reset(token)


@tf.keras.utils.register_keras_serializable(package="federated_suite")
class StatelessDropout(tf.keras.layers.Layer):
    """Inverted dropout: zeroes a share `rate` of the values in training, and multiplies the others by 1 / (1 - rate).

    It holds no variables. Outside `dropout_seed` it is ordinary dropout, for use with `fit`.

    Args:
      rate: share of values dropped, in [0, 1).
      salt: int32 that tells the layers of a model apart; layers with the same salt, seed and shape share their mask.

    Raises:
      ValueError: if `rate` is out of range.
    """

    def __init__(self, rate: float, salt: int = 0, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"rate={rate}: expected a number at least 0 and below 1")
        self.rate = rate
        self.salt = salt
        self.supports_masking = True

    def call(self, inputs: tf.Tensor, training=None) -> tf.Tensor:
        """`inputs` with values dropped if `training`, a Python truth value or a boolean tensor; None means no."""
        if tf.is_tensor(training):
            return tf.cond(tf.cast(training, tf.bool), lambda: self._drop(inputs), lambda: tf.identity(inputs))
        return self._drop(inputs) if training else tf.identity(inputs)

    def _drop(self, inputs: tf.Tensor) -> tf.Tensor:
        seed = _active_seed.get()
        if seed is None:
            return tf.nn.dropout(inputs, self.rate)
        own_seed = tf.random.experimental.stateless_fold_in(seed, self.salt, alg="philox")
        return tf.nn.experimental.stateless_dropout(inputs, self.rate, own_seed, rng_alg="philox")

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self) -> dict:
        return {**super().get_config(), "rate": self.rate, "salt": self.salt}
