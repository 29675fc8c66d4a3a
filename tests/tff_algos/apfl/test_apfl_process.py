"""APFL: steps by hand, its limit cases, and who has which mixture."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_format

from models.model_spec import ModelSpec
from tff_algos.apfl.config import APFLConfig
from tff_algos.apfl.process import build_apfl_process, mix, step_alpha
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.local_only.config import LocalOnlyConfig
from tff_algos.local_only.process import build_local_only_process
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.local_training import LocalTrainingConfig

TRAINING = LocalTrainingConfig(epochs=2, batch_size=100, optimizer="sgd", learning_rate=0.1)
SEVERAL_BATCHES = LocalTrainingConfig(epochs=2, batch_size=4, learning_rate=0.01)
# x, y and number of the examples of each client of the model of one weight.
CLIENTS = [(1.0, 1, 3), (2.0, 0, 1), (-1.0, 1, 2)]


@pytest.fixture
def build(tff_runtime, linear_spec, make_federation):
    """A function (training, fields of the config) -> process of the linear model and three clients."""
    data = make_federation([9, 4, 14])

    def build(training, **fields):
        config = APFLConfig(training, **fields)
        return build_apfl_process(linear_spec, data, config, seed=2)

    return build


def test_a_mixture_and_a_step_of_its_share():
    """<v - w, g> of (3, 0) - (1, 4) and (0.5, -0.25) is 1 + 1, and the rate is 0.1."""
    own, shared, gradients = [np.float32([3, 0])], [np.float32([1, 4])], [np.float32([0.5, -0.25])]
    np.testing.assert_array_equal(mix(0.25, own, shared)[0], [1.5, 3])
    assert step_alpha(0.5, own, shared, gradients, 0.1).numpy() == pytest.approx(0.3)
    assert step_alpha(0.5, own, shared, gradients, 1.0).numpy() == 0
    assert step_alpha(0.5, own, shared, gradients, -1.0).numpy() == 1


def find_gradient(weight, x, y):
    return (1 / (1 + np.exp(-weight * x)) - y) * x


def test_three_rounds_by_hand(tff_runtime, make_scalar_federation, scalar_spec, run, get_personal):
    """Two batches a round, each of all examples of a client; alpha moves on the first, with v and w unlike by then."""
    data = make_scalar_federation(CLIENTS)
    training = dataclasses.replace(TRAINING, learning_rate=0.5)
    process = build_apfl_process(scalar_spec, data, APFLConfig(training, alpha=0.4), seed=2)
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


def test_the_global_model_is_that_of_fed_avg_and_with_an_alpha_of_0_the_personal_ones_are(
    build, linear_spec, run, get_personal, get_bytes
):
    """Bit for bit; the round takes longer, since two models are trained."""
    process = build(SEVERAL_BATCHES, alpha=0.0, adaptive=False, cohort_size=2)
    config = FedAvgConfig(SEVERAL_BATCHES, cohort_size=2)
    fed_avg = build_fed_avg_process(linear_spec, process.clients, config, seed=2)
    (*_, expected), other_rows = run(fed_avg)
    (*_, state), rows = run(process)
    (*_, mixed), _ = run(build(SEVERAL_BATCHES, alpha=0.5, adaptive=False, cohort_size=2))
    assert get_bytes(state.models) == get_bytes(mixed.models) == get_bytes(expected.models)
    for own in get_personal(process, state):
        assert get_bytes(own) == get_bytes(fed_avg.get_models(expected)["global"])
    for row, other in zip(rows, other_rows, strict=True):
        assert row.pop("virtual_time_s") > other.pop("virtual_time_s") and row.pop("mean_alpha") == 0
        assert row == other


def test_with_an_alpha_of_1_the_personal_models_are_those_of_local_training(build, linear_spec, run, get_personal):
    process = build(SEVERAL_BATCHES, alpha=1.0, adaptive=False)
    local = build_local_only_process(linear_spec, process.clients, LocalOnlyConfig(SEVERAL_BATCHES), seed=2)
    state, expected = run(process)[0][-1], run(local)[0][-1]
    personal = get_personal(process, state)
    for own, (_, other) in zip(personal, local.personalize(expected, process.clients.clients), strict=True):
        for a, b in zip(own, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)
    assert not np.allclose(personal[0][0], personal[1][0], atol=1e-3)


def test_who_has_not_taken_part_has_w(build, run, get_personal, get_bytes):
    process = build(TRAINING, cohort_size=1)
    (_, after), _ = run(process, 1)
    shared = process.get_models(after)["global"]
    is_shared = [get_bytes(own) == get_bytes(shared) for own in get_personal(process, after)]
    assert is_shared.count(True) == 2 and after.kept.clients.tolist() == [is_shared.index(False)]
    assert process.takes_new_clients and [array.shape for array in after.kept.arrays] == [(1, 4, 3), (1, 3), (1,)]


def test_two_models_are_trained_and_one_is_sent(build, run):
    """Client 0, the slowest: 60 bytes at 1000 a second, 2 epochs of two models on 9 examples at 100, 60 at 500."""
    _, (row,) = run(build(TRAINING), 1)
    assert row["bytes_up"] == row["bytes_down"] == 3 * 15 * 4
    assert row["virtual_time_s"] == pytest.approx(0.06 + 0.36 + 0.12)


def build_normed():
    layers = tf.keras.layers
    return tf.keras.Sequential([tf.keras.Input((4,)), layers.BatchNormalization(momentum=0.5), layers.Dense(3)])


@pytest.mark.slow
def test_statistics_of_w_and_of_the_mixture_are_apart(build, run, get_bytes):
    """w's are those of FedAvg, to the byte."""
    data, spec = build(TRAINING).clients, ModelSpec("normed", build_normed, make_format((4,)))
    process = build_apfl_process(spec, data, APFLConfig(SEVERAL_BATCHES, alpha=0.5), seed=2)
    (*_, state), _ = run(process)
    (*_, expected), _ = run(build_fed_avg_process(spec, data, FedAvgConfig(SEVERAL_BATCHES), seed=2))
    assert get_bytes(state.models) == get_bytes(expected.models)
    means = state.kept.arrays[2]  # each client's own, while w's are averaged
    assert np.ptp(means, axis=0).max() > 1e-3 and np.abs(means - state.models[2]).max() > 1e-3


@pytest.mark.slow
def test_compiled_training_is_the_same_but_for_rounding(build, linear_spec, run):
    process = build(SEVERAL_BATCHES)
    compiled = dataclasses.replace(linear_spec, compiled=True)
    other = build_apfl_process(compiled, process.clients, process.config, seed=2)
    states = [run(each, 2)[0][-1] for each in (process, other)]
    for a, b in zip(*([*state.models, *state.kept.arrays] for state in states), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


def test_a_proximal_term_is_refused():
    with pytest.raises(ConfigError, match="expected 0: APFL has no such term"):
        APFLConfig(dataclasses.replace(TRAINING, proximal_weight=0.1))
