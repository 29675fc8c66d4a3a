"""Gradients made of operations that TFLite has itself, for those whose gradients in TensorFlow it lacks.

TensorFlow writes most gradients with ordinary operations: that of a matrix product is two matrix products. But those of
convolution, pooling, activations and a few more are operations of their own, such as Conv2DBackpropFilter, which TFLite
runs only with the select operators of TensorFlow. While a graph is traced inside `use_builtin_gradients`, the
operations in `_GRADIENTS` get a gradient from here in place of TensorFlow's, and `tf.gradients` then follows it. Where
no formula is shorter, such a gradient is that of the same values made of slices, products and sums (`_differentiate`).
A few operations that TFLite lacks themselves are made of others there (`use_builtin_operations`).

    with use_builtin_gradients(model):
        logits = model(x, training=True)
    gradients = tf.gradients(loss, variables)

All shapes must be known, the batch size too.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

Gradient = Callable[[tf.Operation, tf.Tensor], tf.Tensor | tuple[tf.Tensor, ...]]

_PREFIX = "Builtin"
_IN_FUNCTION = "_jit_compiled_convolution_op"  # of Keras's convolution in groups
_GRADIENTS: dict[str, str] = {}  # the operation, and the name under which its gradient is registered


def _gradient_of(operation: str) -> Callable[[Gradient], Gradient]:
    """Registers a gradient, a function (operation, gradient of its output) -> gradients of its inputs."""

    def register(gradient: Gradient) -> Gradient:
        # A later output, such as the argument of a maximum, has no gradient.
        tf.RegisterGradient(_PREFIX + operation)(lambda op, *of_outputs: gradient(op, of_outputs[0]))
        _GRADIENTS[operation] = _PREFIX + operation
        return gradient

    return register


@contextlib.contextmanager
def use_builtin_gradients(model: tf.keras.Model | None = None) -> Iterator[None]:
    """The operations that are traced inside get their gradients from this module; call it inside a `tf.function`.

    Args:
      model: what is called inside; its convolutions in groups, which Keras puts into functions of their own, are found.
    """
    parts = () if model is None else (model, *model.submodules)
    grouped = [part for part in parts if getattr(part, "groups", 1) > 1 and hasattr(part, _IN_FUNCTION)]
    for layer in grouped:
        setattr(layer, _IN_FUNCTION, layer.convolution_op)
    try:
        with tf.compat.v1.get_default_graph().gradient_override_map(_GRADIENTS), use_builtin_operations():
            yield
    finally:
        for layer in grouped:
            delattr(layer, _IN_FUNCTION)


def _differentiate(
    compute: Callable[..., tf.Tensor], inputs: Sequence[tf.Tensor], gradient: tf.Tensor
) -> list[tf.Tensor]:
    """The gradients of the inputs of `compute`, given that of its output."""
    # Gradients are asked for outside of `use_builtin_gradients`, so what is made here needs the map again.
    with tf.compat.v1.get_default_graph().gradient_override_map(_GRADIENTS):
        y = compute(*inputs)
    return tf.gradients(y, inputs, gradient)


class Windows(NamedTuple):
    """How the windows of a convolution or pooling lie along one axis of the image.

    Attributes:
      size: of a window, from its first pixel to its last, the gaps of a dilated kernel included.
      stride: from one window to the next.
      before: padding before the image.
      after: padding after the image; what no window reaches is cut off, a negative padding.
      number: of windows.
    """

    size: int
    stride: int
    before: int
    after: int
    number: int


def place_windows(length: int, size: int, stride: int, padding: bytes, given: Sequence[int] = (0, 0)) -> Windows:
    """The windows on an axis of `length`, for a padding as TensorFlow defines it.

    Args:
      length: of the axis.
      size: of a window.
      stride: from one window to the next.
      padding: b"SAME", b"VALID" or b"EXPLICIT".
      given: the padding before and after the image, of b"EXPLICIT".
    """
    if padding == b"SAME":
        number = -(-length // stride)
        before = max((number - 1) * stride + size - length, 0) // 2
    else:
        before = given[0]
        number = (length + sum(given) - size) // stride + 1
    return Windows(size, stride, before, (number - 1) * stride + size - length - before, number)


def _place_kernel(op: tf.Operation, x: tf.Tensor, kernel: tf.Tensor) -> list[Windows]:
    """The windows of a convolution on the rows and the columns of images (n, height, width, channels)."""
    dilations = op.get_attr("dilations")[1:3]
    sizes = [(size - 1) * dilation + 1 for size, dilation in zip(kernel.shape[:2], dilations, strict=True)]
    return _place_on_images(op, x, sizes)


def _place_pooling(op: tf.Operation) -> list[Windows]:
    return _place_on_images(op, op.inputs[0], op.get_attr("ksize")[1:3])


def _place_on_images(op: tf.Operation, x: tf.Tensor, sizes: Sequence[int]) -> list[Windows]:
    padding = op.get_attr("padding")
    given = op.get_attr("explicit_paddings") if padding == b"EXPLICIT" else [0] * 8
    axes = zip(x.shape[1:3], sizes, op.get_attr("strides")[1:3], (given[2:4], given[4:6]), strict=True)
    return [place_windows(length, size, stride, padding, around) for length, size, stride, around in axes]


def _pad(x: tf.Tensor, rows: Windows, columns: Windows, value: float = 0.0) -> tf.Tensor:
    """Images (n, height, width, channels) with their padding, or without the rim that no window reaches."""
    if rows.after < 0 or columns.after < 0:
        x = x[:, : x.shape[1] + min(rows.after, 0), : x.shape[2] + min(columns.after, 0)]
    paddings = [[0, 0], [rows.before, max(rows.after, 0)], [columns.before, max(columns.after, 0)], [0, 0]]
    return tf.pad(x, paddings, constant_values=value) if np.any(paddings) else x


def _slice_windows(
    x: tf.Tensor, rows: Windows, columns: Windows, dilations: Sequence[int] = (1, 1), value: float = 0.0
) -> list[tf.Tensor]:
    """The first pixels of all windows, (n, windows down, windows across, channels), then the second ones and so on."""
    padded, (down, across) = _pad(x, rows, columns, value), dilations
    return [
        padded[
            :,
            row : row + (rows.number - 1) * rows.stride + 1 : rows.stride,
            column : column + (columns.number - 1) * columns.stride + 1 : columns.stride,
        ]
        for row in range(0, rows.size, down)
        for column in range(0, columns.size, across)
    ]


@_gradient_of("Conv2D")
def _differentiate_convolution(op: tf.Operation, gradient: tf.Tensor) -> Sequence[tf.Tensor]:
    """y = convolution(x, w): the gradients of x, a transposed convolution, and of w, a convolution of x with that of y.

    With strides a, b: dw[i, j, c, f] = sum over n, r, s of padded[n, a r + i, b s + j, c] dy[n, r, s, f]. That is a
    convolution, too: the channels c are its examples, the examples n its channels, and dy is a kernel of the size of y,
    dilated by the strides. A dilation of w itself becomes its stride.
    """
    x, kernel = op.inputs
    strides, padding, dilations = (op.get_attr(name) for name in ("strides", "padding", "dilations"))
    groups = x.shape[3] // kernel.shape[2]
    if groups == 1 and padding != b"EXPLICIT":
        of_x = tf.nn.conv2d_transpose(gradient, kernel, x.shape, strides, padding.decode(), dilations=dilations)
        return of_x, _differentiate_kernel(op, x, kernel, gradient)

    # TFLite transposes no convolution in groups or with a padding of one's own.
    def convolve(x, kernel):
        parts = zip(tf.split(x, groups, axis=3), tf.split(kernel, groups, axis=3), strict=True)
        if padding == b"EXPLICIT":
            parts = [(_pad(part, *_place_kernel(op, part, weights)), weights) for part, weights in parts]
        spelled = "VALID" if padding == b"EXPLICIT" else padding.decode()
        return tf.concat([tf.nn.conv2d(*part, strides, spelled, dilations=dilations) for part in parts], axis=3)

    return _differentiate(convolve, (x, kernel), gradient)


def _differentiate_kernel(op: tf.Operation, x: tf.Tensor, kernel: tf.Tensor, gradient: tf.Tensor) -> tf.Tensor:
    rows, columns = _place_kernel(op, x, kernel)
    examples_last = tf.transpose(_pad(x, rows, columns), (3, 1, 2, 0))
    as_kernel = tf.transpose(gradient, (1, 2, 0, 3))
    strides, dilations = op.get_attr("strides")[1:3], op.get_attr("dilations")[1:3]
    of_kernel = tf.nn.conv2d(examples_last, as_kernel, dilations, "VALID", dilations=strides)
    return tf.transpose(of_kernel, (1, 2, 0, 3))


@_gradient_of("Conv2DBackpropInput")
def _differentiate_transposed_convolution(op: tf.Operation, gradient: tf.Tensor) -> tuple[None, tf.Tensor, tf.Tensor]:
    """y is the gradient that x would have as a convolution's output: x and y are each other in what is said above."""
    _, kernel, x = op.inputs
    strides, padding, dilations = (op.get_attr(name) for name in ("strides", "padding", "dilations"))
    of_kernel = _differentiate_kernel(op, gradient, kernel, x)
    if padding == b"EXPLICIT":
        gradient, padding = _pad(gradient, *_place_kernel(op, gradient, kernel)), b"VALID"
    return None, of_kernel, tf.nn.conv2d(gradient, kernel, strides, padding.decode(), dilations=dilations)


