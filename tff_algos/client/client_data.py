"""Reads a client's examples inside a TFF computation, from its files; the arrays never leave the computation.

Where the data weigh their examples, the labels of a train split travel with the weights behind them, so that algorithms
can hand them on as they are. Who looks at labels takes them apart first, by `split_labels`.
"""

import math

import tensorflow as tf

from datasets.federated_data import SPLITS
from datasets.own_objects import ContractError
from models.model_spec import ModelSpec
from models.task import Task


def read_split(path: tf.Tensor, split: str, model_spec: ModelSpec) -> tuple[tf.Tensor, tf.Tensor]:
    """The examples of one client and split, in any graph.

    Args:
      path: string scalar, `ClientFiles.path`; "" (an empty slot in a cohort) gives no examples.
      split: "train", "validation" or "test".
      model_spec: its format has the shape and dtype of the examples in the files, its task those of the labels.

    Returns:
      x, shape (examples, *input_shape), and y, shape (examples, *label_shape), each in the stored dtype. Of a train
      split of data with weights, y is float32, shape (examples, labels + 1): what `split_labels` takes apart.
    """
    if split not in SPLITS:
        raise ContractError(f"read_split: there is no split {split!r}, expected one of {', '.join(SPLITS)}")
    dtype, task = tf.as_dtype(model_spec.format.input_dtype), model_spec.task
    label_dtype = tf.as_dtype(task.label_dtype)

    # Raw arrays, so that reading is a copy out of the page cache: no parsing, and no example is handled singly.
    def read():
        x = tf.io.decode_raw(tf.io.read_file(tf.strings.join([path, f".{split}.x"])), dtype)
        y = tf.io.decode_raw(tf.io.read_file(tf.strings.join([path, f".{split}.y"])), label_dtype)
        # A reshape of plain labels would be one op more in each client's graph.
        y = tf.reshape(y, (-1, *task.label_shape)) if task.label_shape else y
        return tf.reshape(x, (-1, *model_spec.format.input_shape)), y

    def read_nothing():
        return tf.zeros((0, *model_spec.format.input_shape), dtype), tf.zeros((0, *task.label_shape), label_dtype)

    x, y = tf.cond(tf.strings.length(path) > 0, read, read_nothing)
    weights = model_spec.format.weights
    if split != "train" or weights is None:  # decided while the graph is made
        return x, y
    # Divided in float64, so that weights that are all alike are exactly 1.
    mean = tf.constant(weights.mean, tf.float64)
    stored = tf.cond(
        tf.strings.length(path) > 0,
        lambda: tf.io.decode_raw(tf.io.read_file(tf.strings.join([path, ".train.w"])), tf.float32),
        lambda: tf.zeros(0),
    )
    shares = tf.cast(tf.cast(stored, tf.float64) / mean, tf.float32)
    # As columns beside the labels, so that gathering a batch keeps both together.
    labels = tf.reshape(tf.cast(y, tf.float32), (-1, math.prod(task.label_shape)))
    return x, tf.concat([labels, shares[:, tf.newaxis]], axis=1)


@tf.autograph.experimental.do_not_convert
def split_labels(y: tf.Tensor, task: Task) -> tuple[tf.Tensor, tf.Tensor | None]:
    """Labels, and the weights of the examples, from what `read_split` gave, or from rows of it; in any graph.

    Args:
      y: of a split, or labels alone.
      task: of the labels.

    Returns:
      Labels, shape (examples, *label_shape), in the task's dtype; and weights, float32, shape (examples,), whose mean
      over all clients' train examples is 1, or None if `y` has none.
    """
    size = math.prod(task.label_shape)
    if y.dtype != tf.float32 or y.shape.rank != 2 or y.shape[1] != size + 1:  # decided while the graph is made
        return y, None
    labels = tf.cast(tf.reshape(y[:, :size], (-1, *task.label_shape)), task.label_dtype)
    return labels, y[:, size]
