"""Every algorithm meets the protocol of `tff_algos/protocol.py`: the same checks for each row of the launch table."""

import dataclasses
import functools
import json
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from launch.runs.checkpoints import Checkpoints
from launch.settings.algorithms import ALGORITHMS
from models.quantization import build_quantized_spec
from tff_algos.protocol import COMMON_METRICS, FederatedProcess
from tff_algos.rounds.quantization_start import QuantizationStart
from tff_algos.weights import initialize_weights

NUM_ROUNDS = 3  # FL+HC clusters in the second
# Second-order gradients need weights as tensors; asynchronous devices train models of before and after a switch; what
# an optimizer or a client keeps has the shapes of the model before it.
FIXED = ("amfl_p", "async_periodic", "fed_async", "buffered", "fedadam", "fedyogi", "fedavgm", "ditto", "scaffold")
SWITCHING = [name for name in ALGORITHMS if name not in FIXED]
# What fits four clients of a few examples.
SMALL = {"num_clusters": 2, "support_size": 1, "query_size": 2, "cohort_size": 3, "milestones": (1, 2)}


class Walk(NamedTuple):
    """A process with the states and metrics of its first rounds, and each state as it was when it was new."""

    process: Any
    data: Any
    states: list
    copies: list
    metrics: list


@pytest.fixture(scope="module")
def data(build_federation, tmp_path_factory):
    return build_federation(tmp_path_factory.mktemp("protocol"), [9, 12, 30, 3])


@pytest.fixture(scope="module")
def build_process(data):
    """A function (algorithm, spec) -> its process, built once."""

    @functools.cache
    def build(name, spec):
        config = ALGORITHMS[name].default_config()
        config = dataclasses.replace(config, **{name: value for name, value in SMALL.items() if hasattr(config, name)})
        return ALGORITHMS[name].load_builder()(spec, data, config, 7)

    return build


@pytest.fixture(scope="module")
def quantized_spec(linear_spec):
    return build_quantized_spec(linear_spec)


# One walk serves all checks of a process: tracing it and three rounds take seconds.
@pytest.fixture(scope="module", params=[*ALGORITHMS, *(f"{name} quantized from round 2" for name in SWITCHING)])
def walk(request, tff_runtime, data, build_process, linear_spec, quantized_spec):
    name, *is_quantized = request.param.split(" quantized", 1)
    process = build_process(name, linear_spec)
    if is_quantized:
        template = initialize_weights(quantized_spec, 7)
        quantized = build_process(name, quantized_spec)
        process = QuantizationStart(process, quantized, quantized_spec.quantization, template, 2)
    states, metrics = [process.initialize()], []
    copies = [copy_state(states[0])]
    for _ in range(NUM_ROUNDS):
        state, row = process.next(states[-1])
        states.append(state)
        copies.append(copy_state(state))
        metrics.append(row)
    return Walk(process, data, states, copies, metrics)


def copy_state(state):
    return tf.nest.map_structure(np.copy, state)


def assert_same_state(first, second):
    for a, b in zip(tf.nest.flatten(first), tf.nest.flatten(second), strict=True):
        np.testing.assert_array_equal(a, b)


def test_models_can_be_mapped_or_the_process_says_that_they_cannot(walk, request):
    """Doubling every model of the first state doubles what the process then says its models are."""
    process, name = walk.process, request.node.callspec.params["walk"].split()[0]
    assert isinstance(process, FederatedProcess) and (process.map_models is not None) == (name in SWITCHING)
    if process.map_models is None:
        return
    state = walk.states[0]
    mapped = process.map_models(state, lambda weights: tuple(array * array.dtype.type(2) for array in weights))
    tf.nest.assert_same_structure(state, mapped)
    before, after = process.get_models(state), process.get_models(mapped)
    assert list(before) == list(after) and any(np.any(array) for array in next(iter(before.values())))
    for model, doubled in zip(before.values(), after.values(), strict=True):
        for array, double in zip(model, doubled, strict=True):
            np.testing.assert_array_equal(2 * array, double)


def test_the_protocol(walk):
    process, states, metrics = walk.process, walk.states, walk.metrics
    assert all(list(row) == list(metrics[0]) for row in metrics), "columns are fixed from the first row"
    assert set(COMMON_METRICS) <= set(metrics[0])
    assert all(np.isscalar(value) for row in metrics for value in row.values())
    times = [row["virtual_time_s"] for row in metrics]
    assert times == sorted(times) and times[0] > 0
    for state in states:
        tf.nest.assert_same_structure(states[0], state)
        leaves = [np.asarray(leaf) for leaf in tf.nest.flatten(state)]
        assert all(leaf.dtype.kind in "fiub" for leaf in leaves), "numbers and masks only, no strings"
        models, names = process.get_models(state), process.client_model(state)
        assert len(names) == 4 and set(names) <= set(models)
        for model in [*models.values(), *process.get_teachers(state).values()]:
            assert all(isinstance(array, np.ndarray) for array in model)
        assert all(len(column) == 4 for column in process.client_columns(state).values())
        json.dumps(process.summarize(state))


def test_a_round_is_a_pure_function_of_its_state(walk):
    process, states, metrics = walk.process, walk.states, walk.metrics
    again, same_metrics = process.next(states[1])
    assert_same_state(again, states[2])
    np.testing.assert_equal(same_metrics, metrics[1])
    assert_same_state(states, walk.copies)


def test_a_run_goes_on_from_a_checkpoint_bit_for_bit(walk, tmp_path):
    process, states, metrics = walk.process, walk.states, walk.metrics
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(states[2], 2)
    loaded = checkpoints.load(2, process.initialize())
    state, row = process.next(loaded)
    assert_same_state(state, states[3])
    np.testing.assert_equal(row, metrics[2])


def test_clients_end_up_with_their_shared_model_or_one_of_their_own(walk):
    process, state, clients = walk.process, walk.states[-1], walk.data.clients[1:3]
    models, names = process.get_models(state), process.client_model(state)
    personal = list(process.personalize(state, clients))
    assert [client.index for client, _ in personal] == [1, 2]
    for client, weights in personal:
        shared = zip(weights, models[names[client.index]], strict=True)
        assert all(np.array_equal(a, b) for a, b in shared) != process.is_personal
