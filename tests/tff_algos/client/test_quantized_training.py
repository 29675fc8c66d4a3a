"""Quantization-aware training in a federated round: what becomes of ranges and counters, and the late start."""

import numpy as np
import pytest
from small_formats import change_format, make_spec
from small_runs import assert_same, run

from models.quantization import build_quantized_spec
from tff_algos.client.cohort import tell_clients
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.rounds.forwarding import QuantizationStart
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import initialize_weights, stack_models, take_model

TRAINING = LocalTrainingConfig(epochs=2, batch_size=8)
STUDENTS = {"image_student": (8, 8, 1), "sensor_student": (9, 2)}  # with the shapes of their examples


def find_ranges(spec):
    """Positions of the range variables among the weights."""
    names = [variable.name for variable in spec.build().weights]
    return [i for i, name in enumerate(names) if name.split(":")[0].endswith(("_min", "_max"))]


@pytest.fixture
def make_images(tmp_path, make_federation):
    """A function (shape) -> a federation of two clients with examples of that shape, of unlike size and brightness."""

    def make(shape):
        data = make_federation([16, 40])
        rng = np.random.default_rng(1)
        for client, brightness in zip(data.clients, (1.0, 3.0), strict=True):
            x = brightness * rng.normal(size=(client.num_train, *shape))
            x.astype(np.float32).tofile(f"{client.path}.train.x")
        return change_format(data, input_shape=shape)

    return make


@pytest.mark.parametrize("model", ["perceptron", *(pytest.param(name, marks=pytest.mark.slow) for name in STUDENTS)])
def test_the_servers_ranges_are_the_mean_of_the_clients(build_mean_round, make_images, model):
    shape = STUDENTS.get(model, (4,))
    data = make_images(shape)
    spec = make_spec(model, shape, quantize="qat")
    initial = initialize_weights(spec, 0)
    run_round = build_mean_round(spec, TRAINING, initial)
    inputs = tell_clients(data, np.arange(2), np.zeros(2, int), "examples", TRAINING, 0, "training", 1)
    models = stack_models([initial])
    together, alone = run_round(models, inputs), [run_round(models, [each]) for each in inputs]
    ranges = find_ranges(spec)
    assert ranges
    for i, first in enumerate(initial):
        if first.dtype.kind == "i":
            np.testing.assert_array_equal(together[i][0], first, "counters are never averaged")
            continue
        client, other = (np.asarray(trained[i][0]) for trained in alone)
        np.testing.assert_allclose(together[i][0], (16 * client + 40 * other) / 56, rtol=1e-4, atol=1e-5)
        if i in ranges:
            assert not np.any(together[i][0] == first), "every range moves away from its first value"
            low, high = np.minimum(client, other), np.maximum(client, other)
            assert np.all((together[i][0] >= low - 1e-5) & (together[i][0] <= high + 1e-5))


@pytest.fixture(scope="module")
def processes(tff_runtime, build_federation, tmp_path_factory, linear_spec):
    """(spec, float process, quantized process) of FedAvg over four clients."""
    spec = build_quantized_spec(linear_spec)
    data = build_federation(tmp_path_factory.mktemp("quantized"), [9, 12, 30, 3])
    return spec, *(build_fed_avg_process(each, data, FedAvgConfig(), 7) for each in (linear_spec, spec))


def test_float_rounds_are_the_float_processes_and_the_first_quantized_one_starts_from_their_model(processes):
    spec, float_process, quantized_process = processes
    template = initialize_weights(spec, 7)
    late = QuantizationStart(float_process, quantized_process, spec.quantization, template, start_round=3)
    (before, _), (float_state, _) = run(late, 2), run(float_process, 2)
    assert_same(late.get_models(before)["global"], float_process.get_models(float_state)["global"])
    wrapped = spec.quantization.wrap(take_model(float_state.models, 0), template)
    start = quantized_process.initialize()._replace(
        round_num=float_state.round_num, virtual_time_s=float_state.virtual_time_s, models=stack_models([wrapped])
    )
    expected = quantized_process.get_models(run(quantized_process, 1, start)[0])["global"]
    model = late.get_models(run(late, 1, before)[0])["global"]
    assert_same(model, expected)
    assert spec.of_weights(model) is spec
    assert all(np.all(model[i] != template[i]) for i in find_ranges(spec))