@_gradient_of("DepthwiseConv2dNative")
def _differentiate_depthwise_convolution(op: tf.Operation, gradient: tf.Tensor) -> Sequence[tf.Tensor]:
    """Output channel c m + i, of m a channel: the sum over the kernel's cells of their pixels times w[cell, c, i]."""

    def convolve(x, kernel):
        *size, channels, multiplier = kernel.shape
        parts = _slice_windows(x, *_place_kernel(op, x, kernel), op.get_attr("dilations")[1:3])
        cells = tf.unstack(tf.reshape(kernel, (math.prod(size), channels, multiplier)))
        weights = zip(*(tf.unstack(cell, axis=1) for cell in cells), strict=True)  # a row for each i
        outputs = [tf.add_n([part * cell for part, cell in zip(parts, row, strict=True)]) for row in weights]
        return outputs[0] if multiplier == 1 else tf.reshape(tf.stack(outputs, axis=-1), gradient.shape)

    return _differentiate(convolve, op.inputs, gradient)


@_gradient_of("MaxPool")
def _differentiate_max_pooling(op: tf.Operation, gradient: tf.Tensor) -> tf.Tensor:
    """Each window's gradient goes to its largest value, and to the first of equal ones, as in TensorFlow."""

    def choose(x):
        chosen, left = [], 1.0  # left: 0 where a pixel of the window was chosen
        for part in _slice_windows(x, *_place_pooling(op), value=float(np.finfo(np.float32).min)):
            is_chosen = left * tf.cast(part >= op.outputs[0], part.dtype)
            chosen.append(part * tf.stop_gradient(is_chosen))
            left -= is_chosen
        return tf.add_n(chosen)

    return _differentiate(choose, op.inputs, gradient)[0]


