"""APFL: steps by hand, and whose statistics are whose. Its limit cases are in `test_limit_cases`."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_format

from models.model_spec import ModelSpec
from tff_algos.apfl.process import mix, step_alpha
from tff_algos.settings.local_training import LocalTrainingConfig

TRAINING = LocalTrainingConfig(epochs=2, batch_size=100, optimizer="sgd", learning_rate=0.1)
SEVERAL_BATCHES = LocalTrainingConfig(epochs=2, batch_size=4, learning_rate=0.01)
# x, y and number of the examples of each client of the model of one weight.
CLIENTS = [(1.0, 1, 3), (2.0, 0, 1), (-1.0, 1, 2)]


def test_a_mixture_and_a_step_of_its_share():
    """<v - w, g> of (3, 0) - (1, 4) and (0.5, -0.25) is 1 + 1, and the rate is 0.1."""
    own, shared, gradients = [np.float32([3, 0])], [np.float32([1, 4])], [np.float32([0.5, -0.25])]
    np.testing.assert_array_equal(mix(0.25, own, shared)[0], [1.5, 3])
    assert step_alpha(0.5, own, shared, gradients, 0.1).numpy() == pytest.approx(0.3)
    assert step_alpha(0.5, own, shared, gradients, 1.0).numpy() == 0
    assert step_alpha(0.5, own, shared, gradients, -1.0).numpy() == 1


def find_gradient(weight, x, y):
    return (1 / (1 + np.exp(-weight * x)) - y) * x


def test_three_rounds_by_hand(build_algorithm, make_scalar_federation, scalar_spec, run, get_personal):
    """Two batches a round, each of all examples of a client; alpha moves on the first, with v and w unlike by then."""
    data = make_scalar_federation(CLIENTS)
    training = dataclasses.replace(TRAINING, learning_rate=0.5)
    process = build_algorithm("apfl", data, training, scalar_spec, alpha=0.4)
    states, rows = run(process)
    shared, own = 0.0, [(0.0, 0.4)] * 3
    for state, row in zip(states[1:], rows, strict=True):
        sent = []
        for client, (x, y, _) in enumerate(CLIENTS):
            w, (v, alpha) = shared, own[client]
            for step in range(2):
                of_mixture = find_gradient(alpha * v + (1 - alpha) * w, x, y)
                moved = min(max(alpha - 0.5 * (v - w) * of_mixture, 0), 1)
                w, v = w - 0.5 * find_gradient(w, x, y), v - 0.5 * alpha * of_mixture
                alpha = alpha if step else moved
            own[client] = v, alpha
            sent.append(w)
        shared = np.average(sent, weights=[3, 1, 2])
        np.testing.assert_allclose(np.ravel(state.models), [shared], rtol=1e-5)
        np.testing.assert_allclose(np.transpose([np.ravel(each) for each in state.kept.arrays]), own, rtol=1e-5)
        mixtures = [alpha * v + (1 - alpha) * shared for v, alpha in own]
        np.testing.assert_allclose(np.ravel(get_personal(process, state)), mixtures, rtol=1e-5)
        assert row["mean_alpha"] == pytest.approx(np.mean([alpha for _, alpha in own]), rel=1e-5)
    assert len({alpha for _, alpha in own}) == 3 and 0.4 not in {alpha for _, alpha in own}


def build_normed():
    layers = tf.keras.layers
    return tf.keras.Sequential([tf.keras.Input((4,)), layers.BatchNormalization(momentum=0.5), layers.Dense(3)])


@pytest.mark.slow
def test_statistics_of_w_and_of_the_mixture_are_apart(build_algorithm, make_federation, run, get_bytes):
    """w's are those of FedAvg, to the byte."""
    data, spec = make_federation([9, 4, 14]), ModelSpec("normed", build_normed, make_format((4,)))
    (*_, state), _ = run(build_algorithm("apfl", data, SEVERAL_BATCHES, spec))
    (*_, expected), _ = run(build_algorithm("fedavg", data, SEVERAL_BATCHES, spec))
    assert get_bytes(state.models) == get_bytes(expected.models)
    means = state.kept.arrays[2]  # each client's own, while w's are averaged
    assert np.ptp(means, axis=0).max() > 1e-3 and np.abs(means - state.models[2]).max() > 1e-3
