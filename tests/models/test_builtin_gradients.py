"""Each gradient against numbers worked out by hand and against TensorFlow's own, and that TensorFlow's is not used."""

import math

import numpy as np
import pytest
import tensorflow as tf

from models.builtin_gradients import place_windows, use_builtin_gradients

LAYERS = tf.keras.layers
# TensorFlow's operations for gradients that TFLite lacks.
LACKING = {
    *("Conv2DBackpropFilter", "MaxPoolGrad", "AvgPoolGrad", "BiasAddGrad", "FusedBatchNormV3", "FusedBatchNormGradV3"),
    *("DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"),
    *("ResizeBilinearGrad", "ResizeNearestNeighborGrad", "StridedSliceGrad", "Erf"),
    *("ReluGrad", "Relu6Grad", "LeakyReluGrad", "EluGrad", "TanhGrad", "SigmoidGrad", "RsqrtGrad"),
    *("PartitionedCall", "StatefulPartitionedCall"),  # what is inside of a function is not seen
}


def differentiate(function, inputs, of_output):
    """The gradients of the inputs, and of a layer's weights, by our gradients, given that of the output."""
    weights = getattr(function, "trainable_weights", [])

    @tf.function(input_signature=[tf.TensorSpec(array.shape) for array in inputs], autograph=False)
    def compute(*tensors):
        with use_builtin_gradients(function if weights else None):
            y = function(*tensors)
        return tf.gradients(y, [*tensors, *weights], of_output)

    operations = {op.type for op in compute.get_concrete_function().graph.get_operations()}
    assert not operations & LACKING
    return [gradient.numpy() for gradient in compute(*inputs)]


def differentiate_as_tensorflow(function, inputs, of_output):
    tensors = [tf.constant(array) for array in inputs]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        y = function(*tensors)
    return tape.gradient(y, [*tensors, *getattr(function, "trainable_weights", [])], of_output)


def check(function, inputs, atol=1e-5):
    shape = function(*map(tf.constant, inputs)).shape
    of_output = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    assert_close(
        differentiate(function, inputs, of_output), differentiate_as_tensorflow(function, inputs, of_output), atol=atol
    )


def assert_close(ours, theirs, rtol=1e-5, atol=0.0):
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=rtol, atol=atol)


def as_images(*rows):
    """One image of one channel."""
    return np.array(rows, np.float32)[np.newaxis, :, :, np.newaxis]


def as_kernel(*numbers):
    return np.array(numbers, np.float32).reshape(1, 2, -1, 1)


def draw(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def convolve(strides, padding, **options):
    return lambda x, w: tf.nn.conv2d(x, w, strides, padding, **options)


def convolve_depthwise(stride, padding):
    return lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, stride, stride, 1], padding)


@pytest.mark.parametrize(
    ("length", "size", "stride", "padding", "before", "after", "number"),
    [
        (5, 3, 2, b"VALID", 0, 0, 2),
        (6, 3, 2, b"VALID", 0, -1, 2),  # no window reaches the last pixel
        (6, 3, 2, b"SAME", 0, 1, 3),  # an odd padding lies behind
        (5, 3, 1, b"SAME", 1, 1, 5),
        (5, 1, 2, b"SAME", 0, 0, 3),
        (6, 1, 2, b"SAME", 0, -1, 3),
        (1, 3, 2, b"SAME", 1, 1, 1),
    ],
)
def test_windows(length, size, stride, padding, before, after, number):
    placed = place_windows(length, size, stride, padding)
    assert (placed.before, placed.after, placed.number) == (before, after, number)