@_gradient_of("AvgPool")
def _differentiate_average_pooling(op: tf.Operation, gradient: tf.Tensor) -> tf.Tensor:
    """Each pixel of a window gets an equal share of its gradient; padding is none."""
    shape, (rows, columns) = op.inputs[0].shape, _place_pooling(op)
    numbers = np.outer(_count_pixels(shape[1], rows), _count_pixels(shape[2], columns))
    share = gradient / numbers.astype(np.float32)[:, :, np.newaxis]
    return _differentiate(lambda x: tf.add_n(_slice_windows(x, rows, columns)), op.inputs, share)[0]


def _count_pixels(length: int, windows: Windows) -> np.ndarray:
    """How many pixels of each window lie on the image, (windows,)."""
    first = np.arange(windows.number) * windows.stride - windows.before
    return np.minimum(first + windows.size, length) - np.maximum(first, 0)


def _keep(condition: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """x where the condition holds, 0 elsewhere: a product, as `tf.where` would put an array of zeros into the file."""
    return x * tf.cast(condition, x.dtype)


@_gradient_of("BiasAdd")
def _differentiate_bias(op: tf.Operation, gradient: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return gradient, tf.reduce_sum(gradient, axis=range(len(gradient.shape) - 1))


@_gradient_of("LeakyRelu")
def _differentiate_leaky_relu(op: tf.Operation, gradient: tf.Tensor) -> tf.Tensor:
    return tf.where(op.inputs[0] > 0, gradient, op.get_attr("alpha") * gradient)


# Of functions whose derivative follows from their value y: (y, gradient) -> the gradient of x.
_BY_VALUE: dict[str, Callable[[tf.Tensor, tf.Tensor], tf.Tensor]] = {
    "Relu": lambda y, gradient: _keep(y > 0, gradient),
    "Relu6": lambda y, gradient: _keep((y > 0) & (y < 6), gradient),
    "Elu": lambda y, gradient: tf.where(y < 0, (y + 1) * gradient, gradient),  # exp(x) - 1 below 0
    "Tanh": lambda y, gradient: gradient * (1 - y * y),
    "Sigmoid": lambda y, gradient: gradient * y * (1 - y),
    "Rsqrt": lambda y, gradient: -0.5 * gradient * y * y * y,  # x^(-1/2): dy / dx = -x^(-3/2) / 2
}
for _operation in _BY_VALUE:
    _gradient_of(_operation)(lambda op, gradient: _BY_VALUE[op.type](op.outputs[0], gradient))


@_gradient_of("StridedSlice")
def _differentiate_slice(op: tf.Operation, gradient: tf.Tensor) -> tuple[tf.Tensor | None, ...]:
    """y = x[...]: y's gradient where a value was taken, zeros elsewhere."""
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
    x = tf.reshape(gradient, list(map(len, parts)))
    backward = [axis for axis, part in enumerate(parts) if part.step < 0]
    x = tf.reverse(x, backward) if backward else x
    for axis, part in enumerate(parts):
        x = _put_apart(x, axis, abs(part.step))
    first = [min(part[0], part[-1]) if part else part.start for part in parts]
    after = [length - begin - number for length, begin, number in zip(shape, first, x.shape, strict=True)]
    return tf.pad(x, list(zip(first, after, strict=True))), None, None, None


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _read_parts(op: tf.Operation, shape: tf.TensorShape, begin, end, strides) -> list[range]:
    """What is taken of each axis of the input; an axis that the slice itself adds has none."""
    begins, ends, ellipses, added, shrunk = (op.get_attr(name) for name in _MASKS)
    is_in = lambda mask, i: bool(mask >> i & 1)
    parts, number = [], len(begin)
    for i in range(number):
        if is_in(ellipses, i):
            rest = sum(not is_in(added, j) for j in range(i + 1, number))
            parts += map(range, shape[len(parts) : len(shape) - rest])
        elif not is_in(added, i):
            length = shape[len(parts)]
            if is_in(shrunk, i):
                index = int(begin[i]) % length
                parts.append(range(index, index + 1))
                continue
            first = None if is_in(begins, i) else int(begin[i])
            parts.append(range(length)[first : None if is_in(ends, i) else int(end[i]) : int(strides[i])])
    return [*parts, *map(range, shape[len(parts) :])]


def _put_apart(x: tf.Tensor, axis: int, step: int) -> tf.Tensor:
    """The same with step - 1 zeros between neighbours on that axis."""
    number = x.shape[axis]
    if step == 1 or number <= 1:
        return x
    before, after = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    apart = tf.pad(tf.reshape(x, (before, number, 1, after)), [[0, 0], [0, 0], [0, step - 1], [0, 0]])
    apart = tf.reshape(apart, (*x.shape[:axis], number * step, *x.shape[axis + 1 :]))
    return apart[(*[slice(None)] * axis, slice((number - 1) * step + 1))]


@_gradient_of("ResizeBilinear")
@_gradient_of("ResizeNearestNeighbor")
def _differentiate_resizing(op: tf.Operation, gradient: tf.Tensor) -> tuple[tf.Tensor, None]:
    """Images (n, height, width, channels), nearest or bilinear: each axis is multiplied by a matrix, and so back."""
    n, height, width, channels = op.inputs[0].shape
    _, down, across, _ = gradient.shape
    of_rows, of_columns = _find_matrix(op, height, down), _find_matrix(op, width, across)
    x = tf.reshape(tf.transpose(gradient, (0, 3, 1, 2)), (n * channels * down, across)) @ of_columns
    x = tf.transpose(tf.reshape(x, (n * channels, down, width)), (0, 2, 1))
    x = tf.reshape(x, (n * channels * width, down)) @ of_rows
    return tf.transpose(tf.reshape(x, (n, channels, width, height)), (0, 3, 2, 1)), None


def _find_matrix(op: tf.Operation, length: int, number: int) -> np.ndarray:
    """What of each of `length` pixels goes into each of `number`, (number, length): the operation on unit vectors."""
    options = {name: op.get_attr(name) for name in ("align_corners", "half_pixel_centers")}
    unit = np.eye(length, dtype=np.float32).reshape(1, length, 1, length)
    with tf.init_scope():
        resized = getattr(tf.raw_ops, op.type)(images=unit, size=[number, 1], **options)
        return resized.numpy().reshape(number, length)


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
        ratio = near * tf.math.polyval([*_ERF_NUMERATOR], square) / tf.math.polyval([*_ERF_DENOMINATOR], square)
        y = tf.where(tf.abs(x) < _ERF_IS_ONE, ratio, tf.sign(x))
        return y, lambda gradient: gradient * tf.exp(-tf.square(x)) * (2 / math.sqrt(math.pi))

    return [compute(x)]


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
