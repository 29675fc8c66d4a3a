"""A user's own model for tasks beside classification, for tokens, and for features without a channel axis."""

import importlib

import numpy as np
import pytest
from small_formats import make_spec

from models.model_names import ModelError
from models.own_model import load_own_model
from models.task import build_task

SOURCE = """
import tensorflow as tf

seen = []

def dense(input_shape, num_outputs):
    seen.append((input_shape, num_outputs))
    return tf.keras.Sequential(
        [tf.keras.Input(input_shape), tf.keras.layers.Flatten(), tf.keras.layers.Dense(num_outputs)])

def narrow(input_shape, num_outputs):
    return dense(input_shape, num_outputs - 1)

def dense_sigmoid(input_shape, num_outputs):
    x = tf.keras.Input(input_shape)
    return tf.keras.Model(x, tf.sigmoid(dense(input_shape, num_outputs)(x)))

def embed(input_shape, vocabulary):
    x = tf.keras.Input(input_shape, dtype="int32")
    h = tf.keras.layers.Embedding(vocabulary, 4)(x)
    return tf.keras.Model(x, tf.keras.layers.Dense(vocabulary)(tf.keras.layers.Dense(5, "relu")(h)))

def embed_softmax(input_shape, vocabulary):
    model = embed(input_shape, vocabulary)
    return tf.keras.Model(model.input, tf.nn.softmax(model.output))

def last_position(input_shape, vocabulary):
    model = embed(input_shape, vocabulary)
    return tf.keras.Model(model.input, model.output[:, -1])

def wants_integers(input_shape, num_outputs):
    x = tf.keras.Input(input_shape, dtype="int32")
    h = tf.one_hot(tf.bitwise.bitwise_and(x, 3), 4)  # refuses floats
    return tf.keras.Model(x, tf.keras.layers.Dense(num_outputs)(tf.keras.layers.Flatten()(h)))
"""
TEXT = build_task("next_token", 6, (5,))
OWN_MODULES = {"own_tasks": SOURCE}
pytestmark = pytest.mark.usefixtures("own_modules")


def build_spec(model, shape=(5,), dtype="float32", task=None, **options):
    return make_spec(model, shape, dtype, task.num_outputs if task else 3, task=task, **options)


@pytest.mark.parametrize("dtype", ["uint8", "int32"])
def test_an_embedding_gets_integers_and_gives_logits_at_each_position(dtype):
    spec = build_spec("own_tasks:embed", dtype=dtype, task=TEXT, takes_tokens=True)
    x = spec.preprocess(np.ones((2, 5), dtype))
    assert x.dtype == spec.model_input_dtype == "int32"
    assert spec.build()(x).shape == (2, *TEXT.output_shape) == (2, 5, 6)
    assert spec.teacher is None and spec.task.num_outputs == 6


def test_tokens_can_be_classified():
    spec = build_spec("own_tasks:wants_integers", dtype="int32", takes_tokens=True)
    assert spec.build()(spec.preprocess(np.arange(10).reshape(2, 5))).shape == (2, 3)


@pytest.mark.parametrize(
    ("model", "task", "message"),
    [
        ("last_position", TEXT, r"expected logits of shape \(batch, 5, 6\), got \(None, 6\)"),
        ("embed_softmax", TEXT, "expected logits, got probabilities .* leave the softmax out"),
        ("dense_sigmoid", build_task("binary", 1), "expected logits, got values in .* leave the sigmoid out"),
        (
            "dense_sigmoid",
            build_task("multi_label", 4, (4,)),
            "expected logits, got values in .* leave the sigmoid out",
        ),
        ("narrow", build_task("regression", 2, (2,)), r"expected outputs of shape \(batch, 2\), got \(None, 1\)"),
    ],
)
def test_one_line_for_each_mistake(model, task, message):
    dtype = "int32" if task is TEXT else "float32"
    with pytest.raises(ModelError, match=message) as error:
        load_own_model(f"own_tasks:{model}", (5,), task.num_outputs, task=task, input_dtype=dtype)
    assert "\n" not in str(error.value)


def test_a_regression_may_put_out_any_numbers():
    load_own_model("own_tasks:dense_sigmoid", (5,), 1, task=build_task("regression", 1))


def test_features_reach_an_own_model_with_or_without_their_channel():
    seen = importlib.import_module("own_tasks").seen
    x = np.arange(8, dtype=np.float32).reshape(2, 4, 1)
    for channel_axis, shape in ((True, (4, 1)), (False, (4,))):
        spec = build_spec("own_tasks:dense", (4, 1), are_features=True, channel_axis=channel_axis)
        assert seen[-1] == (shape, 3) and spec.model_input_shape == shape
        assert spec.format.input_shape == (4, 1)
        assert spec.preprocess(x).shape == (2, *shape) and spec.build().input_shape == (None, *shape)
        assert spec.teacher.model_input_shape == (4, 1)  # one of this package keeps it
    for shape in ((4, 1), (4, 2), (4, 4, 1)):  # steps of one channel are no features
        assert build_spec("own_tasks:dense", shape, channel_axis=False).model_input_shape == shape


def test_models_of_the_package_keep_the_channel_and_learn_numbers_and_switches():
    for task in (build_task("regression", 2, (2,)), build_task("multi_label", 4, (4,)), build_task("binary", 1)):
        spec = build_spec("auto", (4, 1), task=task, are_features=True, channel_axis=False)
        assert spec.build()(np.zeros((2, 4, 1), np.float32)).shape == (2, *task.output_shape)
