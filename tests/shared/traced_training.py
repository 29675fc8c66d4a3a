"""Local training as a function of arrays, traced once for all tests with the same settings."""

import functools

import numpy as np
import tensorflow as tf

from tff_algos.client.local_training import train_locally

MODELS, ROWS = ("weights", "anchor"), ("x", "y", "targets")  # of `train_locally`: lists of weights; rows of examples


@functools.cache
def _trace(spec, config, loss_fn, signature):
    """A plain graph, as in a TFF computation; `signature` has each argument with dtypes and shapes of its arrays."""
    with tf.Graph().as_default():
        inputs = {name: [tf.compat.v1.placeholder(*each) for each in types] for name, types in signature}
        given = {name: tuple(arrays) if name in MODELS else arrays[0] for name, arrays in inputs.items()}
        result = train_locally(spec, config, loss_fn=loss_fn, **given)
        session = tf.compat.v1.Session()
        session.run(tf.compat.v1.global_variables_initializer())
    # In a plain graph Keras gives the class another base, for layers of other tests too; here it gives it back.
    tf.keras.layers.BatchNormalization()
    return session.make_callable(result, [each for arrays in inputs.values() for each in arrays])


def train(spec, config, weights, x, y, seed=(1, 2), rate=0.1, loss_fn=None, **options):
    """The LocalResult, NumPy's; labels of 64 bits, as plain Python has them, are class numbers."""
    y = np.asarray(y)
    labels = y.astype(np.int32) if y.dtype.itemsize == 8 else y
    client = {"x": np.asarray(x, spec.format.input_dtype), "y": labels, "seed": np.int32(seed)}
    given = {"weights": weights, **client, "learning_rate": np.float32(rate), **options}
    arrays = {
        name: [np.asarray(each) for each in (value if name in MODELS else [value])] for name, value in given.items()
    }
    signature = tuple(
        (name, tuple((each.dtype, (None, *each.shape[1:]) if name in ROWS else each.shape) for each in values))
        for name, values in arrays.items()
    )
    return _trace(spec, config, loss_fn, signature)(*(each for values in arrays.values() for each in values))
