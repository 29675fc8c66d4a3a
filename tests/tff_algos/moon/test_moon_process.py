"""MOON: its loss by hand, its first two rounds, and which model a client keeps."""

import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from small_formats import make_format

from models.embedding import expose_embedding, split_outputs
from models.model_names import ModelError
from models.model_spec import ModelSpec, Quantization
from tff_algos.moon.process import compute_contrastive_losses
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import take_model

SEVERAL_BATCHES = LocalTrainingConfig(epochs=2, batch_size=4, optimizer="sgd", learning_rate=0.1)
ONE_STEP = LocalTrainingConfig(epochs=1, batch_size=100, optimizer="sgd", learning_rate=0.1)
VECTORS = arrays.arrays(np.float32, (3, 2), elements=st.floats(-4, 4, width=32)).filter(
    lambda rows: (np.linalg.norm(rows, axis=1) > 0.1).all()
)


def build_small():
    return tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(2), tf.keras.layers.Dense(3)])


SMALL = ModelSpec("small", build_small, make_format((4,)))  # with representations of two numbers


@pytest.fixture
def data(make_federation):
    return make_federation([9, 4, 14])


@pytest.fixture
def build(build_algorithm, data):
    """A function (training, clients, fields of the config) -> process of the small model."""

    def build(training, clients=data, **fields):
        return build_algorithm("moon", clients, training, SMALL, **{"contrast_weight": 5.0, **fields})

    return build


