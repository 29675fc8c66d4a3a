"""What Keras cannot write of a user's model is found before the first round, and named; what it can is left alone."""

import functools
import os
import re
import sys
import tempfile

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_format

from models.layer_numbers import number_layers_anew
from models.model_spec import ModelSpec
from models.saved_models import load_weights, save_model
from models.saving_trial import try_saving

LAYERS = tf.keras.layers


class Scale(LAYERS.Layer):
    """As people write it: an argument that Keras cannot describe, and no get_config."""

    def __init__(self, others, **options):
        super().__init__(**options)
        self.others = others

    def call(self, x):
        return 2 * x


class Leaving(LAYERS.Layer):
    def get_config(self):
        sys.exit(3)


class Power(LAYERS.Layer):
    """Its get_config leaves out the one argument."""

    def __init__(self, power=1.0, **options):
        super().__init__(**options)
        self.power = power

    def call(self, x):
        return 1 + x**self.power

    def get_config(self):
        return super().get_config()


class Renamed(LAYERS.Layer):
    def __init__(self, units, **options):
        super().__init__(**options)
        self.units = units

    def get_config(self):
        return {**super().get_config(), "unit": self.units}


class Order(LAYERS.Layer):
    """Its get_config gives an array, which Keras gives back as a dict."""

    def __init__(self, order, **options):
        super().__init__(**options)
        self.order = np.asarray(order)

    def call(self, x):
        return tf.gather(x, self.order, axis=1)

    def get_config(self):
        return {**super().get_config(), "order": self.order}


class Twice(LAYERS.Layer):
    """Its build leaves out super().build, so that Keras builds what it reads twice."""

    def build(self, shape):
        self.scales = [self.add_weight(name="scale", shape=(shape[-1],))]

    def call(self, x):
        return x * self.scales[0]


class Penalty(tf.keras.regularizers.Regularizer):
    def __call__(self, weight):
        return tf.reduce_sum(weight)


def linear(x, units):
    """A helper of the module, which must not stand for the activation of that name."""
    return x @ tf.ones((x.shape[-1], units))


class Blocks(LAYERS.Layer):
    """Keras trains the layers in a list of lists, and leaves them out of its files without a word."""

    def __init__(self, **options):
        super().__init__(**options)
        self.blocks = [[LAYERS.Dense(4)], [LAYERS.Dense(4)]]

    def call(self, x):
        for (layer,) in self.blocks:
            x = layer(x)
        return x


class Subclass(tf.keras.Model):
    def __init__(self, last):
        super().__init__()
        self.last = last

    def call(self, x):
        return self.last(x)


def build_subclass():
    model = Subclass(LAYERS.Dense(3))
    model(tf.zeros((1, 4)))
    return model


def make_spec(make_layer, name="their_models:build"):
    def build():
        layers = [tf.keras.Input((4,)), LAYERS.Dense(4, name="first"), make_layer(), LAYERS.Dense(3)]
        return tf.keras.Sequential(layers)

    return ModelSpec(name, build, make_format((4,), "float32", 3))


def leaky(x, alpha):
    return tf.nn.leaky_relu(x, alpha)


def make_closure():
    opaque = object()
    return LAYERS.Lambda(lambda x: x if opaque else -x)


UNWRITTEN = {
    "no get_config": (
        lambda: Scale([LAYERS.Dense(1)]),
        r"layer scale \(Scale\) has no get_config for what it is made with; write get_config in Scale",
    ),
    "inside another": (
        lambda: tf.keras.Sequential([Scale(object(), name="deep/scale")]),
        r"layer deep/scale \(Scale\) has no get_config",
    ),
    "partial": (
        lambda: LAYERS.Dense(4, activation=functools.partial(leaky, alpha=0.1)),
        r"layer dense \(Dense\) cannot be described: TypeError: Cannot serialize object functools.partial.*; give it "
        "what Keras can write, such as a function with a name",
    ),
    "a regularizer": (
        lambda: LAYERS.Dense(4, kernel_regularizer=Penalty()),
        r"layer dense \(Dense\) is made with Penalty, which has no get_config; write get_config in its class",
    ),
    "sys.exit": (
        Leaving,
        r"layer leaving \(Leaving\) cannot be described: a call of sys.exit .*; correct get_config in",
    ),
    "closure": (
        make_closure,
        r"layer lambda \(Lambda\) cannot be described: TypeError: Cannot serialize object <object",
    ),
    "left out": (Blocks, r"Keras has left out .*kernel:0 as it wrote them; keep layers in attributes of others"),
}


@pytest.mark.parametrize("kind", UNWRITTEN)
def test_what_cannot_be_written_is_named(kind):
    make_layer, expected = UNWRITTEN[kind]
    trial = try_saving(make_spec(make_layer))
    assert "\n" not in trial.unwritten and not trial.unread
    assert re.search(expected, trial.unwritten), trial.unwritten


@pytest.mark.parametrize(
    ("spec", "expected", "fix"),
    [
        (make_spec(lambda: Power(2.0)), "what it reads answers otherwise", "; some get_config leaves out"),
        (
            make_spec(lambda: Renamed(4)),
            "TypeError: Renamed.__init__() missing 1 required",
            "; give Renamed a get",
        ),
        (
            make_spec(lambda: Order([1, 0, 3, 2])),
            "TypeError: Expected binary or unicode string, got",
            "; give Order a get_config with all that it is made with, as numbers, texts and",
        ),
        (make_spec(Twice), "ValueError: Layer 'twice", "; end build in Twice with super().build(input_shape)"),
        (
            make_spec(lambda: LAYERS.Dense(4, activation=lambda x: 2 * x)),
            "a lambda is not read back",
            "; it is in a layer Dense: give it what Keras can write, such as a function",
        ),
        (
            ModelSpec("theirs:build", build_subclass, make_format((4,))),
            "TypeError: Unable to revive model from config",
            "",
        ),
    ],
    ids=["argument left out", "argument renamed", "an array", "built twice", "lambda", "subclass"],
)
def test_what_plain_keras_cannot_read_is_said(spec, expected, fix, tmp_path):
    trial = try_saving(spec)
    assert not trial.unwritten and trial.unread.startswith(expected) and "\n" not in trial.unread
    assert fix in trial.unread
    weights = tuple(np.full_like(each, 0.5) for each in spec.build().get_weights())
    assert save_model(spec, weights, tmp_path) == "" and os.listdir(tmp_path) == ["model.keras"]
    np.testing.assert_equal(load_weights(spec, tmp_path), weights)


def test_a_function_with_the_name_of_an_activation_is_no_fault_of_the_model():
    assert try_saving(make_spec(lambda: LAYERS.Dense(4), f"{__name__}:build")) == ("", "")


def test_a_model_that_can_be_written_is_as_if_there_were_no_trial(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spec = make_spec(lambda: LAYERS.Dense(4, activation=tf.nn.relu))
    before = spec.build().layers[-1].name
    assert try_saving(spec) == ("", "")
    after = spec.build().layers[-1].name
    assert int(after.rpartition("_")[2]) - int(before.rpartition("_")[2] or 0) == 2  # of two unnamed layers a model
    assert not any(tmp_path.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    assert try_saving(make_spec(Blocks)) == ("", "")  # where nothing can be written, nothing is known


def test_layers_are_numbered_anew_inside_alone():
    LAYERS.Dense(1)  # from here on they have numbers
    before = int(LAYERS.Dense(1).name.rpartition("_")[2])
    with number_layers_anew():
        assert [LAYERS.Dense(1).name for _ in range(2)] == ["dense", "dense_1"]
    assert LAYERS.Dense(1).name == f"dense_{before + 1}"
