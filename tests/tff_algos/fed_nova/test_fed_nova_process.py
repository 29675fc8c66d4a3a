"""FedNova: the weights of steps, rounds by hand, and who does not count."""

import numpy as np
import pytest
import tensorflow as tf
from small_runs import run

from tff_algos.fed_nova.process import sum_step_weights
from tff_algos.settings.aggregation import ServerStepConfig
from tff_algos.settings.local_training import LocalTrainingConfig

RATE = 0.5


@pytest.fixture
def build(build_algorithm, scalar_spec):
    """A function (data, fields of the training, fields of the config) -> process."""

    def build(data, training=None, **fields):
        given = {"epochs": 1, "optimizer": "sgd", "learning_rate": RATE, "batch_size": 2, **(training or {})}
        return build_algorithm("fednova", data, LocalTrainingConfig(**given), scalar_spec, **fields)

    return build


@pytest.mark.parametrize(
    ("num_steps", "momentum", "pull", "expected"),
    [
        (0, 0.0, 0.0, 0.0),
        (3, 0.0, 0.0, 3.0),
        (0, 0.5, 0.0, 0.0),
        (1, 0.5, 0.0, 1.0),
        (2, 0.5, 0.0, 2.5),  # the first gradient moves the weight by 1 + 1/2, the second by 1
        (3, 0.5, 0.0, 4.25),  # 1 + 1/2 + 1/4, 1 + 1/2, 1
        (0, 0.0, 0.5, 0.0),
        (1, 0.0, 0.5, 1.0),
        (2, 0.0, 0.5, 1.5),  # half of the first step is gone after the second
        (3, 0.0, 0.5, 1.75),  # 1/4, 1/2, 1
        (100, 0.0, 1e-9, 100.0),  # a small pull is none, not a quotient of rounding
    ],
)
def test_the_weights_of_steps_by_hand(num_steps, momentum, pull, expected):
    total = sum_step_weights(tf.constant(float(num_steps)), momentum, tf.constant(pull))
    assert total.dtype == tf.float32 and float(total) == pytest.approx(expected, rel=1e-6)


def train(feature, label, start, num_steps, momentum=0.0, pull=0.0):
    """(where SGD ends, what it moved), one weight, in NumPy."""
    weight, velocity = start, 0.0
    for _ in range(num_steps):
        gradient = (1 / (1 + np.exp(-weight * feature)) - label) * feature + pull * (weight - start)
        velocity = momentum * velocity + gradient
        weight -= RATE * velocity
    return weight - start


@pytest.mark.parametrize("server_rate", [1.0, 0.5])
@pytest.mark.parametrize(
    ("training", "totals"),
    [({}, (2, 1)), ({"momentum": 0.5}, (2.5, 1)), ({"proximal_weight": 1.0}, (1.5, 1))],
)
def test_two_rounds_by_hand(build, make_scalar_federation, training, totals, server_rate):
    """Client 0 takes two steps in batches of two and weighs 4/6, client 1 takes one and weighs 2/6.

    The model moves by tau_eff * (2/3 d_0 / |a_0| + 1/3 d_1 / |a_1|), tau_eff = 2/3 |a_0| + 1/3 |a_1|.
    """
    process = build(
        make_scalar_federation([(1, 1, 4), (2, 0, 2)]), training, server=ServerStepConfig(learning_rate=server_rate)
    )
    own = {"momentum": training.get("momentum", 0.0), "pull": training.get("proximal_weight", 0.0)}
    weight, state = 0.0, process.initialize()
    for _ in range(2):
        state, _ = process.next(state)
        moves = train(1, 1, weight, 2, **own), train(2, 0, weight, 1, **own)
        effective = (2 * totals[0] + totals[1]) / 3
        weight += server_rate * effective * (2 * moves[0] / totals[0] + moves[1] / totals[1]) / 3
        assert state.models[0].item() == pytest.approx(weight, abs=1e-6)


def test_plain_averaging_is_bent_where_this_is_not(build, make_scalar_federation):
    """Both clients pull with the same strength at first, one by four steps: FedNova stays where neither wins.

    At a small rate a gradient hardly changes in a round, so the divided updates are the gradients, which cancel out.
    """
    data = make_scalar_federation([(1, 1, 8), (1, 0, 2)])
    process = build(data, {"learning_rate": 1e-3}, client_weighting="equal")
    state, _ = run(process)
    assert abs(state.models[0].item()) < 1e-6  # FedAvg: (4 - 1) / 2 steps of 0.0005
    assert train(1, 1, 0.0, 4) > 0.5


def test_a_broken_client_does_not_count_in_the_effective_steps(build, make_scalar_federation, break_client):
    """Only client 1 is left: its own update, as if it were alone."""
    data = make_scalar_federation([(1, 1, 8), (2, 0, 2)])
    break_client(data, 0)
    state, [metrics] = run(build(data))
    assert metrics["num_rejected"] == 1
    assert state.models[0].item() == pytest.approx(train(2, 0, 0.0, 1), abs=1e-6)
    break_client(data, 1)
    state, [metrics] = run(build(data))
    assert metrics["num_rejected"] == 2 and np.isnan(metrics["train_loss"]) and state.models[0].item() == 0


def test_a_client_without_examples_moves_nothing(build, make_scalar_federation):
    """Also where all weigh alike: its update is zero, and it takes no steps, |a| = 0; finite in any case."""
    data = make_scalar_federation([(1, 1, 4), (2, 0, 0)])
    state, [metrics] = run(build(data))
    assert state.models[0].item() == pytest.approx(train(1, 1, 0.0, 2), abs=1e-6)
    assert metrics["num_rejected"] == 0 and np.isfinite(metrics["total_drift"])
    # p = 1/2 each: tau_eff = 1, and the mean of the divided updates is half of d_0 / 2.
    state, _ = run(build(data, client_weighting="equal"))
    assert state.models[0].item() == pytest.approx(train(1, 1, 0.0, 2) / 4, abs=1e-6)


def test_the_drift_is_that_of_the_divided_updates(build, make_scalar_federation):
    """Equal weights: the variance of d_i / |a_i|."""
    process = build(make_scalar_federation([(1, 1, 4), (2, 0, 2)]), client_weighting="equal")
    _, [metrics] = run(process)
    divided = train(1, 1, 0.0, 2) / 2, train(2, 0, 0.0, 1)
    assert metrics["total_drift"] == pytest.approx(np.var(divided), rel=1e-4)
