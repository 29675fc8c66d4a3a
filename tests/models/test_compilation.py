"""Which models XLA may compile, and for which that pays."""

import dataclasses

import pytest
import tensorflow as tf
from small_formats import make_format, make_spec

from models.compilation import compile_spec, find_obstacle, pays
from models.model_spec import ModelSpec
from models.stateless_dropout import StatelessDropout
from models.task import build_task

LAYERS = tf.keras.layers


def build_own_spec(make_layers, shape=(6,)):
    """Layers are made with the model: those made before some other test entered a graph are of no use after it."""
    return ModelSpec("own", lambda: tf.keras.Sequential([tf.keras.Input(shape), *make_layers()]), make_format(shape))


def test_small_dense_models_gain():
    assert pays(make_spec("perceptron", (8,), "float32", 4))
    assert pays(make_spec("logistic_regression", (28, 28, 1), "uint8", 10))
    assert not pays(make_spec("perceptron", (561,), "float32", 6))  # 40,518 weights


@pytest.mark.parametrize(
    "spec",
    [
        make_spec("sensor_student", (32, 3), "float32", 4),
        make_spec("char_gru", (4,), "int32", 9, takes_tokens=True, task=build_task("next_token", 9, (4,))),
        build_own_spec(lambda: [StatelessDropout(0.5), LAYERS.Dense(3)]),  # XLA draws other masks
        make_spec("perceptron", (8,), "float32", 4, precision="bfloat16"),
    ],
    ids=["convolutions", "recurrent", "dropout", "bfloat16"],
)
def test_others_may_be_compiled_but_do_not_gain(spec):
    assert not pays(spec) and not find_obstacle(spec)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (build_own_spec(lambda: [LAYERS.Dense(3), LAYERS.BatchNormalization()]), "not trained"),
        (build_own_spec(lambda: [LAYERS.Dense(3, activity_regularizer="l2")]), "losses of its own"),
        (make_spec("image_student", (8, 8, 1), "uint8", 3, augment="crop_flip"), "augmented"),
        (make_spec("perceptron", (8,), "float32", 4, quantize="qat"), "quantization"),
    ],
    ids=["batch norm", "activity", "augmented", "quantized"],
)
def test_what_depends_on_whole_batches_is_not_compiled(spec, reason):
    assert reason in find_obstacle(spec) and not pays(spec)


def test_teachers_and_peers_are_compiled_where_that_pays():
    student = make_spec("perceptron", (8,), "float32", 4)
    small, large = (dataclasses.replace(student, teacher=each) for each in (student, student.teacher))
    assert compile_spec(small).compiled and compile_spec(small).teacher.compiled
    assert compile_spec(large).compiled and not compile_spec(large).teacher.compiled
    peers = compile_spec(dataclasses.replace(student, peers=(student, student.teacher))).peers
    assert [peer.compiled for peer in peers] == [True, False]
    assert not student.compiled
