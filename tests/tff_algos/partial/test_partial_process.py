"""Partial personalization: both schedules by hand, its limit cases, what travels, and who keeps which layers."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_format
from small_runs import assert_close

from models.model_spec import ModelSpec
from tff_algos.partial.config import PartialConfig
from tff_algos.partial.process import build_partial_training
from tff_algos.rounds.synchronous import SynchronousProcess, build_parts
from tff_algos.settings.aggregation import CompressionConfig, ServerStepConfig
from tff_algos.settings.local_training import LocalTrainingConfig

SEVERAL_BATCHES = LocalTrainingConfig(epochs=2, batch_size=4, learning_rate=0.01)
ONE_STEP = LocalTrainingConfig(epochs=1, batch_size=100, optimizer="sgd", learning_rate=0.1)
RATE = 0.1
SIZES = [9, 4, 14]
BIAS = "*/bias"  # of the linear model, whose kernel is shared: 12 and 3 weights


@pytest.fixture
def data(make_federation):
    return make_federation(SIZES)


@pytest.fixture
def build(build_algorithm, data):
    """A function (training, fields of the config) -> process of the linear model, of which the bias is personal."""
    return functools.partial(build_algorithm, "partial", data, personal=BIAS)


def test_together_by_hand(build, data, linear_spec, descend, run, get_personal):
    """One step each: the kernel becomes the mean over 27 examples, a bias stays with its client."""
    process = build(ONE_STEP)
    (_, first, second), rows = run(process, 2)
    kernel, biases = process.initial_weights[0], [process.store.initial[0]] * 3
    for state in (first, second):
        stepped = [
            descend(linear_spec, (kernel, bias), *data.read_split(client, "train"), RATE)
            for client, bias in zip(data.clients, biases, strict=True)
        ]
        kernel = np.average([weights[0] for weights in stepped], axis=0, weights=SIZES)
        biases = [weights[1] for weights in stepped]
        np.testing.assert_allclose(state.models[0][0], kernel, atol=1e-6)
        for own, bias in zip(get_personal(process, state), biases, strict=True):
            assert_close(own, [kernel, bias])
    assert np.ptp(biases, axis=0).max() > 1e-3, "the clients' biases are alike"
    assert len(second.models) == 1 and rows[0]["train_loss"] > rows[1]["train_loss"]


def test_head_first_by_hand(build, data, linear_spec, descend, run, get_personal):
    """Two steps of the bias, the kernel fixed, then one of the kernel, the bias fixed."""
    process = build(ONE_STEP, schedule="head_first", head_epochs=2)
    (_, state), (row,) = run(process, 1)
    kernel, bias = process.initial_weights[0], process.store.initial[0]
    kernels = []
    for client, own in zip(data.clients, get_personal(process, state), strict=True):
        examples = data.read_split(client, "train")
        head = descend(linear_spec, (kernel, bias), *examples, RATE)[1]
        head = descend(linear_spec, (kernel, head), *examples, RATE)[1]
        kernels.append(descend(linear_spec, (kernel, head), *examples, RATE)[0])
        np.testing.assert_allclose(own[1], head, atol=1e-6)
    np.testing.assert_allclose(state.models[0][0], np.average(kernels, axis=0, weights=SIZES), atol=1e-6)
    # Each example is trained on three times, and the loss is the mean over all of them.
    assert row["train_loss"] < run(build(ONE_STEP), 1)[1][0]["train_loss"]


def test_without_personal_layers_it_is_fed_avg_to_the_byte(build_algorithm, data, linear_spec, run, get_bytes):
    """A pattern cannot say so."""
    config = PartialConfig(SEVERAL_BATCHES, cohort_size=2)
    work = build_partial_training(linear_spec, config, (False, False))
    process = SynchronousProcess(**build_parts(linear_spec, data, config, 2, work, travels=(True, True)))
    (*_, state), rows = run(process)
    (*_, expected), expected_rows = run(build_algorithm("fedavg", data, SEVERAL_BATCHES, cohort_size=2))
    assert get_bytes(state.models) == get_bytes(expected.models) and rows == expected_rows


def test_a_client_whose_head_diverges_keeps_its_layers(build, data, break_client, run, get_bytes):
    process = build(ONE_STEP, schedule="head_first", head_epochs=2)
    (_, first), _ = run(process, 1)
    break_client(data, 1)
    second, row = process.next(first)
    assert row["num_rejected"] == 1 and np.isfinite(row["train_loss"])
    kept = [get_bytes(row) for state in (first, second) for row in process.store.read(state.kept, range(3))]
    assert [kept[client] == kept[client + 3] for client in range(3)] == [False, True, False]


def test_what_is_rounded_and_stepped_are_the_shared_layers(build):
    parts = {"compression": CompressionConfig(bits=8), "server": ServerStepConfig(momentum=0.5)}
    process = build(ONE_STEP, personal="*/kernel", **parts)
    assert process.transport.is_compressed == process.transport.is_update_compressed == (True,)
    assert process.transport.model_bytes == 3 + 8  # a byte a weight, and the range
    assert [leaf.shape for leaf in process.initialize().server if leaf.ndim > 1] == [(1, 3)]


def build_normed():
    layers = tf.keras.layers
    hidden = [layers.Dense(2, name="body"), layers.BatchNormalization(momentum=0.5, name="norm")]
    return tf.keras.Sequential([tf.keras.Input((4,)), *hidden, layers.Dense(3, name="head")])


@pytest.mark.parametrize(
    ("fields", "shared"),
    [
        ({"personal": "batch_norm"}, 10 + 9),
        ({"personal": "last"}, 10 + 8),
        pytest.param({"personal": "*/moving_*"}, 10 + 4 + 9, marks=pytest.mark.slow),
        pytest.param({"personal": "batch_norm", "schedule": "head_first"}, 10 + 9, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_statistics_go_where_their_layer_goes(build, data, fields, shared, run, get_personal):
    """FedBN's stay with the client and are its own; otherwise they travel and are averaged."""
    spec = ModelSpec("normed", build_normed, make_format((4,)))
    process = build(ONE_STEP, spec, head_epochs=1, **fields)
    (_, state), (row,) = run(process, 1)
    assert row["bytes_up"] == row["bytes_down"] == 3 * shared * 4
    assert sum(array.size for array in state.models) == shared
    means = [own[4] for own in get_personal(process, state)]
    body = process.initial_weights[:2]
    for client, mean in zip(data.clients, means, strict=True):
        x, _ = data.read_split(client, "train")
        if fields["personal"] != "last":  # half the first mean, which is 0, and half that of its examples
            np.testing.assert_allclose(mean, 0.5 * (x @ body[0] + body[1]).mean(axis=0), atol=1e-5)
    assert (np.ptp(means, axis=0).max() > 1e-3) == (fields["personal"] != "last")
