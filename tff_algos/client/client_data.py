"""Reads a client's examples inside a TFF computation, from its files; the arrays never leave the computation."""

import tensorflow as tf

from models.model_spec import ModelSpec


def read_split(path: tf.Tensor, split: str, model_spec: ModelSpec) -> tuple[tf.Tensor, tf.Tensor]:
    """The examples of one client and split, in any graph.

    Args:
      path: string scalar, `ClientFiles.path`; "" (an empty place in a cohort) gives no examples.
      split: "train", "validation" or "test".
      model_spec: its format has the shape and dtype of the examples in the files, its task those of the labels.

    Returns:
      x, shape (examples, *input_shape), and y, shape (examples, *label_shape), each in the stored dtype.
    """
    dtype, task = tf.as_dtype(model_spec.format.input_dtype), model_spec.task
    label_dtype = tf.as_dtype(task.label_dtype)

    # Raw arrays, so that reading is a copy out of the page cache: no parsing, and no example is handled singly.
    def read():
        x = tf.io.decode_raw(tf.io.read_file(tf.strings.join([path, f".{split}.x"])), dtype)
        y = tf.io.decode_raw(tf.io.read_file(tf.strings.join([path, f".{split}.y"])), label_dtype)
        y = tf.reshape(y, (-1, *task.label_shape)) if task.label_shape else y
        return tf.reshape(x, (-1, *model_spec.format.input_shape)), y

    def read_nothing():
        return tf.zeros((0, *model_spec.format.input_shape), dtype), tf.zeros((0, *task.label_shape), label_dtype)

    return tf.cond(tf.strings.length(path) > 0, read, read_nothing)
