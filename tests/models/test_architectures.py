"""The printed architectures: parameter counts against the hand counts in the modules' docstrings, layers, outputs."""

import numpy as np
import pytest
import tensorflow as tf

from models.image_cnn import (
    build_image_cnn10,
    build_image_cnn10_gn,
    build_image_student,
    build_image_teacher,
    build_lenet,
    build_sensor_student,
    build_sensor_teacher,
)
from models.perceptron import (
    build_perceptron,
    build_perceptron_1nn,
    build_perceptron_2nn,
    build_perceptron_teacher,
)
from models.stateless_dropout import StatelessDropout


@pytest.mark.parametrize(
    ("build", "input_shape", "num_classes", "num_parameters"),
    [
        (build_image_student, (28, 28, 1), 10, 19_114),
        (build_image_teacher, (28, 28, 1), 10, 95_242),
        (build_image_student, (8, 8, 1), 10, 17_194),
        (build_image_teacher, (8, 8, 1), 10, 93_322),
        (build_sensor_student, (561, 1), 6, 4_670_854),
        (build_sensor_teacher, (561, 1), 6, 4_720_262),
        (build_sensor_student, (128, 9), 6, 1_100_678),
        (build_sensor_teacher, (128, 9), 6, 1_151_622),
        (build_perceptron, (20,), 3, 5_699),
        (build_perceptron_teacher, (20,), 3, 71_939),
        (build_perceptron, (5, 4), 3, 5_699),
        (build_perceptron_2nn, (28, 28, 1), 10, 199_210),
        (build_perceptron_1nn, (28, 28, 1), 10, 159_010),
        (build_lenet, (28, 28, 1), 10, 44_426),
        (build_lenet, (32, 32, 3), 10, 62_006),
        (build_lenet, (16, 16, 1), 10, 15_626),
        (build_image_cnn10_gn, (32, 32, 3), 10, 1_212_778),
    ],
)
def test_parameters_and_shapes(build, input_shape, num_classes, num_parameters):
    model = build(input_shape, num_classes)
    assert model.count_params() == num_parameters
    assert model.input_shape == (None, *input_shape)
    assert model.output_shape == (None, num_classes) and model.layers[-1].activation is tf.keras.activations.linear
    assert all(weight.trainable for weight in model.weights)


@pytest.mark.parametrize(
    ("input_shape", "width", "num_parameters"),
    [((32, 32, 3), 1.0, 1_214_826), ((32, 32, 3), 0.25, 77_346), ((8, 8, 1), 1.0, 1_214_250), ((8, 8, 1), 0.01, 263)],
)
def test_the_ten_layers_and_their_statistics(input_shape, width, num_parameters):
    """One channel in place of three: 9 * 2 * 32 = 576 fewer. Half of BatchNorm's four a filter are not trained.

    The narrowest has seven convolutions of a filter and two of three: 9 (7 + 3 + 9) + 4 * 13 + 3 * 10 + 10 = 263.
    """
    model = build_image_cnn10(input_shape, 10, width)
    assert model.count_params() == num_parameters
    convolutions = [layer for layer in model.layers if isinstance(layer, tf.keras.layers.Conv2D)]
    filters = [max(1, round(width * number)) for number in (32, 32, 64, 64, 64, 128, 128, 256, 256)]  # one always stays
    assert [layer.filters for layer in convolutions] == filters
    assert sum(int(np.prod(weight.shape)) for weight in model.non_trainable_weights) == 2 * sum(filters)
    assert [layer.strides[0] for layer in convolutions] == [1, 1, 2, 1, 1, 2, 1, 1, 1]
    assert convolutions[-1].output_shape[1:3] == (input_shape[0] // 4, input_shape[1] // 4)


def test_group_norm_takes_the_place_of_batch_norm_and_nothing_else():
    """At a quarter of the width, two parameters a filter and no statistics: 77,346 - 2 * 256."""
    plain, other = (build((32, 32, 3), 10, 0.25) for build in (build_image_cnn10, build_image_cnn10_gn))
    assert other.count_params() == 77_346 - 512 and not other.non_trainable_weights
    assert [layer.name for layer in plain.layers] == [layer.name for layer in other.layers]
    norms = [layer for layer in other.layers if layer.name.startswith("normalization")]
    assert [layer.groups for layer in norms] == [1, 1, 2, 2, 2, 4, 4, 8, 8]
    assert build_image_cnn10_gn((8, 8, 1), 3, 0.1).output_shape == (None, 3)


@pytest.mark.parametrize("build", [build_image_student, build_image_teacher])
def test_printed_image_network_is_affine(build):
    """Without activations f(a) + f(b) = f(a + b) + f(0); with ReLU it is not."""
    a, b = np.random.default_rng(0).normal(size=(2, 3, 8, 8, 1)).astype(np.float32)

    def gap(model):
        return np.abs(model(a) + model(b) - model(a + b) - model(np.zeros_like(a))).max()

    tf.keras.utils.set_random_seed(0)
    assert gap(build((8, 8, 1), 10)) < 1e-5
    assert gap(build((8, 8, 1), 10, activation="relu")) > 1e-3


def test_sensor_network_equals_the_printed_one_dimensional_layers():
    tf.keras.utils.set_random_seed(0)
    model = build_sensor_student((15, 3), 6)
    layers = tf.keras.layers
    printed = tf.keras.Sequential(
        [
            tf.keras.Input((15, 3)),
            layers.Conv1D(64, 3, strides=2, padding="same"),
            layers.LeakyReLU(0.2),
            layers.MaxPooling1D(pool_size=2, strides=1, padding="same"),
            layers.Dropout(0.25),
            layers.Conv1D(256, 3, strides=2, padding="same"),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(6),
        ]
    )
    printed.set_weights([w[0] if w.ndim == 4 else w for w in model.get_weights()])  # kernel (1, 3, a, b) to (3, a, b)
    x = np.random.default_rng(0).normal(size=(4, 15, 3)).astype(np.float32)
    np.testing.assert_allclose(model(x), printed(x), atol=1e-5)
    assert [layer.rate for layer in model.layers if isinstance(layer, StatelessDropout)] == [0.25]
