"""Every algorithm meets the protocol of `tff_algos/protocol.py`: the same checks for each row of the launch table."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from launch.runs.checkpoints import Checkpoints
from launch.settings.algorithms import ALGORITHMS
from models.quantization import build_quantized_spec
from tff_algos.protocol import COMMON_METRICS
from tff_algos.rounds.quantization_start import start_quantization_later
from tff_algos.weights import initialize_weights

NUM_ROUNDS = 3  # FL+HC clusters in the second
# Second-order gradients need weights as tensors; asynchronous devices train models of before and after a switch.
SWITCHING = [name for name in ALGORITHMS if name not in ("amfl_p", "async_periodic", "fed_async", "buffered")]
# What fits four clients of a few examples.
SMALL = {"num_clusters": 2, "support_size": 1, "query_size": 2, "cohort_size": 3, "milestones": "1,2"}


@pytest.fixture(params=[*ALGORITHMS, *(f"{name} quantized from round 2" for name in SWITCHING)])
def process(request, tff_runtime, make_federation, linear_spec):
    name, *is_quantized = request.param.split(" quantized", 1)
    algorithm, data = ALGORITHMS[name], make_federation([9, 12, 30, 3])
    config = algorithm.default_config()
    config = dataclasses.replace(config, **{name: value for name, value in SMALL.items() if hasattr(config, name)})
    build = algorithm.load_builder()
    float_process = build(linear_spec, data, config, 7)
    if not is_quantized:
        return float_process
    spec = build_quantized_spec(linear_spec)
    template = initialize_weights(spec, 7)
    return start_quantization_later(float_process, build(spec, data, config, 7), spec.quantization, template, 2)


def run_states(process, num_rounds=NUM_ROUNDS):
    states, metrics = [process.initialize()], []
    for _ in range(num_rounds):
        state, row = process.next(states[-1])
        states.append(state)
        metrics.append(row)
    return states, metrics


def assert_same_state(first, second):
    for a, b in zip(tf.nest.flatten(first), tf.nest.flatten(second), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_protocol(process):
    states, metrics = run_states(process)
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


def test_a_round_is_a_pure_function_of_its_state(process):
    states, metrics = run_states(process)
    copies = [tf.nest.map_structure(np.copy, state) for state in states]
    again, same_metrics = process.next(states[1])
    assert_same_state(again, states[2])
    np.testing.assert_equal(same_metrics, metrics[1])
    assert_same_state(states, copies)


def test_a_run_goes_on_from_a_checkpoint_bit_for_bit(process, tmp_path):
    states, metrics = run_states(process)
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(states[2], 2)
    loaded = checkpoints.load(2, process.initialize())
    state, row = process.next(loaded)
    assert_same_state(state, states[3])
    np.testing.assert_equal(row, metrics[2])


def test_clients_end_up_with_their_shared_model_or_one_of_their_own(process, make_federation):
    (*_, state), _ = run_states(process)
    clients = make_federation([9, 12, 30, 3]).clients[1:3]
    models, names = process.get_models(state), process.client_model(state)
    personal = list(process.personalize(state, clients))
    assert [client.index for client, _ in personal] == [1, 2]
    for client, weights in personal:
        shared = zip(weights, models[names[client.index]], strict=True)
        assert all(np.array_equal(a, b) for a, b in shared) != process.is_personal
