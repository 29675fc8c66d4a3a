"""pFedMe: steps by hand, its limit cases, and who has which model."""

import dataclasses

import numpy as np
import pytest

from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.pfedme.config import PFedMeConfig
from tff_algos.pfedme.process import build_pfedme_process, move_towards
from tff_algos.settings.aggregation import ServerStepConfig
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.local_training import LocalTrainingConfig

TRAINING = LocalTrainingConfig(epochs=2, batch_size=100, optimizer="sgd", learning_rate=0.1)
SEVERAL_BATCHES = dataclasses.replace(TRAINING, batch_size=4)
# x, y and number of the examples of each client of the model of one weight.
CLIENTS = [(1.0, 1, 3), (2.0, 0, 1), (-1.0, 1, 2)]


@pytest.fixture
def build(tff_runtime, linear_spec, make_federation):
    """A function (training, fields of the config) -> process of the linear model and three clients."""
    data = make_federation([9, 4, 14])

    def build(training, **fields):
        config = PFedMeConfig(training, **fields)
        return build_pfedme_process(linear_spec, data, config, seed=2)

    return build


def test_w_moves_towards_theta():
    """eta lambda = 0.25: a quarter of the way from (2, 4) to (6, 0)."""
    (moved,) = move_towards([np.float32([2, 4])], [np.float32([6, 0])], 0.25)
    np.testing.assert_array_equal(moved, np.float32([3, 3]))


def test_two_rounds_by_hand(tff_runtime, make_scalar_federation, scalar_spec, run, get_personal):
    """R = 2 batches of K = 3 steps, lambda = 4, eta = 0.05, beta = 0.5, all examples of a client in a batch."""
    data = make_scalar_federation(CLIENTS)
    config = PFedMeConfig(
        TRAINING, inner_steps=3, pull=4.0, outer_rate=0.05, server=ServerStepConfig(learning_rate=0.5)
    )
    process = build_pfedme_process(scalar_spec, data, config, seed=2)
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


def test_one_step_a_batch_that_w_follows_at_once_is_fed_avg(build, linear_spec, run):
    """K = 1 and eta lambda = 1: theta is pulled to where it is, and w_i is theta_i."""
    process = build(SEVERAL_BATCHES, inner_steps=1, pull=4.0, outer_rate=0.25, cohort_size=2)
    config = FedAvgConfig(SEVERAL_BATCHES, cohort_size=2)
    fed_avg = build_fed_avg_process(linear_spec, process.clients, config, seed=2)
    (first, *_, state), rows = run(process)
    (*_, expected), expected_rows = run(fed_avg)
    for array, wanted, start in zip(state.models, expected.models, first.models, strict=True):
        np.testing.assert_allclose(array, wanted, atol=1e-6)
        assert np.abs(array - start).max() > 0.05, "nothing was learned"
    for row, other in zip(rows, expected_rows, strict=True):
        assert row["train_loss"] == pytest.approx(other["train_loss"], rel=1e-5)
        assert row["virtual_time_s"] == other["virtual_time_s"] and row["bytes_up"] == other["bytes_up"]


def test_without_a_pull_w_stays_and_theta_is_trained_by_itself(build, linear_spec, run, get_personal, get_bytes):
    """From w, K steps on each of one batch, which is FedAvg's training of K epochs."""
    process = build(dataclasses.replace(TRAINING, epochs=1), inner_steps=2, pull=0.0)
    (before, after), (row,) = run(process, 1)
    assert get_bytes(after.models) == get_bytes(before.models)
    trained = build_fed_avg_process(linear_spec, process.clients, FedAvgConfig(TRAINING), seed=2)
    _, (other,) = run(trained, 1)
    assert row["train_loss"] == pytest.approx(other["train_loss"], rel=1e-5)
    mean = [
        np.average(arrays, axis=0, weights=[9, 4, 14]) for arrays in zip(*get_personal(process, after), strict=True)
    ]
    for array, wanted in zip(mean, trained.get_models(trained.next(trained.initialize()).state)["global"], strict=True):
        np.testing.assert_allclose(array, wanted, atol=1e-6)


def test_who_has_not_taken_part_has_w(build, run, get_personal, get_bytes):
    process = build(TRAINING, cohort_size=1)
    (before, after), _ = run(process, 1)
    shared = process.get_models(after)["global"]
    is_shared = [get_bytes(own) == get_bytes(shared) for own in get_personal(process, after)]
    assert is_shared.count(True) == 2 and after.kept.clients.tolist() == [is_shared.index(False)]
    assert get_bytes(shared) != get_bytes(process.get_models(before)["global"]) and process.takes_new_clients


def test_an_example_is_trained_on_in_every_inner_step(build, run):
    """Client 0, the slowest: 60 bytes at 1000 a second, 2 epochs of 5 steps on 9 examples at 100, 60 bytes at 500."""
    _, (row,) = run(build(TRAINING), 1)
    assert row["bytes_up"] == row["bytes_down"] == 3 * 15 * 4
    assert row["virtual_time_s"] == pytest.approx(0.06 + 0.9 + 0.12)


@pytest.mark.slow
def test_compiled_training_is_the_same_but_for_rounding(build, linear_spec, run):
    process = build(SEVERAL_BATCHES)
    compiled = dataclasses.replace(linear_spec, compiled=True)
    other = build_pfedme_process(compiled, process.clients, process.config, seed=2)
    states = [run(each, 2)[0][-1] for each in (process, other)]
    for a, b in zip(*([*state.models, *state.kept.arrays] for state in states), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


def test_a_second_proximal_term_is_refused():
    with pytest.raises(ConfigError, match="expected 0: the pull is pFedMe's own such term"):
        PFedMeConfig(dataclasses.replace(TRAINING, proximal_weight=0.1))