def compute(z, z_glob, z_prev, temperature=0.5):
    """The loss of one example and its gradient along z."""
    z = tf.constant([z], tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(z)
        losses = compute_contrastive_losses(z, np.float32([z_glob]), np.float32([z_prev]), temperature)
    return losses.numpy()[0], tape.gradient(losses, z).numpy()[0]


RIGHT, UP, LEFT, DOWN = (1, 0), (0, 1), (-1, 0), (0, -1)


@pytest.mark.parametrize(
    ("z", "z_glob", "z_prev", "loss", "gradient"),
    [
        (RIGHT, RIGHT, LEFT, 0.018150, (0, 0)),  # log(1 + e^-4)
        (RIGHT, LEFT, RIGHT, 4.018150, (0, 0)),  # log(1 + e^4)
        (RIGHT, RIGHT, UP, 0.126928, (0, 0.238406)),  # log(1 + e^-2); 2 * 0.119203
        (RIGHT, UP, RIGHT, 2.126928, (0, -1.761594)),  # log(1 + e^2); -2 * 0.880797
        ((2, 0), (0, 7), (3, 0), 2.126928, (0, -0.880797)),  # z of length 2 turns half as quickly
        (RIGHT, UP, DOWN, 0.693147, (0, -2)),  # log 2; 2 * 0.5 * (-1 - 1)
        (RIGHT, UP, UP, 0.693147, (0, 0)),
    ],
)
def test_the_loss_and_its_gradient_by_hand(z, z_glob, z_prev, loss, gradient):
    """With tau = 0.5 and d = sim(z, z_prev) - sim(z, z_glob), the loss is log(1 + e^(2 d)).

    Its slope is 2 sigmoid(2 d); sigmoid(2) = 0.880797, sigmoid(-2) = 0.119203. The gradient of a cosine along z is the
    part of the other unit vector across z, over |z|.
    """
    found = compute(z, z_glob, z_prev)
    assert found[0] == pytest.approx(loss, abs=1e-6)
    np.testing.assert_allclose(found[1], gradient, atol=1e-6)


@given(VECTORS, st.floats(0.1, 5), st.floats(0.1, 10))
def test_the_loss_sees_directions_alone_and_is_bounded(vectors, temperature, factor):
    z, z_glob, z_prev = vectors
    loss, gradient = compute(z, z_glob, z_prev, temperature)
    assert compute(factor * z, z_glob, factor * z_prev, temperature)[0] == pytest.approx(loss, rel=1e-3, abs=1e-5)
    assert math.log1p(math.exp(-2 / temperature)) - 1e-5 <= loss <= math.log1p(math.exp(2 / temperature)) + 1e-4
    to_glob, to_prev = (z @ other / np.linalg.norm(z) / np.linalg.norm(other) for other in (z_glob, z_prev))
    exchanged, _ = compute(z, z_prev, z_glob, temperature)
    assert loss - exchanged == pytest.approx((to_prev - to_glob) / temperature, abs=1e-3)
    assert abs(gradient @ z) < 1e-3 * (1 + np.linalg.norm(gradient) * np.linalg.norm(z)), "z is turned, not stretched"


def test_a_representation_of_zeros_has_a_finite_gradient():
    loss, gradient = compute((0, 0), RIGHT, LEFT)
    assert loss == pytest.approx(math.log(2)) and np.isfinite(gradient).all()


def test_the_first_round_is_that_of_fed_avg_but_for_log_2_in_its_loss(build, run, get_bytes):
    """In its later steps z has moved, but z_glob and z_prev agree still."""
    (first, second), (row,) = run(build(SEVERAL_BATCHES), 1)
    (_, expected), (expected_row,) = run(build(SEVERAL_BATCHES, contrast_weight=0.0), 1)
    assert get_bytes(second.models) == get_bytes(expected.models) != get_bytes(first.models)
    assert row["train_loss"] - expected_row["train_loss"] == pytest.approx(5 * math.log(2), rel=1e-5)


def test_the_second_round_by_the_printed_equation(build, data, run):
    """One full batch down Eq. (4), where w^1 is the mean and w_i^1 what the client has kept."""
    process = build(ONE_STEP)
    (_, first, second), rows = run(process, 2)
    kept = [process.store.read(state.kept, range(3)) for state in (first, second)]
    received = take_model(first.models, 0)
    model, losses = expose_embedding(SMALL).build(), []

    def embed(weights, x):
        model.set_weights(weights)
        return tf.math.l2_normalize(split_outputs(model(x), 3)[1], axis=1)

    for client, before, after in zip(data.clients, *kept, strict=True):
        x, y = data.read_split(client, "train")
        z_prev, z_glob = embed(before, x), embed(received, x)
        model.set_weights(received)
        with tf.GradientTape() as tape:
            logits, z = split_outputs(model(x), 3)
            z = tf.math.l2_normalize(z, axis=1)
            alike, unlike = (tf.exp(tf.reduce_sum(z * other, axis=1) / 0.5) for other in (z_glob, z_prev))
            contrast = -tf.math.log(alike / (alike + unlike))
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits) + 5 * contrast)
        for new, old, gradient in zip(after, received, tape.gradient(loss, model.trainable_variables), strict=True):
            np.testing.assert_allclose(new, old - 0.1 * gradient, atol=2e-6)
        losses.append(loss.numpy())
        assert abs(contrast.numpy() - math.log(2)).max() > 1e-4, "nothing was contrasted"
    assert rows[1]["train_loss"] == pytest.approx(np.average(losses, weights=[9, 4, 14]), rel=1e-5)
    for new, *own in zip(second.models, *kept[1], strict=True):
        np.testing.assert_allclose(new[0], np.average(own, axis=0, weights=[9, 4, 14]), atol=1e-6)


def test_a_client_without_examples_has_no_say(build, make_federation, run, get_bytes):
    process = build(ONE_STEP, make_federation([9, 0]))
    (first, second), (row,) = run(process, 1)
    kept = process.store.read(second.kept, range(2))
    assert row["num_rejected"] == 0 and np.isfinite(row["train_loss"])
    for new, only in zip(second.models, kept[0], strict=True):
        np.testing.assert_allclose(new[0], only, atol=1e-6)
    assert get_bytes(kept[0]) != get_bytes(kept[1])
    assert get_bytes(kept[1]) == get_bytes(take_model(first.models, 0)), "it has trained by no example"


def test_models_without_a_representation_are_refused(build_algorithm, data):
    with pytest.raises(ModelError, match=r"^--quantize=qat: expected none, since embeddings are of float models"):
        build_algorithm("moon", data, spec=dataclasses.replace(SMALL, quantization=Quantization(SMALL, ())))
    ending = ModelSpec("ending", lambda: tf.keras.Sequential([build_small(), tf.keras.layers.ReLU()]), SMALL.format)
    with pytest.raises(ModelError, match=r"^ending: expected a last layer"):
        build_algorithm("moon", data, spec=ending)
