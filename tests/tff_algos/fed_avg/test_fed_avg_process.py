"""FedAvg as a process, on a TFF worker."""

import dataclasses

import numpy as np
import pytest
from small_runs import assert_close, run

from tff_algos.settings.aggregation import CompressionConfig, ServerStepConfig
from tff_algos.settings.local_training import LocalTrainingConfig

SGD = LocalTrainingConfig(epochs=1, optimizer="sgd", learning_rate=0.1, batch_size=4)
FULL_BATCH = dataclasses.replace(SGD, batch_size=20)  # no client here has more examples


@pytest.fixture
def build(build_algorithm):
    """A function (data, training, fields of the config) -> process."""
    return lambda data, training=SGD, **fields: build_algorithm("fedavg", data, training, **fields)


def read_full_batch_gradient(data, client, weights):
    """Softmax regression's mean gradient at `weights` on a client's train split, in NumPy."""
    x, y = data.read_split(data.clients[client], "train")
    logits = x @ weights[0] + weights[1]
    probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    error = (probabilities - np.eye(3)[y]) / len(y)
    return x.T @ error, error.sum(axis=0)


@pytest.mark.parametrize("weighting", ["examples", "equal"])
def test_one_step_a_client_is_the_weighted_mean_gradient(build, make_federation, weighting):
    """With one full-batch SGD step a client, w' = w - eta * sum_i p_i g_i; nine clients are padded to ten places."""
    sizes = np.array([5, 20, 10, 3, 8, 12, 7, 2, 16])
    data = make_federation(sizes)
    process = build(data, FULL_BATCH, client_weighting=weighting)
    start = process.get_models(process.initialize())["global"]
    state, _ = run(process)
    shares = sizes / sizes.sum() if weighting == "examples" else np.full(9, 1 / 9)
    gradients = [read_full_batch_gradient(data, client, start) for client in range(9)]
    for position, trained in enumerate(process.get_models(state)["global"]):
        mean = sum(share * gradient[position] for share, gradient in zip(shares, gradients, strict=True))
        np.testing.assert_allclose(trained, start[position] - 0.1 * mean, atol=1e-6)


@pytest.mark.parametrize(
    ("fields", "rates", "factor"),
    [
        ({"learning_rate": 0.4, "learning_rate_decay": 0.5}, (0.4, 0.2), 1.0),
        ({"learning_rate": 0.4}, (0.4, 0.4), 0.5),
    ],
    ids=["the learning rate decays", "the server's rate scales the update"],
)
def test_one_client_takes_full_batch_steps(build, make_federation, linear_spec, descend, fields, rates, factor):
    data = make_federation([12])
    server = ServerStepConfig(learning_rate=factor)
    process = build(data, dataclasses.replace(FULL_BATCH, **fields), server=server)
    expected = process.get_models(process.initialize())["global"]
    for rate in rates:
        expected = descend(linear_spec, expected, *data.read_split(data.clients[0], "train"), factor * rate)
    assert_close(process.get_models(run(process, 2)[0])["global"], expected)


def test_what_travels_is_compressed_and_the_server_keeps_its_precision(build, make_federation, linear_spec, descend):
    """One client, one full-batch step from Q(w), at the server's rate of 0.5: w + 0.5 Q(trained - Q(w)), 3 bits."""
    data = make_federation([12])
    training, server = dataclasses.replace(FULL_BATCH, learning_rate=0.5), ServerStepConfig(learning_rate=0.5)
    process = build(data, training, compression=CompressionConfig(bits=3), server=server)

    def round_to(array):
        low, step = array.min(), (array.max() - array.min()) / 7
        return low + np.round((array - low) / step) * step

    first = [array[0] for array in process.initialize().models]
    received = [round_to(first[0]), first[1]]  # the biases are all 0
    assert_close(process.get_models(process.initialize())["global"], received, atol=1e-6)
    trained = descend(linear_spec, received, *data.read_split(data.clients[0], "train"), 0.5)
    expected = [old + 0.5 * round_to(new - got) for old, new, got in zip(first, trained, received, strict=True)]
    state, _ = run(process)
    for array, held, wanted in zip(state.models, process.get_models(state)["global"], expected, strict=True):
        np.testing.assert_allclose(array[0], wanted, atol=1e-5)
        np.testing.assert_allclose(held, round_to(wanted), atol=1e-5)


def test_a_broken_client_is_as_if_it_had_not_come(build, make_federation, break_client):
    data = make_federation([8, 8])
    break_client(data, 1)
    assert_close(run(build(data))[0].models, run(build(make_federation([8])))[0].models, atol=1e-7)
