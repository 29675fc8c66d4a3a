"""Operations that TFLite lacks, or lacks where they are trained, made of those that it has.

While a graph is traced inside `use_builtin_operations`, an operation in `_OPERATIONS` becomes what stands here for it,
wherever in a layer it is called. Its gradients then follow from what it is made of.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

# Numerator and denominator of erf(x) / x in powers of x^2, the highest first: Eigen's, so TensorFlow's in float32.
_ERF_NUMERATOR = (
    *(-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05),
    *(-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02),
)
_ERF_DENOMINATOR = (
    *(-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03),
    -1.42647390514189e-02,
)
_ERF_IS_ONE = 4.0  # from here on, in float32

Operation = Callable[..., Sequence[tf.Tensor]]  # (node attributes, *inputs) -> outputs


@contextlib.contextmanager
def use_builtin_operations() -> Iterator[None]:
    """The operations that are traced inside are made of TFLite's own; call it inside a `tf.function`."""
    graph = tf.compat.v1.get_default_graph()
    create = graph._create_op_internal  # whatever makes an operation of this graph goes through it

    def replace(op_type, inputs, dtypes=None, input_types=None, name=None, attrs=None, *arguments, **options):
        if op_type not in _OPERATIONS or inputs[0].dtype != tf.float32:
            return create(op_type, inputs, dtypes, input_types, name, attrs, *arguments, **options)
        outputs = _OPERATIONS[op_type](attrs or {}, *inputs)
        return tf.identity_n(outputs)[0].op

    graph._create_op_internal = replace
    try:
        yield
    finally:
        del graph._create_op_internal


def _compute_erf(attributes, x: tf.Tensor) -> list[tf.Tensor]:
    @tf.custom_gradient
    def compute(x):
        near = tf.clip_by_value(x, -_ERF_IS_ONE, _ERF_IS_ONE)
        square = tf.square(near)
        ratio = near * _evaluate(_ERF_NUMERATOR, square) / _evaluate(_ERF_DENOMINATOR, square)
        y = tf.where(tf.abs(x) < _ERF_IS_ONE, ratio, tf.sign(x))
        return y, lambda gradient: gradient * tf.exp(-tf.square(x)) * (2 / math.sqrt(math.pi))

    return [compute(x)]


def _evaluate(coefficients: Sequence[float], x: tf.Tensor) -> tf.Tensor:
    """The polynomial, by Horner's rule."""
    value = coefficients[0] * x + coefficients[1]
    for coefficient in coefficients[2:]:
        value = value * x + coefficient
    return value


def _normalize(attributes, x, scale, offset, mean, variance) -> list[tf.Tensor]:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset in each channel, and what the operation gives beside it.

    In training mean and variance are those of x. Given back are the moving ones, moved by a factor towards these, the
    variance towards n / (n - 1) times that of x; with a factor of 1 they are none but these.
    """
    is_first = attributes["data_format"].s == b"NCHW"
    axes = [0, 2, 3] if is_first else [0, 1, 2]
    shape = [1, -1, 1, 1] if is_first else [1, 1, 1, -1]
    given = mean, variance
    if attributes["is_training"].b:
        centre = tf.reduce_mean(x, axes, keepdims=True)
        spread = tf.reduce_mean(tf.square(x - centre), axes, keepdims=True)
        number = int(np.prod([x.shape[axis] for axis in axes]))
        given = tf.reshape(centre, [-1]), tf.reshape(spread, [-1]) * (number / max(number - 1, 1))
        factor = attributes["exponential_avg_factor"].f
        if factor != 1:
            given = [(1 - factor) * old + factor * new for old, new in zip((mean, variance), given, strict=True)]
    else:
        centre, spread = tf.reshape(mean, shape), tf.reshape(variance, shape)
    scaling = tf.math.rsqrt(spread + attributes["epsilon"].f) * tf.reshape(scale, shape)
    return [(x - centre) * scaling + tf.reshape(offset, shape), *given, *given, tf.zeros(())]


_OPERATIONS: dict[str, Operation] = {
    "Erf": _compute_erf,
    "FusedBatchNormV3": _normalize,
}
