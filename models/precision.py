"""Mixed precision: a model whose layers compute in bfloat16, with weights, logits and what follows them in float32.

Keras's policy is set while the model is being built and put back afterwards, since it is global to the process. There
is no loss scaling, which float16 would need: bfloat16 has the exponents of float32.
"""

import contextlib
from collections.abc import Callable, Iterator

import tensorflow as tf

_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}


def build_in_precision(build: Callable[[], tf.keras.Model], precision: str) -> tf.keras.Model:
    """The model that `build` returns, its layers computing in `precision` unless they name a dtype of their own.

    Args:
      build: takes nothing, returns a built Keras model.
      precision: "float32" or "bfloat16".
    """
    with _use_policy(_POLICIES[precision]):
        return build()


@contextlib.contextmanager
def _use_policy(name: str) -> Iterator[None]:
    before = tf.keras.mixed_precision.global_policy()
    tf.keras.mixed_precision.set_global_policy(name)
    try:
        yield
    finally:
        tf.keras.mixed_precision.set_global_policy(before)
