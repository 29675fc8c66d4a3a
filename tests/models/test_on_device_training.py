"""Training, saving and restoring in the TFLite interpreter, through the signatures that a phone calls."""

import numpy as np
import pytest
import tensorflow as tf

from models.catalog import build_model_spec
from models.model_names import ModelError
from models.model_spec import ModelSpec
from models.on_device_training import build_training_module
from models.quantization import build_quantized_spec
from models.tflite_export import convert_training_module

BATCH_SIZE = 16
NUM_CLASSES = 4


def build_batch_norm_model():
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input((8, 8, 1)),
            layers.Conv2D(8, 3, name="convolution"),
            layers.BatchNormalization(name="normalization"),
            layers.ReLU(name="relu"),
            layers.GlobalAveragePooling2D(name="pooling"),
            layers.Dense(NUM_CLASSES, name="logits"),
        ]
    )


SPECS = {
    "image_student": build_model_spec("auto", (8, 8, 1), "float32", NUM_CLASSES),
    "sensor_student": build_model_spec("auto", (16, 3), "float32", NUM_CLASSES),
    "batch_norm": ModelSpec("batch_norm", build_batch_norm_model, (8, 8, 1), "float32", NUM_CLASSES),
}


def first_weights(spec):
    tf.keras.utils.set_random_seed(0)
    return tuple(spec.build().get_weights())


def draw_batch(spec):
    """Examples around a center for each class."""
    generator = np.random.default_rng(0)
    y = np.arange(BATCH_SIZE, dtype=np.int32) % NUM_CLASSES
    centers = generator.normal(size=(NUM_CLASSES, *spec.input_shape))
    return (centers[y] + generator.normal(0, 0.3, (BATCH_SIZE, *spec.input_shape))).astype(np.float32), y


class Phone:
    """The functions of a training file, as an app calls them."""

    def __init__(self, spec, weights):
        self.interpreter = tf.lite.Interpreter(model_content=convert_training_module(spec, weights, BATCH_SIZE))
        self.run = {name: self.interpreter.get_signature_runner(name) for name in ("train", "infer", "save", "restore")}

    def train(self, x, y, rate):
        return float(self.run["train"](x=x, y=y, learning_rate=np.float32(rate))["loss"])

    def infer(self, x):
        return np.concatenate([self.run["infer"](x=example[None])["logits"] for example in x])

    def store(self, name, path):
        return self.run[name](path=np.array(str(path).encode()))["path"]


@pytest.mark.parametrize("name", SPECS)
def test_train_save_and_restore(name, tmp_path):
    spec = SPECS[name]
    weights = first_weights(spec)
    x, y = draw_batch(spec)
    phone = Phone(spec, weights)
    model = spec.build()
    model.set_weights(weights)
    np.testing.assert_allclose(phone.infer(x), model(x, training=False), atol=1e-5)

    losses = [phone.train(x, y, 0.1) for _ in range(10)]
    assert losses[-1] < 0.97 * losses[0]

    path = tmp_path / "weights"
    at_save = phone.infer(x)
    assert phone.store("save", path) == str(path).encode()
    for _ in range(3):
        phone.train(x, y, 0.1)
    assert np.abs(phone.infer(x) - at_save).max() > 1e-3
    assert phone.store("restore", path) == str(path).encode()
    np.testing.assert_array_equal(phone.infer(x), at_save)

    another = Phone(spec, weights)  # the app, started again
    another.store("restore", path)
    np.testing.assert_array_equal(another.infer(x), at_save)


def test_a_step_is_plain_gradient_descent(descend):
    spec = SPECS["image_student"]
    weights = first_weights(spec)
    x, y = draw_batch(spec)
    phone = Phone(spec, weights)
    phone.train(x, y, 0.5)
    model = spec.build()
    model.set_weights(descend(spec, weights, x, y, 0.5))
    np.testing.assert_allclose(phone.infer(x), model(x), atol=1e-4)


def test_statistics_follow_the_data():
    """Without a step (rate 0), training moves BatchNorm's statistics and nothing else."""
    spec = SPECS["batch_norm"]
    weights = first_weights(spec)
    x, y = draw_batch(spec)
    phone = Phone(spec, weights)
    model = spec.build()
    model.set_weights(weights)
    before = model(x, training=False)
    for _ in range(3):
        phone.train(x, y, 0.0)
        model(x, training=True)
    assert np.abs(model(x, training=False) - before).max() > 1e-3
    np.testing.assert_allclose(phone.infer(x), model(x, training=False), atol=1e-5)


def test_dropout_draws_a_new_mask_each_step():
    spec = SPECS["sensor_student"]
    x, y = draw_batch(spec)
    phone = Phone(spec, first_weights(spec))
    assert len({phone.train(x, y, 0.0) for _ in range(4)}) > 1
    np.testing.assert_array_equal(phone.infer(x), phone.infer(x))


def test_quantized_model_is_stripped():
    spec = build_quantized_spec(SPECS["image_student"])
    weights = first_weights(spec)
    x, _ = draw_batch(spec)
    model = spec.quantization.float_spec.build()
    model.set_weights(spec.quantization.strip(weights))
    module = build_training_module(spec, weights, BATCH_SIZE)
    np.testing.assert_array_equal(module.infer(x[:1])["logits"], model(x[:1]))


def test_batch_size():
    spec = SPECS["image_student"]
    with pytest.raises(ModelError, match="batch_size=0: expected at least 1"):
        build_training_module(spec, first_weights(spec), 0)
