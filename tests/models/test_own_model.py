"""A user's own model: what is accepted, and one line for each thing that can be wrong with it."""

import importlib

import numpy as np
import pytest

from models.model_names import ModelError
from models.own_model import load_own_model

SOURCE = """
import sys
import tensorflow as tf

def build(input_shape, num_classes):
    return tf.keras.Sequential(
        [tf.keras.Input(input_shape), tf.keras.layers.Flatten(), tf.keras.layers.Dense(num_classes)])

class Subclassed(tf.keras.Model):
    def __init__(self, num_classes):
        super().__init__()
        self.dense = tf.keras.layers.Dense(num_classes)
    def call(self, x):
        return self.dense(x)

def build_subclassed(input_shape, num_classes):
    model = Subclassed(num_classes)
    model.build((None, *input_shape))
    return model

def with_softmax_activation(input_shape, num_classes):
    return tf.keras.Sequential([tf.keras.Input(input_shape), tf.keras.layers.Dense(num_classes, activation="softmax")])

def with_softmax_layer(input_shape, num_classes):
    return tf.keras.Sequential(
        [tf.keras.Input(input_shape), build(input_shape, num_classes), tf.keras.layers.Softmax()])

def with_sigmoid(input_shape, num_classes):
    return tf.keras.Sequential([tf.keras.Input(input_shape), tf.keras.layers.Dense(num_classes, activation="sigmoid")])

def too_wide(input_shape, num_classes):
    return build(input_shape, num_classes + 1)

def other_input(input_shape, num_classes):
    return build((7,), num_classes)

def two_outputs(input_shape, num_classes):
    x = tf.keras.Input(input_shape)
    return tf.keras.Model(x, [tf.keras.layers.Dense(num_classes)(x), tf.keras.layers.Dense(num_classes)(x)])

def unbuilt(input_shape, num_classes):
    return tf.keras.Sequential([tf.keras.layers.Dense(num_classes)])

def no_model(input_shape, num_classes):
    return "a model"

def fails(input_shape, num_classes):
    raise RuntimeError("first line\\nsecond line")

def exits(input_shape, num_classes):
    sys.exit()

_calls = []

def exits_later(input_shape, num_classes):
    _calls.append(None)
    return build(input_shape, num_classes) if len(_calls) <= 2 else sys.exit(0)

def no_arguments():
    return None

_shared = []

def same_object(input_shape, num_classes):
    if not _shared:
        _shared.append(build(input_shape, num_classes))
    return _shared[0]

not_a_function = 3
"""


@pytest.fixture(scope="module", autouse=True)
def own_modules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    (folder / "own_networks.py").write_text(SOURCE)
    (folder / "own_broken.py").write_text("def f(:\n")
    (folder / "own_exits.py").write_text("import sys\nsys.exit(0)\n")
    (folder / "own_missing_import.py").write_text("import a_package_that_is_not_there\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        importlib.invalidate_caches()
        yield


@pytest.mark.parametrize("function", ["build", "build_subclassed"])
def test_builds_a_new_model_each_time(function):
    build = load_own_model(f"own_networks:{function}", (5,), 3)
    first, second = build(), build()
    assert first is not second
    assert first(np.zeros((2, 5), np.float32)).shape == (2, 3)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("own_networks", "expected auto"),
        ("own_nowhere:build", "no module named own_nowhere; run from the folder"),
        ("own_nowhere.deep:build", "no module named own_nowhere; run from the folder"),
        ("own_missing_import:build", "no module named a_package_that_is_not_there; own_missing_import needs it"),
        ("own_broken:build", "importing own_broken failed: SyntaxError"),
        ("own_networks:nothing", "expected a function nothing"),
        ("own_networks:not_a_function", "expected a function not_a_function"),
        ("own_networks:fails", "failed with RuntimeError: first line"),
        ("own_networks:exits", "failed with a call of sys.exit"),
        ("own_exits:build", "importing own_exits failed: a call of sys.exit"),
        ("sys:nothing", "expected a function nothing in sys"),
        ("own_networks:no_arguments", "failed with TypeError"),
        ("own_networks:no_model", "expected the function to return a tf.keras.Model"),
        ("own_networks:unbuilt", "expected a built model"),
        ("own_networks:same_object", "expected a new model from each call"),
        ("own_networks:too_wide", r"expected logits of shape \(batch, 3\), got \(None, 4\)"),
        ("own_networks:two_outputs", r"expected logits of shape \(batch, 3\), got \(None, 3\), \(None, 3\)"),
        ("own_networks:other_input", "failed with ValueError"),
        ("own_networks:with_softmax_activation", "expected logits, the last operation is a softmax"),
        ("own_networks:with_softmax_layer", "expected logits, the last operation is a softmax"),
        ("own_networks:with_sigmoid", "expected logits, the last operation is a sigmoid"),
    ],
)
def test_one_line_for_each_mistake(model, message):
    with pytest.raises(ModelError, match=message) as error:
        load_own_model(model, (5,), 3)
    assert str(error.value).startswith(f"model={model}: ")
    assert "\n" not in str(error.value)


def test_a_later_call_that_fails_is_one_line_too():
    build = load_own_model("own_networks:exits_later", (5,), 3)
    with pytest.raises(ModelError, match="own_networks:exits_later: failed with a call of sys"):
        build()
