"""TensorFlow in this process gives what TFF's worker gives: the same values, types and containers."""

import collections
import os
import signal
import threading
import time
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff
import tree

from launch.runtimes.in_process import run_in_process
from launch.runtimes.runtime import WorkerError


class Outcome(NamedTuple):
    delta: np.ndarray
    num_examples: np.float32


def build_computations() -> dict:
    """{name: (computation, its arguments)} of each shape that a computation may have."""
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
def computations():
    return build_computations()


@pytest.fixture(scope="module")
def in_process(tmp_path_factory, computations):
    with run_in_process(str(tmp_path_factory.mktemp("log") / "tensorflow.log"), num_threads=2) as runtime:
        yield runtime


def describe_types(value):
    """The dtypes and shapes of a value, in its containers."""
    return tree.map_structure(lambda leaf: (type(leaf), getattr(leaf, "dtype", None), np.shape(leaf)), value)


@pytest.mark.usefixtures("can_close")
@pytest.mark.parametrize("name", sorted(build_computations().keys() - {"no client's values"}))
def test_gives_what_the_worker_gives(computations, name, tff_runtime, tmp_path):
    computation, arguments = computations[name]
    expected = computation(*arguments)
    with run_in_process(str(tmp_path / "tensorflow.log"), num_threads=2):
        given = computation(*arguments)
    assert describe_types(given) == describe_types(expected)
    for ours, theirs in zip(tree.flatten(given), tree.flatten(expected), strict=True):
        if isinstance(theirs, bytes):
            assert ours == theirs
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_ctrl_c_interrupts_a_computation(computations, in_process, run_for_ever):
    pressed_s, others = [], set(threading.enumerate())  # of other tests, whose runtimes stay

    def clients_compute():
        new = set(threading.enumerate()) - others
        return any(thread.name.startswith("ThreadPoolExecutor") for thread in new)

    def press():
        while not clients_compute():
            time.sleep(0.05)
        time.sleep(0.5)
        pressed_s.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run_for_ever([0.5] * 8)
    assert time.monotonic() - pressed_s[0] < 10.0
    deadline_s = time.monotonic() + 10.0
    while clients_compute():
        assert time.monotonic() < deadline_s, "a client still computes"
        time.sleep(0.05)
    computation, arguments = computations["clients_only"]
    np.testing.assert_allclose(computation(*arguments), np.sum(arguments[0], axis=0), rtol=1e-6)


def test_a_failed_computation_gives_one_line_and_can_be_repeated(in_process, tmp_path):
    @tff.tensorflow.computation(np.str_)
    def read(path):
        return tf.strings.length(tf.io.read_file(path))

    @tff.federated_computation(tff.FederatedType(np.str_, tff.CLIENTS))
    def read_all(paths):
        return tff.federated_sum(tff.federated_map(read, paths))

    missing, there = str(tmp_path / "shard.x"), str(tmp_path / "shard.y")
    for call in (lambda: read(missing), lambda: read_all([there, missing])):
        with pytest.raises(WorkerError, match=r"NotFoundError: .*shard\.[xy]; No such file") as raised:
            call()
        assert "\n" not in str(raised.value)
    for path in (missing, there):
        (tmp_path / path).write_text("abc")
    assert read_all([there, missing]) == 6


def test_the_same_clients_give_the_same_bytes_on_any_number_of_threads(computations, tmp_path):
    computation, (values, weights) = computations["aggregate"]
    results = []
    for num_threads in (1, 5, 5):
        with run_in_process(str(tmp_path / "log"), num_threads=num_threads):
            results.append([leaf.tobytes() for leaf in tree.flatten(computation(values * 10, weights))])
    assert results == results[:1] * 3


def test_what_cannot_be_run_is_said(computations, in_process):
    clients = tff.FederatedType(np.int32, tff.CLIENTS)

    @tff.federated_computation(clients, clients)
    def add(first, second):
        return tff.federated_sum(first), tff.federated_sum(second)

    @tff.federated_computation(clients)
    def both(values):
        return values, tff.federated_sum(values)

    assert add([1, 2], [3, 4]) == (3, 7)
    with pytest.raises(ValueError, match="values of 2, 1 clients"):
        add([1, 2], [3])
    with pytest.raises(ValueError, match="make two of it"):
        both([1, 2])
    computation, arguments = computations["no client's values"]
    assert computation(*arguments) == []


def test_sessions_of_computations_used_long_ago_are_closed(in_process, monkeypatch, computations):
    from launch.runtimes import round_context

    loaded, closed = [], []

    class Counted(round_context.GraphFunction):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            loaded.append(self)

        def close(self):
            closed.append(self)
            super().close()

    monkeypatch.setattr(round_context, "MAX_COMPUTATIONS", 2)
    monkeypatch.setattr(round_context, "GraphFunction", Counted)
    constants = [tff.tensorflow.computation(lambda: tf.constant(number)) for number in range(3)]
    first = constants[0]
    assert [constant() for constant in (*constants[:2], first, constants[2], first)] == [0, 1, 0, 2, 0]
    assert (len(loaded), closed[-1:]) == (3, [loaded[1]])


def build_normalized_sum(first, later):
    """A federated computation that trains nothing, but calls layers with BatchNorm in training, and that function.

    `first` are the channels of the first layer, `later` of the convolutions after it.
    """
    layers = tf.keras.layers

    def build():
        parts = [layers.Conv2D(first, 2), layers.BatchNormalization(), layers.ReLU()]
        depthwise = layers.DepthwiseConv2D(2, depth_multiplier=later // first)
        parts += [depthwise, layers.BatchNormalization(), layers.ReLU(6.0)]
        parts += [layers.SeparableConv2D(later, 2), layers.BatchNormalization(), layers.Activation("relu")]
        parts += [layers.Flatten(), layers.Dense(3), layers.BatchNormalization(), layers.ReLU()]
        return tf.keras.Sequential([tf.keras.Input((6, 6, 1)), *parts])

    weights = [np.random.default_rng(1).normal(size=weight.shape).astype(np.float32) for weight in build().weights]

    def compute(number):
        model = build()

        @tf.function
        def call(x):
            for variable, value in zip(model.weights, weights, strict=True):
                variable.assign(tf.abs(value))
            return tf.reduce_sum(model(x, training=True))

        return call(tf.random.stateless_normal((4, 6, 6, 1), tf.stack([0, number])))

    work = tff.tensorflow.computation(compute, np.int32)
    federated = tff.federated_computation(
        lambda numbers: tff.federated_sum(tff.federated_map(work, numbers)), tff.FederatedType(np.int32, tff.CLIENTS)
    )
    return federated, compute


def test_batch_norm_takes_any_number_of_channels(tmp_path):
    federated, compute = build_normalized_sum(1, 6)
    with run_in_process(str(tmp_path / "log")):
        assert float(federated([3])) == pytest.approx(float(compute(3)), rel=1e-4)


def test_batch_norm_of_four_channels_is_joined_with_its_relu_as_ever():
    """Without the joint operation, the last digits of such models would change. Only oneDNN has it."""
    from tensorflow.python.util import _pywrap_util_port

    from launch.runtimes.round_graphs import export_round

    if not _pywrap_util_port.IsMklEnabled():
        pytest.skip("TensorFlow leaves oneDNN off on this processor")

    assert b"_FusedBatchNormEx" in export_round(build_normalized_sum(4, 4)[0]).work.graph_def
