"""Executors are closed and values are let go, so that a worker's memory stays bounded."""

import pytest


@pytest.fixture
def stub():
    """Counts the executors that a worker would hold: {id: number of clients}."""
    from tensorflow_federated.proto.v0 import executor_pb2

    class CountingStub:
        def __init__(self):
            self.executors, self.num_made = {}, 0

        def get_executor(self, request):
            self.num_made += 1
            name = str(self.num_made)
            self.executors[name] = request.cardinalities[0].cardinality
            return executor_pb2.GetExecutorResponse(executor=executor_pb2.ExecutorId(id=name))

        def dispose_executor(self, request):
            del self.executors[request.executor.id]

    return CountingStub()


def test_a_worker_holds_the_executors_used_last(stub):
    import tensorflow_federated as tff

    from launch.runtimes.tff_contexts import MAX_EXECUTORS, ExecutorFactory

    factory = ExecutorFactory(stub)
    first = factory.create_executor({tff.CLIENTS: 1})
    for num_clients in range(2, MAX_EXECUTORS + 1):
        factory.create_executor({tff.CLIENTS: num_clients})
    assert factory.create_executor({tff.CLIENTS: 1}) is first
    factory.create_executor({tff.CLIENTS: 100})
    assert sorted(stub.executors.values()) == [1, *range(3, MAX_EXECUTORS + 1), 100]
    factory.clean_up_executor({tff.CLIENTS: 1})
    factory.clean_up_executor({tff.CLIENTS: 1})
    assert 1 not in stub.executors.values()
    assert factory.create_executor({tff.CLIENTS: 1}) is not first
    assert stub.num_made == MAX_EXECUTORS + 2


def test_a_call_leaves_no_value_in_the_worker(tff_runtime, monkeypatch):
    """What a call made, it disposes of before the next call, although TFF would wait for 20 values."""
    import numpy as np
    import tensorflow_federated as tff

    from launch.runtimes.tff_contexts import WorkerStub

    values, num_created = set(), 0
    call_stub = WorkerStub.__getattr__

    def watch(self, name):
        def call(request):
            nonlocal num_created
            response = call_stub(self, name)(request)
            if name.startswith("create_"):
                num_created += 1
                values.add(response.value_ref.id)
            if name == "dispose":
                values.difference_update(reference.id for reference in request.value_ref)
            return response

        return call

    @tff.tensorflow.computation(np.float32)
    def double(x):
        return 2 * x

    monkeypatch.setattr(WorkerStub, "__getattr__", watch)
    assert double(3.0) == 6.0
    assert num_created > 0 and not values


@pytest.mark.parametrize("place", ["plain", "j\u00fcrgen \u65e5", "lat\udcfcn"])
def test_a_client_reads_its_file_wherever_it_lies(tff_runtime, place, tmp_path):
    """A path goes to the worker as the bytes that the file system has, whether they are ASCII, UTF-8 or neither."""
    import numpy as np
    import tensorflow as tf
    import tensorflow_federated as tff

    @tff.tensorflow.computation(np.str_)
    def measure(path):
        return tf.strings.length(tf.io.read_file(path))

    @tff.federated_computation(tff.FederatedType(np.str_, tff.CLIENTS))
    def measure_all(paths):
        return tff.federated_map(measure, paths)

    folder = tmp_path / place
    folder.mkdir()
    (folder / "file").write_bytes(b"12345")
    assert measure_all([str(folder / "file")] * 2) == [5, 5]
