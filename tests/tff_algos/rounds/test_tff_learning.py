"""FedAvg, FedAdam and FedProx beside those of `tff.learning.algorithms`: the same clients, weights, and three rounds.

A client's batch is all its examples, so that both see the same ones in the same order. The model has no BatchNorm, of
which TFF averages the trained weights alone.
"""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff
from small_runs import run

from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.settings.aggregation import ServerStepConfig
from tff_algos.settings.local_training import LocalTrainingConfig

SIZES, RATE, EPOCHS, ROUNDS = [9, 4, 14], 0.2, 2, 3
OPTIMIZERS = tff.learning.optimizers


@pytest.fixture(scope="module")
def data(can_close, tff_runtime, build_federation, tmp_path_factory):
    return build_federation(tmp_path_factory.mktemp("tff_learning"), SIZES)


@pytest.fixture(scope="module")
def learn(data, linear_spec):
    """A function (learning process, first weights) -> the weights after three rounds of TFF's algorithm."""
    datasets = []
    for client in data.clients:
        examples = tf.data.Dataset.from_tensor_slices(data.read_split(client, "train"))
        # TFF trains on the dataset once, so epochs are repeats in it.
        datasets.append(examples.batch(max(SIZES)).repeat(EPOCHS))

    def learn(process, weights):
        state = process.set_model_weights(process.initialize(), tff.learning.models.ModelWeights(weights, []))
        for _ in range(ROUNDS):
            state = process.next(state, datasets).state
        return process.get_model_weights(state).trainable

    return learn


def build_model(spec):
    """A function that makes the model as `tff.learning` takes it."""
    batch = tf.TensorSpec((None, *spec.format.input_shape), tf.float32), tf.TensorSpec((None,), tf.int32)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return lambda: tff.learning.models.from_keras_model(spec.build(), loss, batch)


@pytest.fixture(scope="module")
def train_ours(linear_spec, data):
    """A function (server, fields of the training) -> (first weights, weights after three rounds)."""

    def train(server=None, **fields):
        batches = {"epochs": EPOCHS, "batch_size": max(SIZES)}
        training = LocalTrainingConfig(**batches, optimizer="sgd", learning_rate=RATE, **fields)
        config = FedAvgConfig(training, server=server or ServerStepConfig())
        process = build_fed_avg_process(linear_spec, data, config, seed=4)
        states = process.initialize(), run(process, ROUNDS)[0]
        return [process.get_models(state)["global"] for state in states]

    return train


def assert_same(start, ours, theirs):
    for first, array, wanted in zip(start, ours, theirs, strict=True):
        assert np.abs(array - first).max() > 0.02, "nothing was learned"
        np.testing.assert_allclose(array, wanted, rtol=0, atol=1e-5)


class Proximal(OPTIMIZERS.Optimizer):
    """TFF's SGD on gradients with the pull of a proximal term to where a client began."""

    def __init__(self, pull):
        self._pull, self._sgd = pull, OPTIMIZERS.build_sgdm(RATE)

    def initialize(self, specs):
        zeros = tf.nest.map_structure(lambda spec: tf.zeros(spec.shape, spec.dtype), specs)
        return {"anchor": zeros, "has_begun": tf.constant(False), "sgd": self._sgd.initialize(specs)}

    def next(self, state, weights, gradients):
        anchor = tf.nest.map_structure(lambda a, w: tf.where(state["has_begun"], a, w), state["anchor"], weights)
        pulled = tf.nest.map_structure(lambda g, w, a: g + self._pull * (w - a), gradients, weights, anchor)
        sgd, moved = self._sgd.next(state["sgd"], weights, pulled)
        return {"anchor": anchor, "has_begun": tf.constant(True), "sgd": sgd}, moved


def build_fed_avg(model, client=None, **server):
    """TFF's FedAvg, weighted by the clients' examples."""
    client = client or OPTIMIZERS.build_sgdm(RATE)
    return tff.learning.algorithms.build_weighted_fed_avg(model, client, OPTIMIZERS.build_sgdm(1.0, **server))


def build_halving(model):
    """Both halve the clients' rate after each round; TFF counts rounds from 0."""
    return tff.learning.algorithms.build_weighted_fed_avg_with_optimizer_schedule(
        model,
        client_learning_rate_fn=lambda round_num: RATE * tf.pow(0.5, tf.cast(round_num, tf.float32)),
        client_optimizer_fn=OPTIMIZERS.build_sgdm,
        server_optimizer_fn=OPTIMIZERS.build_sgdm(1.0),
    )


def build_adam(model):
    sgd, adam = OPTIMIZERS.build_sgdm(RATE), OPTIMIZERS.build_adam(0.05, 0.9, 0.99, 1e-3)
    return tff.learning.algorithms.build_weighted_fed_avg(model, sgd, adam)


ADAM, MOMENTUM = ServerStepConfig("adam", 0.05, beta_1=0.9, beta_2=0.99, epsilon=1e-3), ServerStepConfig(momentum=0.9)


@pytest.mark.parametrize(
    ("server", "fields", "build"),
    [
        pytest.param(None, {}, build_fed_avg, id="FedAvg"),
        pytest.param(ADAM, {}, build_adam, id="FedAdam"),
        # TFF's FedAvg with the term of the paper in the clients' optimizer.
        pytest.param(None, {"proximal_weight": 2.0}, lambda m: build_fed_avg(m, Proximal(2.0)), id="FedProx"),
        pytest.param(MOMENTUM, {}, lambda m: build_fed_avg(m, momentum=0.9), id="momentum", marks=pytest.mark.slow),
        # A step at each rate is by hand in `test_fed_avg_process.py`.
        pytest.param(None, {"learning_rate_decay": 0.5}, build_halving, id="halving", marks=pytest.mark.slow),
    ],
)
def test_ours_is_that_of_tff(train_ours, linear_spec, learn, server, fields, build):
    start, ours = train_ours(server, **fields)
    assert_same(start, ours, learn(build(build_model(linear_spec)), start))


@pytest.mark.slow
def test_the_fed_prox_of_tff_has_the_other_sign(train_ours, linear_spec, learn):
    """The gradient of mu / 2 |w - w_0|^2 is mu (w - w_0); TFF 0.87's FedProx adds mu (w_0 - w), which pushes away."""
    start, ours = train_ours(proximal_weight=2.0)
    pushed = learn(build_fed_avg(build_model(linear_spec), Proximal(-2.0)), start)
    assert max(np.abs(a - b).max() for a, b in zip(ours, pushed, strict=True)) > 0.1
    theirs = tff.learning.algorithms.build_weighted_fed_prox(
        build_model(linear_spec), 2.0, OPTIMIZERS.build_sgdm(RATE), OPTIMIZERS.build_sgdm(1.0)
    )
    assert_same(start, pushed, learn(theirs, start))
