"""Phones as clients of a federation: each trains by a training file, and the server averages what they send."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from phones import open_phone
from small_formats import make_spec

from launch.settings.run_config import build_run_config
from launch.training.federation import build_spec, load_federated_data
from models.tflite_export import convert_training_module
from tff_algos.client.local_training import LocalResult, reject_if_not_finite, train_locally
from tff_algos.rounds.aggregation import (
    ClientUpdate,
    add_to_group,
    build_zero_totals,
    compute_group_means,
    finish_totals,
)
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import add_deltas, initialize_weights

ROUNDS = 5


def test_a_phone_trains_as_train_locally():
    """Two epochs of 21 examples in batches of 8, the last of 5, by plain SGD; the same orders."""
    spec, seed, rate = make_spec("perceptron", (4,), "float32", 4), (3, 4), 0.1
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(21, *spec.format.input_shape)).astype(np.float32), rng.integers(0, 4, 21, dtype=np.int32)
    weights = initialize_weights(spec, seed=1)
    config = LocalTrainingConfig(epochs=2, batch_size=8, optimizer="sgd")
    trained = train_locally(
        spec, config, tuple(map(tf.constant, weights)), x, tf.constant(y), tf.constant(seed), tf.constant(rate)
    )
    expected = add_deltas(weights, [delta.numpy() for delta in trained.weights_delta])

    epochs = [tf.random.experimental.stateless_fold_in(seed, epoch) for epoch in range(2)]
    orders = [tf.random.experimental.stateless_shuffle(tf.range(21), epoch).numpy() for epoch in epochs]
    phone = open_phone(convert_training_module(spec, weights, 8).content)
    start = {f"weight_{i}": weight for i, weight in enumerate(weights)}
    by_name, losses = phone.train_round(start, x, y, orders, 8, rate)
    for i, weight in enumerate(expected):
        assert np.abs(weight - weights[i]).max() > 1e-3
        np.testing.assert_allclose(by_name[f"weight_{i}"], weight, atol=1e-4)
    assert np.dot(losses, [8, 8, 5, 8, 8, 5]) == pytest.approx(float(trained.loss_sum), rel=1e-4)


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """(a run's config, digits of five clients)."""
    shards = str(tmp_path_factory.mktemp("shards"))
    config = build_run_config({"algo": "fedavg", "num_clients": 5, "rounds": 1, "client_dir": shards})
    return config, load_federated_data(config)


def average(server, updates):
    """The server's weights after a round: plus the mean update, by examples, of the suite's own aggregation."""
    shapes = [weight.shape for weight in server.values()]
    totals = build_zero_totals(shapes, 1)
    for weights, num_examples in updates:
        deltas = [weights[name] - server[name] for name in server]
        result = LocalResult(*reject_if_not_finite(deltas, tf.constant(0.0), tf.constant(float(num_examples))))
        totals = add_to_group(totals, ClientUpdate(result, tf.constant(0), tf.constant(float(num_examples))))
    means = compute_group_means(finish_totals(totals, shapes))
    return dict(zip(server, add_deltas(list(server.values()), [mean[0].numpy() for mean in means]), strict=True))


def train_rounds(config, data, model, part, rate, weights=None):
    """(weights, test accuracy before the first round and after each)."""
    spec = build_spec(dataclasses.replace(config, model=model), data.format)
    weights = list(initialize_weights(spec, seed=0) if weights is None else weights)
    file = convert_training_module(spec, tuple(weights), config.batch_size, part)
    splits = [data.read_split(client, "train") for client in data.clients]
    examples = [(spec.preprocess(x).numpy(), y) for x, y in splits]
    phone, keras_model, orders = open_phone(file.content), spec.build(), np.random.default_rng(0)

    def measure():
        keras_model.set_weights(weights)
        return float(np.mean(keras_model(spec.preprocess(data.test_x)).numpy().argmax(axis=1) == data.test_y))

    accuracies = [measure()]
    for _ in range(ROUNDS):
        server = {name: weights[int(name.removeprefix("weight_"))] for name in file.weight_names}
        sent = [
            (phone.train_round(server, x, y, [orders.permutation(len(y))], config.batch_size, rate)[0], len(y))
            for x, y in examples
        ]
        for name, weight in average(server, sent).items():
            weights[int(name.removeprefix("weight_"))] = weight
        accuracies.append(measure())
    return weights, accuracies


def test_five_phones_learn_digits_together(digits):
    """The convolutional student, then its head alone."""
    weights, accuracies = train_rounds(*digits, "image_student", "full", 0.3)
    assert accuracies[-1] >= accuracies[0] + 0.3, accuracies
    relearnt = [*weights[:-2], *(np.zeros_like(weight) for weight in weights[-2:])]
    after, accuracies = train_rounds(*digits, "image_student", "head", 0.3, relearnt)
    assert accuracies[-1] >= accuracies[0] + 0.3, accuracies
    for position, weight in enumerate(relearnt):
        assert np.array_equal(after[position], weight) == (position < len(weights) - 2)
