"""Which weights a pattern names, in models with names, without, nested and wrapped."""

import re

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_format

from models.model_spec import ModelSpec
from tff_algos.partial.personal_layers import choose_personal, join_layers, list_weights, take_layers
from tff_algos.settings.config_fields import ConfigError

LAYERS = tf.keras.layers


def build_named():
    layers = [LAYERS.Dense(2, name="body"), LAYERS.BatchNormalization(name="norm"), LAYERS.Dense(3, name="head")]
    return tf.keras.Sequential([tf.keras.Input((4,)), *layers])


def build_nested():
    inner = tf.keras.Sequential([tf.keras.Input((4, 4)), LAYERS.Dense(2), LAYERS.Dense(2)], name="inner")
    return tf.keras.Sequential([tf.keras.Input((4, 4)), inner, LAYERS.Bidirectional(LAYERS.LSTM(2)), LAYERS.Dense(3)])


NAMED = ModelSpec("named", build_named, make_format((4,)))
# Its weights: kernel and bias of the body; scale, offset, mean and variance; kernel and bias of the head.
BODY, NORM, HEAD = (0, 1), (2, 3, 4, 5), (6, 7)


@pytest.mark.parametrize(
    ("pattern", "places"),
    [
        ("last", HEAD),
        ("head", HEAD),
        ("batch_norm", NORM),
        ("all_but:last", BODY + NORM),
        ("all_but: body", NORM + HEAD),
        ("last,batch_norm", NORM + HEAD),
        ("all_but:body/*, head", NORM),
        ("*/moving_*", (4, 5)),
        ("norm/moving_mean,b*", (*BODY, 4)),
        ("*/bias", (1, 7)),
    ],
)
def test_a_pattern_names_layers_or_weights(pattern, places):
    assert np.flatnonzero(choose_personal(NAMED, pattern)).tolist() == list(places)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("heads", "expected last, batch_norm or names of layers, which heads is not: body, norm, head"),
        ("last,", "which nothing is not"),
        ("Head", "which Head is not"),
        ("*", "expected fewer layers, so that some are shared; there are body, norm, head"),
        ("all_but:*/moving_*", "expected fewer layers"),
        ("all_but:*", "expected layers that are trained and personal"),
    ],
)
def test_a_pattern_that_matches_nothing_or_all_is_refused(pattern, message):
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        choose_personal(NAMED, pattern)
    assert caught.value.field == "personal" and "\n" not in str(caught.value)


def test_only_trained_layers_can_be_trained_first():
    assert sum(choose_personal(NAMED, "*/moving_*")) == 2
    with pytest.raises(ConfigError, match="trained and personal"):
        choose_personal(NAMED, "*/moving_*", needs_trained=True)


def test_names_that_keras_makes_are_the_same_however_many_models_there_are():
    spec = ModelSpec("nested", build_nested, make_format((4, 4)))
    names = [each.name for each in list_weights(spec)]
    spec.build()
    assert names == [each.name for each in list_weights(spec)]
    assert names[:4] == ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"]
    assert names[-2:] == ["dense_2/kernel", "dense_2/bias"]
    assert len(set(names)) == len(names) == 12 and all(name.startswith("bidirectional/") for name in names[4:10])


def test_layers_that_are_taken_apart_are_joined_again():
    marks = [False, True, True, False, True]
    shared, personal = take_layers([not mark for mark in marks], "abcde"), take_layers(marks, "abcde")
    assert (shared, personal) == (("a", "d"), ("b", "c", "e"))
    assert join_layers(marks, shared, personal) == tuple("abcde")


@pytest.mark.slow
def test_the_layers_of_a_quantized_model_have_their_ranges(linear_spec):
    from models.quantization import build_quantized_spec

    names = {each.name for each in list_weights(build_quantized_spec(linear_spec))}
    assert {"quant_dense/kernel", "quant_dense/kernel_min", "quant_dense/optimizer_step"} <= names
