"""Where quantization-aware training is no advice, since a run with it is refused."""

import pytest
import tensorflow as tf
from small_formats import make_format

from launch.settings.run_config import build_run_config
from launch.tflite.written_files import can_train_quantized
from models.model_spec import ModelSpec

LAYERS = tf.keras.layers


def ask(*layers, name="own:model", **flags):
    def build():
        return tf.keras.Sequential([tf.keras.Input((4,)), *(layer() for layer in layers), LAYERS.Dense(3)])

    spec = ModelSpec(name, build, make_format((4,)))
    return can_train_quantized(build_run_config({"algo": "fedavg", **flags}), spec)


def test_what_can_be_trained_so():
    assert ask() and ask(name="perceptron") and ask(name="perceptron", algo="ditto")


@pytest.mark.parametrize("algorithm", ["amfl_p", "fedproto", "moon"])
def test_algorithms_that_refuse_it(algorithm):
    assert not ask(name="perceptron", algo=algorithm)


def test_models_and_settings_that_refuse_it():
    assert not ask(LAYERS.LayerNormalization) and not ask(name="char_lstm")
    assert not ask(name="perceptron", precision="bfloat16")
    assert not ask(name="perceptron", dp_epsilon=1.0, client_weighting="equal")
