"""The scaling of features inside a model: its arithmetic, saved models, and files of every format."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_model_optimization as tfmot
from model_answers import compute_keras, rebuild
from small_formats import make_spec

from datasets.example_format import ASIDE, Padding
from launch.tflite.export_measurement import ExportedFile
from models.model_names import ModelError
from models.on_device_training import build_training_module
from models.saved_models import load_weights, save_model
from models.standardization import Standardization, count_scaled
from models.tflite_export import convert_model, find_reference

# Features as a table has them: of scale 1, of 1e6 with a deviation of 1, tiny, and of deviation 1e6.
MEANS, DEVIATIONS = (0.5, 1e6, 3e-7, 7.0), (1.0, 1.0, 1e-7, 1e6)
STANDARDIZATION = Standardization(MEANS, DEVIATIONS)


def draw_examples(number=64, shape=(4,)):
    z = np.random.default_rng(0).normal(size=(number, *shape))
    means, deviations = (np.reshape(each, (-1, 1) if shape[1:] == (1,) else -1) for each in (MEANS, DEVIATIONS))
    return (z * deviations + means).astype(np.float32)


def build_spec(shape=(4,), standardization=STANDARDIZATION, **options):
    tf.keras.utils.set_random_seed(1)
    return make_spec("auto", shape, **options).with_standardization(standardization)


def draw_weights(spec):
    tf.keras.utils.set_random_seed(2)
    return tuple(spec.build().get_weights())


@pytest.mark.parametrize(
    ("shape", "standardization", "raw", "expected"),
    [
        # After scale and offset: 2 * 6 + 2 = 14, (14 - 10) / 2 = 2; 2 * -1.5 + 2 = -1, (-1 + 1) / 4 = 0
        ((2,), Standardization((10.0, -1.0), (2.0, 4.0)), [6.0, -1.5], [2.0, 0.0]),
        # Channels of series and images are scaled alike everywhere: 2 * 0.5 + 2 = 3 is (3 - 1) / 1 and (3 - 2) / 0.5.
        ((3, 2), Standardization((1.0, 2.0), (1.0, 0.5)), [[0.5] * 2] * 3, [[2.0, 2.0]] * 3),
        ((2, 3, 2), Standardization((1.0, 2.0), (1.0, 0.5)), [[[0.5] * 2] * 3] * 2, [[[2.0, 2.0]] * 3] * 2),
        # A large mean beside a small deviation keeps its digits.
        ((2,), Standardization((2e6, 2.0), (0.3, 1.0)), [1e6, 0.0], [np.float32(2 / 0.3), 0.0]),
    ],
)
def test_by_hand(shape, standardization, raw, expected):
    spec = build_spec(shape, standardization, scale=2.0, offset=2.0)
    np.testing.assert_array_equal(spec.preprocess(np.array([raw], np.float32))[0], expected)


@pytest.mark.parametrize(
    ("shape", "number"), [((5,), 5), ((5, 1), 5), ((5, 2), 2), ((8, 8, 3), 3), ((8, 8, 1), 1), ((1,), 1)]
)
def test_how_many_are_scaled(shape, number):
    assert count_scaled(shape) == number


@pytest.mark.parametrize(
    ("means", "deviations"),
    [((), ()), ((1.0,), (1.0, 2.0)), ((0.0,), (0.0,)), ((float("nan"),), (1.0,)), ((0.0,), (float("inf"),))],
)
def test_numbers_that_cannot_scale_are_refused(means, deviations):
    with pytest.raises(ModelError):
        Standardization(means, deviations)


def test_another_number_of_features_is_refused():
    with pytest.raises(ModelError, match=r"4 means for examples of shape \(5,\), expected 5"):
        build_spec((5,))


def test_a_teacher_and_the_float_model_inside_have_the_same():
    spec = build_spec(quantize="qat")
    assert spec.teacher.standardization == spec.quantization.float_spec.standardization == STANDARDIZATION
    assert spec.weight_shapes == build_spec(quantize="qat", standardization=None).weight_shapes


def build_padded_spec():
    def build():
        layers = [tf.keras.Input((5, 1)), tf.keras.layers.Flatten(), tf.keras.layers.Dense(3)]
        return tf.keras.Sequential(layers)

    standardization = Standardization((4.0,) * 5, (2.0,) * 5, Padding(0.0, False))
    return dataclasses.replace(make_spec("auto", (5, 1)), build=build).with_standardization(standardization)


@pytest.mark.parametrize(
    ("build", "x"),
    [
        (build_spec, draw_examples()),
        (lambda: build_spec((4, 1)), draw_examples(shape=(4, 1))),
        (lambda: build_spec(quantize="qat"), draw_examples()),
        (lambda: build_spec(precision="bfloat16"), draw_examples()),
        (build_padded_spec, np.float32([[[0], [6], [0], [8], [0]]])),
    ],
    ids=["features", "columns", "quantized", "bfloat16", "padded"],
)
def test_a_saved_model_takes_unscaled_inputs_anywhere(build, x, tmp_path):
    spec = build()
    weights = draw_weights(spec)
    save_model(spec, weights, tmp_path)
    with tfmot.quantization.keras.quantize_scope():
        opened = tf.keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(opened(x), compute_keras(spec, weights, x), atol=1e-6)
    np.testing.assert_equal(load_weights(spec, tmp_path), weights)


@pytest.mark.parametrize(
    "export_format", ["float32", "float16", pytest.param("dynamic", marks=pytest.mark.slow), "int8", "qat_int8"]
)
def test_a_file_of_features_with_unlike_scales_answers_as_keras(export_format):
    """Beside features of deviation 1 and 1e6, and means of 1e6, which 16 and 8 bits cannot hold."""
    spec = build_spec(quantize="qat" if export_format == "qat_int8" else "none")
    x, weights = draw_examples(), draw_weights(spec)
    if export_format == "qat_int8":
        model = rebuild(spec, weights)
        step = tf.function(lambda: model(spec.preprocess(x), training=True))
        for _ in range(60):  # so that the ranges are those of the values
            step()
        weights = tuple(model.get_weights())
    file = ExportedFile(convert_model(spec, weights, export_format, representative=x))
    expected = compute_keras(*find_reference(spec, weights, export_format), x)
    outputs = file.compute_outputs(x)
    tolerance = {"float32": 1e-5, "float16": 2e-3, "dynamic": 0.02}.get(export_format, 0.06)
    np.testing.assert_allclose(outputs, expected, atol=tolerance * np.abs(expected).max())
    assert outputs.std(axis=0).min() > 0.05


def test_int8_without_it_does_lose_the_features():
    """What the above would look like if the converter had the scaling: this test shows that the other one can fail."""
    spec = build_spec(standardization=None)
    x, weights = draw_examples(), draw_weights(spec)
    file = ExportedFile(convert_model(spec, weights, "int8", representative=x))
    pair = np.array([[0, 1e6, 0, 7], [3, 1e6 + 3, 0, 7]], np.float32)
    assert len(np.unique(file.compute_outputs(pair), axis=0)) == 1


def test_int8_inputs_are_refused():
    spec = build_spec()
    with pytest.raises(ModelError, match="expected io=float32"):
        convert_model(spec, draw_weights(spec), "int8", io="int8", representative=draw_examples())


def test_a_training_module_scales_too():
    spec, x = build_spec(), draw_examples(2)
    weights = draw_weights(spec)
    module = build_training_module(spec, weights, 2)
    expected = compute_keras(spec, weights, x)
    np.testing.assert_allclose(module.infer(x[:1])["logits"], expected[:1], atol=1e-5)
    y = np.array([0, 2], np.int32)
    loss = tf.keras.losses.sparse_categorical_crossentropy(y, expected, from_logits=True).numpy().mean()
    assert float(module.train(x, y, 0.0)["loss"]) == pytest.approx(loss, rel=1e-4)


PADDED = [  # shape, padding, raw steps, what the model gets of them with a mean of 4 and a deviation of 2
    ((5, 1), Padding(0.0, False), [[0], [6], [0], [8], [0]], [[0], [1], [-2], [2], [0]]),
    ((5, 1), Padding(0.0, True), [[0], [6], [0], [8], [0]], [[0], [1], [0], [2], [0]]),
    ((3, 2), Padding(0.0, True), [[0, 8], [0, 0], [6, 4]], [[-2, 2], [0, 0], [1, 0]]),
    ((3, 2), Padding(-1.0, True), [[-1, -1], [-1, 6], [2, 2]], [[-1, -1], [-2.5, 1], [ASIDE - 1] * 2]),
    ((3, 2), Padding(0.0, False), [[0, 0], [4, 4], [0, 0]], [[0, 0], [ASIDE] * 2, [0, 0]]),
]


class CountSteps(tf.keras.layers.Layer):
    def call(self, x, mask=None):
        return tf.reduce_sum(tf.cast(mask, tf.float32), axis=1, keepdims=True)


def build_masking_spec(shape, padding):
    """A model that puts out how many steps are not masked, and one more."""

    def build():
        inputs = tf.keras.Input(shape)
        counts = CountSteps()(tf.keras.layers.Masking(padding.value)(inputs))
        return tf.keras.Model(inputs, tf.keras.layers.Dense(2, "linear", True, "ones", "ones")(counts))

    spec = dataclasses.replace(make_spec("auto", shape), build=build)
    number = count_scaled(shape)
    return spec.with_standardization(Standardization((4.0,) * number, (2.0,) * number, padding))


@pytest.mark.parametrize(("shape", "padding", "raw", "expected"), PADDED)
def test_padding_stays_in_every_graph(shape, padding, raw, expected):
    x, spec = np.array([raw], np.float32), build_masking_spec(shape, padding)
    np.testing.assert_array_equal(spec.preprocess(x)[0], expected)
    flat = spec.standardization.apply(x[..., 0], shape[:1]) if shape[1] == 1 else spec.preprocess(x)[..., 0]
    np.testing.assert_array_equal(flat[0], np.array(expected)[:, 0])
    whole, inside = spec.build_whole()
    number = 1 + (np.array(expected) != padding.value).any(axis=1).sum()
    assert whole(x).numpy().tolist() == [[number] * 2] == inside(spec.preprocess(x)).numpy().tolist()


@pytest.mark.parametrize(("export_format", "case"), [("float32", 0), ("float32", 3), ("int8", 2)])
def test_padding_stays_in_files(export_format, case):
    shape, padding, raw, expected = PADDED[case]
    x, spec = np.array([raw], np.float32), build_masking_spec(shape, padding)
    file = ExportedFile(convert_model(spec, tuple(spec.build().get_weights()), export_format, representative=x))
    number = 1 + (np.array(expected) != padding.value).any(axis=1).sum()
    np.testing.assert_allclose(file.compute_outputs(x), [[number] * 2], atol=0.1)


def test_what_is_no_measurement_keeps_every_bit():
    spec = build_spec((3,), Standardization((0.0, 2.0, 0.0), (1.0, 2.0, 1.0)))
    x = np.array([[4999.0, 4.0, 0.1], [-0.0, 2.0, 3e38]], np.float32)
    np.testing.assert_array_equal(spec.preprocess(x), [[4999.0, 1.0, np.float32(0.1)], [0.0, 0.0, np.float32(3e38)]])
