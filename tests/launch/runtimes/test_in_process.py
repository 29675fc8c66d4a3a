"""TensorFlow in this process gives what TFF's worker gives: the same values, types and containers."""

import collections
from typing import NamedTuple

import numpy as np
import pytest

from launch.runtimes.in_process import run_in_process
from launch.runtimes.runtime import quiet_tensorflow


class Outcome(NamedTuple):
    delta: np.ndarray
    num_examples: np.float32


def build_computations() -> dict:
    """{name: (computation, its arguments)} of each shape that a computation may have."""
    import tensorflow as tf
    import tensorflow_federated as tff

    vector = tff.TensorType(np.float32, (3,))
    clients, server = tff.FederatedType(vector, tff.CLIENTS), tff.FederatedType(vector, tff.SERVER)
    client_struct = tff.to_type(collections.OrderedDict(path=np.str_, seed=np.int64, x=vector))

    @tff.tensorflow.computation(vector, vector)
    def work(x, weights):
        return Outcome(tf.sin(x) * weights, tf.reduce_sum(tf.abs(x)))

    @tff.tensorflow.computation(client_struct)
    def describe(client):
        variable = tf.Variable(client["x"])
        variable.assign_add(tf.ones_like(variable))
        return {"name": tf.strings.join([client["path"], "!"]), "x": variable, "seed": client["seed"], "two": (True, 2)}

    @tff.tensorflow.computation(vector, np.int32)
    def add_both(x, number):
        return [x + tf.cast(number, tf.float32), number + 1]

    @tff.federated_computation(clients, server)
    def aggregate(values, weights):
        result = tff.federated_map(work, (values, tff.federated_broadcast(weights)))
        return tff.federated_mean(result.delta, result.num_examples), tff.federated_sum(result.num_examples)

    @tff.federated_computation(server, tff.FederatedType(np.int32, tff.SERVER), clients)
    def two_server_values(weights, number, values):
        total = tff.federated_sum(values)
        return collections.OrderedDict(
            total=tff.federated_map(add_both, (total, number)), weights=weights, number=number
        )

    @tff.federated_computation(server, clients)
    def return_client_values(weights, values):
        return tff.federated_map(work, (values, tff.federated_broadcast(weights)))

    @tff.federated_computation(tff.FederatedType(client_struct, tff.CLIENTS))
    def return_nested_client_values(values):
        return tff.federated_map(describe, values)

    @tff.federated_computation(server)
    def server_only(weights):
        return tff.federated_map(tff.tensorflow.computation(lambda x: x * 2, vector), weights)

    @tff.federated_computation(clients)
    def clients_only(values):
        return tff.federated_sum(values)

    rng = np.random.default_rng(5)
    values, weights = list(rng.normal(size=(4, 3)).astype(np.float32)), np.float32([1.0, -2.0, 0.5])
    described = [
        collections.OrderedDict(path=f"client {i}", seed=np.int64(2**40 + i), x=value) for i, value in enumerate(values)
    ]
    return {
        "aggregate": (aggregate, (values, weights)),
        "one client": (aggregate, (values[:1], weights)),
        "two_server_values": (two_server_values, (weights, 7, values)),
        "return_client_values": (return_client_values, (weights, values)),
        "no client's values": (return_client_values, (weights, [])),  # TFF's worker cannot return them
        "no client's sum": (clients_only, ([],)),
        "return_nested_client_values": (return_nested_client_values, (described,)),
        "server_only": (server_only, (weights,)),
        "clients_only": (clients_only, (values,)),
        "graph": (add_both, (weights, np.int32(3))),
        "graph without arguments": (tff.tensorflow.computation(lambda: tf.constant([1, 2])), ()),
    }


@pytest.fixture(scope="module")
def computations(tmp_path_factory):
    with quiet_tensorflow(str(tmp_path_factory.mktemp("log") / "tensorflow.log")):
        return build_computations()


@pytest.fixture(scope="module")
def in_process(tmp_path_factory, computations):
    with run_in_process(str(tmp_path_factory.mktemp("log") / "tensorflow.log"), num_threads=2) as runtime:
        yield runtime


def describe_types(value):
    """The containers, dtypes and shapes of a value."""
    if isinstance(value, dict):
        return type(value), {name: describe_types(part) for name, part in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value), [describe_types(part) for part in value]
    return type(value), getattr(value, "dtype", None), np.shape(value)


def list_leaves(value) -> list:
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for part in value for leaf in list_leaves(part)] if isinstance(value, (tuple, list)) else [value]


NAMES = (
    "aggregate", "one client", "two_server_values", "return_client_values", "no client's sum",
    "return_nested_client_values", "server_only", "clients_only", "graph", "graph without arguments",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_gives_what_the_worker_gives(computations, name, tff_runtime, tmp_path):
    computation, arguments = computations[name]
    expected = computation(*arguments)
    with run_in_process(str(tmp_path / "tensorflow.log"), num_threads=2):
        given = computation(*arguments)
    assert describe_types(given) == describe_types(expected)
    for ours, theirs in zip(list_leaves(given), list_leaves(expected), strict=True):
        if isinstance(theirs, bytes):
            assert ours == theirs
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_without_clients_there_are_no_values_of_clients(computations, in_process):
    computation, arguments = computations["no client's values"]
    assert computation(*arguments) == []