BY_HAND = {
    # y = (x0 w0 + x1 w1, x1 w0 + x2 w1), with dy = (1, 2).
    "convolution": (
        convolve(1, "VALID"), [as_images([1, 2, 3]), as_kernel(10, 20)], as_images([1, 2]),
        [[10, 20 + 2 * 10, 2 * 20], [1 * 1 + 2 * 2, 1 * 2 + 2 * 3]],
    ),
    # Two channels with kernels (10, 20) and (1, 2), over (1, 2, 3) and (4, 5, 6); dy = (1, 2) and (3, 0).
    "depthwise convolution": (
        convolve_depthwise(1, "VALID"),
        [np.array([1, 4, 2, 5, 3, 6], np.float32).reshape(1, 1, 3, 2), as_kernel(10, 1, 20, 2)],
        np.array([1, 3, 2, 0], np.float32).reshape(1, 1, 2, 2),
        [[10, 3, 40, 6, 40, 0], [1 + 4, 12, 2 + 6, 15]],
    ),
    # y = (10 x0, 20 x0 + 10 x1, 20 x1), with dy = (1, 2, 3).
    "transposed convolution": (
        lambda x, w: tf.nn.conv2d_transpose(x, w, (1, 1, 3, 1), 1, "VALID"),
        [as_images([4, 5]), as_kernel(10, 20)], as_images([1, 2, 3]), [[10 + 40, 20 + 60], [4 + 10, 8 + 15]],
    ),
    "the first of equal values": (
        lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), [as_images([2, 2, 5, 1], [1, 2, 0, 5])], as_images([10, 20]),
        [[10, 0, 20, 0, 0, 0, 0, 0]],
    ),
    # Windows (0, 1), (1, 2), (2, 3): their maxima are at 1, 1 and 2.
    "windows that overlap": (
        lambda x: tf.nn.max_pool2d(x, (1, 2), 1, "VALID"), [as_images([1, 3, 3, 2])], as_images([1, 2, 4]),
        [[0, 3, 4, 0]],
    ),
    # Each of two pixels is shown twice, so it gets the sum of two gradients.
    "upsampling": (LAYERS.UpSampling2D((1, 2)), [as_images([7, 8])], as_images([1, 2, 3, 4]), [[3, 7]]),
    "relu": (tf.nn.relu, [np.float32([-1, 0, 2])], np.float32([10, 20, 30]), [[0, 0, 30]]),
    "leaky": (
        lambda x: tf.nn.leaky_relu(x, 0.2), [np.float32([-1, 0, 2])], np.float32([10, 20, 30]), [[2, 4, 30]]
    ),
    "rsqrt": (tf.math.rsqrt, [np.float32([4])], np.float32([16]), [[-1]]),  # -4^(-3/2) / 2 = -1/16
}  # fmt: skip


@pytest.mark.parametrize(("function", "inputs", "of_output", "expected"), BY_HAND.values(), ids=BY_HAND)
def test_gradients_by_hand(function, inputs, of_output, expected):
    assert_close([gradient.ravel() for gradient in differentiate(function, inputs, of_output)], expected)


AROUND = [[0, 0], [1, 1], [2, 0], [0, 0]]  # not where "SAME" would put it, though the outputs have the same shape


@pytest.mark.parametrize(
    ("function", "x", "w"),
    [
        *(
            (convolve(strides, padding), (4, *image, 3), (*kernel, 3, 5))
            for padding in ("SAME", "VALID")
            for image, kernel, strides in [
                ((8, 8), (3, 3), (1, 1)),
                ((8, 8), (3, 3), (2, 2)),
                ((7, 9), (3, 2), (2, 3)),
                ((6, 6), (1, 1), (2, 2)),
                ((1, 16), (1, 3), (1, 2)),  # sequences
            ]
        ),
        # An image narrower than the stride: a kernel that reaches only padding.
        (convolve(2, "SAME"), (4, 1, 1, 3), (3, 3, 3, 5)),
        (convolve(2, AROUND), (2, 8, 8, 3), (3, 3, 3, 1)),
        (lambda x, w: tf.nn.conv1d(x, w, 2, "SAME"), (4, 15, 3), (3, 3, 5)),
        (convolve_depthwise(1, "SAME"), (4, 7, 8, 3), (3, 3, 3, 1)),
        (convolve_depthwise(2, "SAME"), (4, 7, 8, 3), (3, 3, 3, 1)),
        (convolve_depthwise(2, "VALID"), (4, 7, 8, 3), (3, 3, 3, 1)),
        (convolve_depthwise(2, "SAME"), (2, 7, 8, 3), (2, 3, 3, 2)),  # it multiplies channels
        (convolve_depthwise(2, AROUND), (2, 8, 8, 3), (3, 3, 3, 1)),
        (lambda x, w: tf.nn.max_pool2d(x, 3, 2, AROUND) * tf.reduce_sum(w), (2, 8, 8, 3), (3,)),
        # A layer of one's own may compute in float64 where float32 is too coarse.
        (lambda x, w: tf.cast(tf.nn.relu(tf.cast(x, tf.float64)), tf.float32) * tf.reduce_sum(w), (4, 3), (1,)),
        (tf.nn.bias_add, (4, 5), (5,)),
        (tf.nn.bias_add, (2, 3, 4, 5), (5,)),
    ],
)
def test_weighted_operations(function, x, w):
    check(function, (draw(*x), draw(*w)))


