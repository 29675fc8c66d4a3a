"""What a worker gets, and that it is let go."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from launch.runtimes.tff_contexts import WorkerStub

pytestmark = pytest.mark.usefixtures("can_close", "tff_runtime")


def test_a_call_leaves_no_value_in_the_worker(monkeypatch):
    """What a call made, it disposes of before the next call, although TFF would wait for 20 values."""
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
def test_a_client_reads_its_file_wherever_it_lies(place, tmp_path):
    """A path goes to the worker as the bytes that the file system has, whether they are ASCII, UTF-8 or neither."""

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
