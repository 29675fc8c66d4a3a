"""The models of the literature: with TensorFlow Federated's weights they answer as its builders do, to the bit."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_federated.python.simulation.baselines.emnist import emnist_models
from tensorflow_federated.python.simulation.baselines.shakespeare import char_prediction_models
from tensorflow_federated.python.simulation.baselines.stackoverflow import (
    tag_prediction_tasks,
    word_prediction_models,
)
from tensorflow_federated.python.simulation.models import mobilenet_v2, resnet_models

from models.image_cnn import build_emnist_cnn, build_fedavg_cnn
from models.mobilenet import build_mobilenet_v2
from models.perceptron import build_logistic_regression
from models.resnet import build_resnet18_gn
from models.stateless_dropout import StatelessDropout
from models.text_recurrent import build_char_gru, build_char_lstm, build_char_transformer, build_word_lstm

IMAGE, PICTURE = (28, 28, 1), (32, 32, 3)


def draw(shape, dtype="float32"):
    generator = np.random.default_rng(0)
    if dtype == "int32":
        return generator.integers(1, 12, (2, *shape)).astype(dtype)
    return generator.normal(size=(2, *shape)).astype(dtype)


WIDER = "mobilenet_v2, wider, odd sides"
# (ours, theirs, shape of an example, parameters as worked out in the docstring, what turns our logits into theirs)
PAIRS = {
    "emnist_cnn": (
        lambda: build_emnist_cnn(IMAGE, 10),
        lambda: emnist_models.create_conv_dropout_model(True, 1),
        IMAGE,
        1_199_882,
        tf.nn.softmax,
    ),
    "emnist_cnn of letters": (
        lambda: build_emnist_cnn(IMAGE, 62),
        lambda: emnist_models.create_conv_dropout_model(False, 1),
        IMAGE,
        1_206_590,
        tf.nn.softmax,
    ),
    "fedavg_cnn": (
        lambda: build_fedavg_cnn(IMAGE, 10),
        lambda: emnist_models.create_original_fedavg_cnn_model(True, 1),
        IMAGE,
        1_663_370,
        tf.nn.softmax,
    ),
    "resnet18_gn": (
        lambda: build_resnet18_gn(PICTURE, 100),
        lambda: resnet_models.create_resnet18(PICTURE, 100),
        PICTURE,
        11_227_812,
        tf.nn.softmax,
    ),
    "mobilenet_v2": (
        lambda: build_mobilenet_v2(PICTURE, 100),
        lambda: mobilenet_v2.create_mobilenet_v2(PICTURE, num_groups=8, num_classes=100),
        PICTURE,
        2_351_972,
        tf.nn.softmax,
    ),
    WIDER: (
        lambda: build_mobilenet_v2((37, 41, 1), 10, width=1.3),
        lambda: mobilenet_v2.create_mobilenet_v2((37, 41, 1), 1.3, num_groups=8, num_classes=10),
        (37, 41, 1),
        None,
        tf.nn.softmax,
    ),
    "char_lstm": (
        lambda: build_char_lstm((7,), 90),
        lambda: char_prediction_models.create_recurrent_model(90, 7),
        (7,),
        820_522,
        tf.identity,
    ),
    "word_lstm": (
        lambda: build_word_lstm((7,), 10_004),
        lambda: word_prediction_models.create_recurrent_model(10_004),
        (7,),
        4_050_748,
        tf.identity,
    ),
    "logistic_regression": (
        lambda: build_logistic_regression((10_000,), 500),
        lambda: tag_prediction_tasks._build_logistic_regression_model(10_000, 500),
        (10_000,),
        5_000_500,
        tf.sigmoid,
    ),
}


@pytest.mark.parametrize(
    "name", [*(name for name in PAIRS if name != WIDER), pytest.param(WIDER, marks=pytest.mark.slow)]
)
def test_same_parameters_and_answers_as_in_tensorflow_federated(name):
    build, build_theirs, shape, num_parameters, finish = PAIRS[name]
    ours, theirs = build(), build_theirs()
    assert ours.count_params() == theirs.count_params()
    if num_parameters is not None:
        assert ours.count_params() == num_parameters
    ours.set_weights(theirs.get_weights())
    x = draw(shape, ours.input.dtype.name)
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
