"""Gradients of operations that take places out of an array or resize images, made of operations that TFLite has.

`models.builtin_gradients` says which are used. All shapes must be known.
"""

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf


class _Part(NamedTuple):
    """What a slice takes of one axis: `number` places from `start` on, `step` apart."""

    start: int
    step: int
    number: int


def differentiate_slice(op: tf.Operation, gradient: tf.Tensor) -> tuple[tf.Tensor | None, ...]:
    """y = x[...]: y's gradient at the places that were taken, zeros elsewhere."""
    shape = op.inputs[0].shape
    bounds = [tf.get_static_value(tensor) for tensor in op.inputs[1:4]]
    if any(bound is None for bound in bounds) or not shape.is_fully_defined():
        masks = {name: op.get_attr(name) for name in _MASKS}
        given = tf.raw_ops.StridedSliceGrad(
            shape=tf.shape(op.inputs[0]),
            begin=op.inputs[1],
            end=op.inputs[2],
            strides=op.inputs[3],
            dy=gradient,
            **masks,
        )
        return given, None, None, None
    parts = _read_parts(op, shape, *bounds)
    x = tf.reshape(gradient, [part.number for part in parts])
    backward = [axis for axis, part in enumerate(parts) if part.step < 0]
    x = tf.reverse(x, backward) if backward else x
    for axis, part in enumerate(parts):
        x = _put_apart(x, axis, abs(part.step))
    first = [part.start + min(part.step * (part.number - 1), 0) for part in parts]
    after = [length - begin - number for length, begin, number in zip(shape, first, x.shape, strict=True)]
    return tf.pad(x, list(zip(first, after, strict=True))), None, None, None


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _read_parts(op: tf.Operation, shape: tf.TensorShape, begin, end, strides) -> list[_Part]:
    """What is taken of each axis of the input; an axis that the slice itself adds has none."""
    begins, ends, ellipses, added, shrunk = (op.get_attr(name) for name in _MASKS)
    is_in = lambda mask, i: bool(mask >> i & 1)
    parts, number = [], len(begin)
    for i in range(number):
        if is_in(ellipses, i):
            rest = sum(not is_in(added, j) for j in range(i + 1, number))
            parts += [_Part(0, 1, length) for length in shape[len(parts) : len(shape) - rest]]
        elif not is_in(added, i):
            length = shape[len(parts)]
            if is_in(shrunk, i):
                parts.append(_Part(int(begin[i]) % length, 1, 1))
                continue
            first = None if is_in(begins, i) else int(begin[i])
            places = range(length)[first : None if is_in(ends, i) else int(end[i]) : int(strides[i])]
            parts.append(_Part(places.start, places.step, len(places)))
    return parts + [_Part(0, 1, length) for length in shape[len(parts) :]]


def _put_apart(x: tf.Tensor, axis: int, step: int) -> tf.Tensor:
    """The same with step - 1 zeros between neighbours on that axis."""
    number = x.shape[axis]
    if step == 1 or number <= 1:
        return x
    before, after = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    apart = tf.pad(tf.reshape(x, (before, number, 1, after)), [[0, 0], [0, 0], [0, step - 1], [0, 0]])
    apart = tf.reshape(apart, (before, number * step, after))[:, : (number - 1) * step + 1]
    return tf.reshape(apart, (*x.shape[:axis], apart.shape[1], *x.shape[axis + 1 :]))


def differentiate_resizing(op: tf.Operation, gradient: tf.Tensor) -> tuple[tf.Tensor, None]:
    """Images (n, height, width, channels), nearest or bilinear: each axis is multiplied by a matrix, and so back."""
    n, height, width, channels = op.inputs[0].shape
    _, down, across, _ = gradient.shape
    of_rows, of_columns = _find_matrix(op, height, down), _find_matrix(op, width, across)
    x = tf.reshape(tf.transpose(gradient, (0, 3, 1, 2)), (n * channels * down, across)) @ of_columns
    x = tf.transpose(tf.reshape(x, (n * channels, down, width)), (0, 2, 1))
    x = tf.reshape(x, (n * channels * width, down)) @ of_rows
    return tf.transpose(tf.reshape(x, (n, channels, width, height)), (0, 3, 2, 1)), None


def _find_matrix(op: tf.Operation, length: int, number: int) -> np.ndarray:
    """What of each of `length` places goes into each of `number`, (number, length): the operation on unit vectors."""
    options = {name: op.get_attr(name) for name in ("align_corners", "half_pixel_centers")}
    unit = np.eye(length, dtype=np.float32).reshape(1, length, 1, length)
    with tf.init_scope():
        resized = getattr(tf.raw_ops, op.type)(images=unit, size=[number, 1], **options)
        return resized.numpy().reshape(number, length)
