"""pFedMe: steps by hand, and theta without a pull."""

import dataclasses

import numpy as np
import pytest
from small_runs import assert_close

from tff_algos.pfedme.process import move_towards
from tff_algos.settings.aggregation import ServerStepConfig
from tff_algos.settings.local_training import LocalTrainingConfig

TRAINING = LocalTrainingConfig(epochs=2, batch_size=100, optimizer="sgd", learning_rate=0.1)
SEVERAL_BATCHES = dataclasses.replace(TRAINING, batch_size=4)
# x, y and number of the examples of each client of the model of one weight.
CLIENTS = [(1.0, 1, 3), (2.0, 0, 1), (-1.0, 1, 2)]


def test_w_moves_towards_theta():
    """eta lambda = 0.25: a quarter of the way from (2, 4) to (6, 0)."""
    (moved,) = move_towards([np.float32([2, 4])], [np.float32([6, 0])], 0.25)
    np.testing.assert_array_equal(moved, np.float32([3, 3]))


def test_two_rounds_by_hand(build_algorithm, make_scalar_federation, scalar_spec, run, get_personal):
    """R = 2 batches of K = 3 steps, lambda = 4, eta = 0.05, beta = 0.5, all examples of a client in a batch."""
    data = make_scalar_federation(CLIENTS)
    fields = {"inner_steps": 3, "pull": 4.0, "outer_rate": 0.05, "server": ServerStepConfig(learning_rate=0.5)}
    process = build_algorithm("pfedme", data, TRAINING, scalar_spec, **fields)
    states, rows = run(process, 2)
    w = 0.0
    for state, row in zip(states[1:], rows, strict=True):
        thetas, sent, losses = [], [], []
        for x, y, number in CLIENTS:
            own, theta = w, w
            for _ in range(2):
                for _ in range(3):
                    probability = 1 / (1 + np.exp(-theta * x))
                    cross_entropy = -np.log(probability if y else 1 - probability)
                    losses += [cross_entropy + 4 / 2 * (theta - own) ** 2] * number
                    theta -= 0.1 * ((probability - y) * x + 4 * (theta - own))
                own -= 0.05 * 4 * (own - theta)
            thetas.append(theta)
            sent.append(own)
        w = 0.5 * w + 0.5 * np.average(sent, weights=[3, 1, 2])
        np.testing.assert_allclose(np.ravel(state.models), [w], rtol=1e-5)
        np.testing.assert_allclose(np.ravel(get_personal(process, state)), thetas, rtol=1e-5)
        assert row["train_loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    assert abs(thetas[0] - thetas[1]) > 0.05


def test_without_a_pull_w_stays_and_theta_is_trained_by_itself(
    build_algorithm, make_federation, run, get_personal, get_bytes
):
    """From w, K steps on each of one batch, which is FedAvg's training of K epochs."""
    data, once = make_federation([9, 4, 14]), dataclasses.replace(TRAINING, epochs=1)
    process = build_algorithm("pfedme", data, once, inner_steps=2, pull=0.0)
    fed_avg = build_algorithm("fedavg", data, TRAINING)
    (before, after), (row,) = run(process, 1)
    assert get_bytes(after.models) == get_bytes(before.models)
    (_, expected), (other,) = run(fed_avg, 1)
    assert row["train_loss"] == pytest.approx(other["train_loss"], rel=1e-5)
    personal = zip(*get_personal(process, after), strict=True)
    mean = [np.average(arrays, axis=0, weights=[9, 4, 14]) for arrays in personal]
    assert_close(mean, fed_avg.get_models(expected)["global"])
