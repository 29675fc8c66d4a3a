"""BatchNorm in federated rounds: its statistics are averaged like trained weights, and serve in the evaluation."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from small_formats import change_format, make_format

from models.model_spec import ModelSpec
from tff_algos.client.cohort import tell_clients
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import initialize_weights, stack_models

SHAPE = (8, 8, 1)


TRAINING = LocalTrainingConfig(epochs=9, batch_size=40, optimizer="sgd", learning_rate=0.05)


STATISTICS = (4, 5)  # the moving mean and variance, behind the convolution's two weights and the scale and offset


def build_model():
    layers = tf.keras.layers
    hidden = [layers.Conv2D(2, 3, padding="same"), layers.BatchNormalization(momentum=0.9)]
    return tf.keras.Sequential([tf.keras.Input(SHAPE), *hidden, layers.Flatten(), layers.Dense(3)])


@pytest.fixture(scope="module")
def spec():
    return ModelSpec("normalized", build_model, make_format(SHAPE, "float32", 3))


@pytest.fixture(scope="module")
def run_round(build_mean_round, spec):
    """A round from the first weights, traced once; a client is told its learning rate."""
    return build_mean_round(spec, TRAINING, initialize_weights(spec, 0))


@pytest.fixture
def images(make_federation):
    """Two clients with examples of unlike number and brightness."""
    data = make_federation([16, 40])
    rng = np.random.default_rng(1)
    for client, brightness in zip(data.clients, (1.0, 3.0), strict=True):
        x = brightness * rng.normal(size=(client.num_train, *SHAPE))
        x.astype(np.float32).tofile(f"{client.path}.train.x")
    return change_format(data, input_shape=SHAPE)


def test_the_servers_statistics_are_the_weighted_mean_of_the_clients(run_round, spec, images):
    initial = initialize_weights(spec, 0)
    inputs = tell_clients(images, np.arange(2), np.zeros(2, int), "examples", TRAINING, 0, "training", 1)
    models = stack_models([initial])
    together, alone = run_round(models, inputs), [run_round(models, [each]) for each in inputs]
    for i, first in enumerate(initial):
        client, other = (np.asarray(trained[i][0]) for trained in alone)
        np.testing.assert_allclose(together[i][0], (16 * client + 40 * other) / 56, rtol=1e-4, atol=1e-5)
        if i in STATISTICS:
            assert not np.array_equal(client, first) and not np.array_equal(client, other)


def test_the_statistics_follow_every_step_by_hand(run_round, spec, images):
    """Nine steps on one batch m that move no weight: 0.9^9 of the first value and 1 - 0.9^9 = 0.6126 of m."""
    training = dataclasses.replace(TRAINING, learning_rate=1e-30)
    initial = initialize_weights(spec, 0)
    inputs = tell_clients(images, np.array([1]), np.zeros(1, int), "examples", training, 0, "training", 1)
    trained = run_round(stack_models([initial]), inputs)
    model = spec.build()
    model.set_weights(initial)
    x, _ = images.read_split(images.clients[1], "train")
    features = model.layers[0](x).numpy()
    mean, variance = (np.asarray(trained[i][0]) for i in STATISTICS)
    np.testing.assert_allclose(mean, 0.6126 * features.mean(axis=(0, 1, 2)), rtol=1e-3, atol=1e-5)
    unbiased = features.var(axis=(0, 1, 2)) * (40 * 64) / (40 * 64 - 1)
    np.testing.assert_allclose(variance, 0.3874 + 0.6126 * unbiased, rtol=1e-3)