def test_a_dilated_kernel():
    """Where TensorFlow computes no such gradient at all, as on processors for which it leaves oneDNN off, it skips."""
    inputs, function = (draw(2, 9, 9, 2), draw(3, 3, 2, 4)), convolve(1, "SAME", dilations=2)
    try:
        differentiate_as_tensorflow(function, inputs, function(*map(tf.constant, inputs)))
    except tf.errors.InvalidArgumentError as error:
        assert "do not yet support dilation" in str(error)
        pytest.skip("TensorFlow differentiates no dilated convolution on this processor")
    check(function, inputs)


@pytest.mark.parametrize("pool", [tf.nn.max_pool2d, tf.nn.avg_pool2d])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    ("image", "size", "strides"),
    [
        ((8, 8), (2, 2), (2, 2)),
        ((7, 7), (3, 3), (2, 2)),
        ((7, 5), (2, 2), (3, 3)),
        ((1, 12), (1, 2), (1, 1)),
        ((6, 7), (3, 2), (1, 2)),
    ],
)
def test_pooling(pool, image, size, strides, padding):
    """Of few whole numbers, so that most windows have several largest values."""
    x = np.random.default_rng(0).integers(-2, 1, (4, *image, 3)).astype(np.float32)
    check(lambda x: pool(x, size, strides, padding), (x,))


@pytest.mark.parametrize(
    ("function", "edges"),
    [
        (tf.nn.relu, [0]),
        (tf.nn.relu6, [0, 6]),
        (lambda x: tf.nn.leaky_relu(x, 0.2), [0]),
        (tf.nn.elu, [0]),
        (tf.nn.tanh, [0]),
        (tf.nn.sigmoid, [0]),
    ],
)
def test_activations(function, edges):
    x = np.array([-100, -3, -0.5, 0.5, 3, 7, 100, *edges], np.float32)
    check(function, (x,), atol=1e-7)


@pytest.mark.parametrize(
    ("shape", "options"),
    [((6, 6, 3), {}), ((5,), {}), ((6, 3), {}), ((4, 4, 2), {"scale": False}), ((4, 4, 2), {"center": False})],
)
def test_batch_normalization_trains_as_in_keras(shape, options):
    """Outputs, gradients and moving statistics after two steps, for images (Keras's joined operation) and others."""
    x, of_output = draw(8, *shape) + 1, draw(8, *shape)[::-1]

    def build():
        tf.keras.utils.set_random_seed(0)
        normalization = LAYERS.BatchNormalization(momentum=0.9, **options)
        return tf.keras.Sequential([tf.keras.Input(shape), normalization])

    model, reference = build(), build()

    @tf.function(autograph=False)
    def compute(x):
        with use_builtin_gradients(model):
            y = model(x, training=True)
        return [y, *tf.gradients(y, [x, *model.trainable_variables], of_output)]

    operations = {op.type for op in compute.get_concrete_function(tf.TensorSpec(x.shape)).graph.get_operations()}
    assert not operations & LACKING
    for _ in range(2):
        tensor = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(tensor)
            y = reference(tensor, training=True)
        theirs = [y, *tape.gradient(y, [tensor, *reference.trainable_variables], of_output)]
        assert_close(compute(x), theirs, rtol=1e-4, atol=1e-5)
        assert_close(model.get_weights(), reference.get_weights())
    np.testing.assert_allclose(model(x), reference(x), rtol=1e-5, atol=1e-6)


