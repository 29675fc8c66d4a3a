"""The models of the literature: with TensorFlow Federated's weights they answer as its builders do, to the bit."""

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_spec
from tensorflow_federated.python.simulation.baselines.emnist import emnist_models
from tensorflow_federated.python.simulation.baselines.shakespeare import char_prediction_models
from tensorflow_federated.python.simulation.baselines.stackoverflow import (
    tag_prediction_tasks,
    word_prediction_models,
)
from tensorflow_federated.python.simulation.models import mobilenet_v2, resnet_models

from models.image_cnn import build_emnist_cnn
from models.stateless_dropout import StatelessDropout
from models.task import build_task
from models.text_recurrent import build_char_gru, build_char_lstm, build_char_transformer, build_word_lstm

IMAGE, PICTURE = (28, 28, 1), (32, 32, 3)


def draw(shape, dtype="float32"):
    generator = np.random.default_rng(0)
    if dtype == "int32":
        return generator.integers(1, 12, (2, *shape)).astype(dtype)
    return generator.normal(size=(2, *shape)).astype(dtype)


def describe_text(positions, vocabulary):
    task = build_task("next_token", vocabulary, (positions,))
    return {"input_shape": (positions,), "input_dtype": "int32", "takes_tokens": True, "task": task}


# (our name, what `make_spec` gets, theirs, parameters as in the docstring, what turns our logits into theirs)
PAIRS = {
    "emnist_cnn": (
        "emnist_cnn",
        {"input_shape": IMAGE, "num_classes": 10},
        lambda: emnist_models.create_conv_dropout_model(True, 1),
        1_199_882,
        tf.nn.softmax,
    ),
    "emnist_cnn of letters": (
        "emnist_cnn",
        {"input_shape": IMAGE, "num_classes": 62},
        lambda: emnist_models.create_conv_dropout_model(False, 1),
        1_206_590,
        tf.nn.softmax,
    ),
    "fedavg_cnn": (
        "fedavg_cnn",
        {"input_shape": IMAGE, "num_classes": 10},
        lambda: emnist_models.create_original_fedavg_cnn_model(True, 1),
        1_663_370,
        tf.nn.softmax,
    ),
    "resnet18_gn": (
        "resnet18_gn",
        {"input_shape": PICTURE, "num_classes": 100},
        lambda: resnet_models.create_resnet18(PICTURE, 100),
        11_227_812,
        tf.nn.softmax,
    ),
    "mobilenet_v2": (
        "mobilenet_v2",
        {"input_shape": PICTURE, "num_classes": 100},
        lambda: mobilenet_v2.create_mobilenet_v2(PICTURE, num_groups=8, num_classes=100),
        2_351_972,
        tf.nn.softmax,
    ),
    "mobilenet_v2, wider, odd sides": (
        "mobilenet_v2",
        {"input_shape": (37, 41, 1), "num_classes": 10, "width": 1.3},
        lambda: mobilenet_v2.create_mobilenet_v2((37, 41, 1), 1.3, num_groups=8, num_classes=10),
        None,
        tf.nn.softmax,
    ),
    "char_lstm": (
        "char_lstm",
        describe_text(7, 90),
        lambda: char_prediction_models.create_recurrent_model(90, 7),
        820_522,
        tf.identity,
    ),
    "word_lstm": (
        "word_lstm",
        describe_text(7, 10_004),
        lambda: word_prediction_models.create_recurrent_model(10_004),
        4_050_748,
        tf.identity,
    ),
    "logistic_regression": (
        "logistic_regression",
        {"input_shape": (10_000,), "num_classes": 500},
        lambda: tag_prediction_tasks._build_logistic_regression_model(10_000, 500),
        5_000_500,
        tf.sigmoid,
    ),
}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow if "wider" in case else ()) for case in PAIRS]
)
def test_same_parameters_and_answers_as_in_tensorflow_federated(case):
    name, arguments, build_theirs, num_parameters, finish = PAIRS[case]
    ours, theirs = make_spec(name, **arguments).build(), build_theirs()
    expected = num_parameters or theirs.count_params()
    assert ours.count_params() == theirs.count_params() == expected
    ours.set_weights(theirs.get_weights())
    x = draw(arguments["input_shape"], ours.input.dtype.name)
    np.testing.assert_allclose(finish(ours(x, training=False)), theirs(x, training=False), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(sum(ours.losses), sum(theirs.losses), rtol=1e-5)  # the penalty of `resnet18_gn`


@pytest.mark.parametrize(
    ("build", "num_parameters"),
    [
        # Two GRUs of 256: 3 * 256 * (8 + 256 + 2) and 3 * 256 * (256 + 256 + 2); around them 8 V and 257 V.
        (build_char_gru, 204_288 + 394_752 + 265 * 90),
        (build_char_transformer, 430_170),
    ],
)
def test_those_without_a_counterpart_have_the_parameters_of_the_docstring(build, num_parameters):
    assert build((80,), 90).count_params() == num_parameters


@pytest.mark.parametrize("build", [build_char_lstm, build_char_gru, build_word_lstm, build_char_transformer])
def test_no_answer_depends_on_what_comes_later_and_every_one_on_what_came_first(build):
    """So padding at the end changes nothing before it, and the answer is read at the last real position."""
    model = build((8,), 12)
    x = draw((8,), "int32")
    changed = x.copy()
    changed[:, 5:] = 0
    before, after = model(x).numpy(), model(changed).numpy()
    np.testing.assert_allclose(before[:, :5], after[:, :5], atol=1e-6)
    assert (np.abs(before[:, 5:] - after[:, 5:]).max(axis=(0, 2)) > 1e-4).all()
    x[:, 0] = 0
    assert (np.abs(before - model(x).numpy()).max(axis=(0, 2)) > 1e-7).all()


def test_the_transformer_tells_places_apart():
    """Among equal tokens, attention alone would answer alike everywhere."""
    answers = build_char_transformer((6,), 12)(np.full((1, 6), 3, np.int32)).numpy()[0]
    assert np.abs(np.diff(answers, axis=0)).max(axis=1).min() > 1e-3


def test_dropout_stands_where_it_does_in_the_original_and_its_masks_differ():
    layers = [layer for layer in build_emnist_cnn(IMAGE, 10).layers if isinstance(layer, StatelessDropout)]
    assert [(layer.rate, layer.name) for layer in layers] == [(0.25, "dropout_1"), (0.5, "dropout_2")]
    assert len({layer.salt for layer in layers}) == 2
