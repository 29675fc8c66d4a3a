"""Models that compute in bfloat16: what stays in float32, and that Keras's global policy does."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_spec

from models.model_names import MODEL_NAMES, ModelError
from models.precision import build_in_precision, choose_dtype
from models.saved_models import load_weights, save_model

SHAPES = {"image": (8, 8, 1), "sensor": (15, 3), "perceptron": (20,)}
PAPERS_MODELS = [name for name in MODEL_NAMES if name.split("_")[0] in SHAPES]  # others: test_federated_models.py


def build_spec(name, precision="bfloat16"):
    width = 0.125 if name.startswith("image_cnn10") else 1.0
    return make_spec(name, SHAPES[name.split("_")[0]], "float32", 4, width=width, precision=precision)


def get_policy():
    return tf.keras.mixed_precision.global_policy().name


@pytest.mark.parametrize("name", PAPERS_MODELS)
def test_layers_compute_in_bfloat16_and_keep_float32_weights_and_logits(name):
    spec = build_spec(name)
    model = spec.build()
    *hidden, logits = model.layers
    narrow = {"convolution_4"} if name in ("image_student", "image_teacher") else set()  # see models.precision
    narrow |= {f"normalization_{i}" for i in range(1, 10)} if name == "image_cnn10_gn" else set()
    assert {layer.name for layer in hidden if layer.compute_dtype != "bfloat16"} == narrow
    assert logits.compute_dtype == "float32"
    assert {weight.dtype for weight in model.weights} == {tf.float32}
    assert model.outputs[0].dtype == tf.float32
    assert (spec.precision, spec.teacher.precision) == ("bfloat16", "bfloat16")
    assert get_policy() == "float32"


@pytest.mark.parametrize("name", ["image_cnn10", "sensor_student"])
def test_the_same_start_and_nearly_the_same_logits(name):
    models = []
    for precision in ("float32", "bfloat16"):
        tf.keras.utils.set_random_seed(0)
        models.append(build_spec(name, precision).build())
    np.testing.assert_equal(*(model.get_weights() for model in models))
    x = np.random.default_rng(0).normal(size=(16, *models[0].input_shape[1:])).astype(np.float32)
    for is_training in (False, True) if name == "image_cnn10" else (False,):
        whole, mixed = (model(x, training=is_training).numpy() for model in models)
        assert {layer.compute_dtype for layer in models[0].layers} == {"float32"}
        assert 0 < np.abs(whole - mixed).max() < 0.05 * np.ptp(whole)


def test_the_policy_is_put_back_when_the_builder_fails_also_one_of_the_users_own():
    def fail():
        assert get_policy() == "mixed_bfloat16"
        raise ValueError("no model")

    tf.keras.mixed_precision.set_global_policy("float64")
    try:
        with pytest.raises(ValueError, match="no model"):
            build_in_precision(fail, "bfloat16")
        assert get_policy() == "float64"
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")


def test_builds_inside_a_graph():
    with tf.Graph().as_default():
        model = build_spec("sensor_student").build()
        assert model(tf.zeros((2, 15, 3)), training=True).dtype == tf.float32
    assert get_policy() == "float32"


def test_saved_and_read_back_in_either_precision(tmp_path):
    spec = build_spec("image_student")
    weights = tuple(spec.build().get_weights())
    save_model(spec, weights, tmp_path)
    for precision in ("bfloat16", "float32"):
        np.testing.assert_equal(load_weights(build_spec("image_student", precision), tmp_path), weights)


OWN_MODELS = """
import tensorflow as tf
def build(input_shape, num_classes):
    return tf.keras.Sequential([tf.keras.Input(input_shape), tf.keras.layers.Dense(num_classes)])
def build_float32(input_shape, num_classes):
    layers = tf.keras.layers
    logits = layers.Dense(num_classes, dtype="float32")
    return tf.keras.Sequential([tf.keras.Input(input_shape), layers.Dense(8), logits])
def build_narrow(input_shape, num_classes):
    layers = tf.keras.layers
    body = [layers.Reshape((10, 2)), layers.Conv1D(4, 3, 12, "same", name="long"), layers.Flatten()]
    return tf.keras.Sequential([tf.keras.Input(input_shape), *body, layers.Dense(num_classes, dtype="float32")])
"""


OWN_MODULES = {"own_precision": OWN_MODELS}


@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("build", r'logits of dtype float32, got bfloat16; give the last layer dtype="float32"'),
        ("build_narrow", "long has a stride of 12 on a width of 10, .* give this layer dtype="),
        ("build_float32", ""),
    ],
)
def test_an_own_model_must_suit_bfloat16(name, message):
    """It gives its logits in float32 and does not stride over its input."""
    arguments = (f"own_precision:{name}", (20,), "float32", 4)
    with pytest.raises(ModelError, match=message) if message else contextlib.nullcontext():
        spec = make_spec(*arguments, precision="bfloat16")
        assert spec.build().layers[0].compute_dtype == "bfloat16"
    assert make_spec(*arguments).precision == "float32"


def test_only_what_is_narrower_than_the_stride_stays_in_float32():
    assert choose_dtype(1, stride=2) == choose_dtype(2, stride=3) == "float32"
    assert choose_dtype(1, stride=1) is choose_dtype(2, stride=2) is choose_dtype(None, stride=2) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"precision": "float16"}, "precision=float16: expected one of float32, bfloat16"),
        ({"precision": "bfloat16", "quantize": "qat"}, "precision=bfloat16: expected float32 with quantize=qat"),
    ],
)
def test_mistakes_in_one_line(arguments, message):
    with pytest.raises(ModelError, match=message) as caught:
        make_spec("image_student", (8, 8, 1), "float32", 4, **arguments)
    assert "\n" not in str(caught.value)