def test_a_frozen_normalization_keeps_its_statistics():
    model = tf.keras.Sequential([tf.keras.Input((4, 4, 2)), LAYERS.BatchNormalization()])
    model.layers[0].trainable = False
    before = model.get_weights()
    x = draw(8, 4, 4, 2) + 1
    with use_builtin_gradients(model):
        y = model(x, training=True)
    np.testing.assert_allclose(y, model(x, training=False), rtol=1e-6)
    assert_close(model.get_weights(), before, rtol=0)


def test_outside_of_the_context_all_is_as_before():
    model = tf.keras.Sequential([tf.keras.Input((4, 4, 2)), LAYERS.Conv2D(4, 3, groups=2)])
    [layer], before = model.layers, set(vars(model.layers[0]))

    @tf.function
    def compute(x):
        with use_builtin_gradients(model):
            assert set(vars(layer)) > before
        return tf.math.erf(x)

    operations = compute.get_concrete_function(tf.TensorSpec((2,))).graph.get_operations()
    assert "Erf" in {op.type for op in operations}
    assert set(vars(layer)) == before


@pytest.mark.parametrize(
    "take",
    [
        lambda x: x[:, -1],
        lambda x: x[1:, ..., 2:5:2],
        lambda x: x[..., ::-1],
        lambda x: x[:, 3:0:-2, tf.newaxis, 1],
        lambda x: x[:, ::3, :-1],
        lambda x: x[0, :, -4:-1],
        lambda x: x[:, 2:2],
    ],
)
def test_slices(take):
    """They take every value once at most, so the gradient comes back at just these."""
    check(take, (draw(2, 5, 6),), atol=0)


@pytest.mark.parametrize("method", ["nearest", "bilinear"])
@pytest.mark.parametrize("size", [(8, 10), (3, 4)])
def test_resizing(method, size):
    check(lambda x: tf.image.resize(x, size, method), (draw(2, 4, 5, 3),))


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        # Keras puts a convolution in groups into a function of its own, which the gradients must reach.
        (LAYERS.Conv2D(6, 3, groups=3), (4, 7, 8, 6)),
        (LAYERS.Conv2D(6, 3, groups=3, strides=2, padding="same"), (4, 7, 8, 6)),
        *(
            (LAYERS.Conv2DTranspose(5, (3, 2), strides=strides, padding=padding), (2, 4, 5, 3))
            for strides in (1, 3)
            for padding in ("same", "valid")
        ),
        (LAYERS.LayerNormalization(), (4, 6)),
        (LAYERS.LayerNormalization(axis=[1, 2, 3]), (2, 3, 4, 5)),
    ],
)
def test_layers(layer, shape):
    layer.build(shape)
    check(layer, (draw(*shape) + 3,))


def test_gelu_is_the_exact_one():
    """Erf has no operator in TFLite: both it and its gradient are as TensorFlow's, far from 0 too."""
    x = np.concatenate([np.linspace(-6, 6, 481), [-1e3, -20, 20, 1e3, 1e-20, 0]]).astype(np.float32)
    check(tf.nn.gelu, (x,), atol=1e-6)

    @tf.function(autograph=False)
    def compute(x):
        with use_builtin_gradients():
            return tf.math.erf(x), tf.nn.gelu(x)

    erf, gelu = (y.numpy() for y in compute(x))
    np.testing.assert_allclose(erf, [math.erf(each) for each in x], atol=5e-7)
    np.testing.assert_allclose(gelu, tf.nn.gelu(x), rtol=1e-6, atol=2e-6)
