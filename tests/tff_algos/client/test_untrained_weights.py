"""Weights that are found from data and not trained: BatchNorm's statistics and the ranges of quantization."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from small_formats import change_format, make_format, make_spec
from small_runs import assert_same, run

from models.model_spec import ModelSpec
from models.quantization import build_quantized_spec
from tff_algos.client.cohort import tell_clients
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.rounds.aggregators import SumAggregator
from tff_algos.rounds.forwarding import QuantizationStart
from tff_algos.rounds.training_phase import SlotInput, TrainingPhase, build_group_training
from tff_algos.rounds.transport import build_transport
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import add_deltas, initialize_weights, is_float, stack_models, take_model

IMAGES = (8, 8, 1)
# One batch of all examples, so that the statistics of nine steps can be worked out.
TRAINING = LocalTrainingConfig(epochs=9, batch_size=40, optimizer="sgd", learning_rate=0.05)
STUDENTS = {"image_student": IMAGES, "sensor_student": (9, 2), "perceptron": (4,)}  # with the shapes of their examples


def build_normalized():
    layers = tf.keras.layers
    hidden = [layers.Conv2D(2, 3, padding="same"), layers.BatchNormalization(momentum=0.9)]
    return tf.keras.Sequential([tf.keras.Input(IMAGES), *hidden, layers.Flatten(), layers.Dense(3)])


NORMALIZED = ModelSpec("normalized", build_normalized, make_format(IMAGES, "float32", 3))


def find_weights(spec, *ends):
    """Positions among the weights of those whose names end so."""
    names = [variable.name.split(":")[0] for variable in spec.build().weights]
    return [i for i, name in enumerate(names) if name.endswith(ends)]


@pytest.fixture
def make_images(make_federation):
    """A function (shape) -> two clients with examples of that shape, unlike in number and brightness."""

    def make(shape):
        data, rng = make_federation([16, 40]), np.random.default_rng(1)
        for client, brightness in zip(data.clients, (1.0, 3.0), strict=True):
            x = brightness * rng.normal(size=(client.num_train, *shape))
            x.astype(np.float32).tofile(f"{client.path}.train.x")
        return change_format(data, input_shape=shape)

    return make


@pytest.fixture
def train(tff_runtime):
    """A function (spec, data, clients, training) -> the model after a round of FedAvg with these clients."""

    def train(spec, data, clients, training=TRAINING):
        weights = initialize_weights(spec, 0)
        shapes = tuple(array.shape for array in weights if is_float(array))
        work, transport = build_group_training(spec, training), build_transport(spec, weights, 0)
        told = tell_clients(data, clients, np.zeros(len(clients), int), "examples", training, 0, "training", 1)
        models, inputs = stack_models([weights]), [SlotInput(each) for each in told]
        outcome = TrainingPhase(work, transport, SumAggregator(), shapes).run(models, inputs, 1, (), 1)
        return take_model(add_deltas(models, outcome.aggregate.update), 0)

    return train


@pytest.mark.parametrize(
    "model", ["normalized", "perceptron", *(pytest.param(name, marks=pytest.mark.slow) for name in list(STUDENTS)[:2])]
)
def test_the_servers_statistics_and_ranges_are_the_weighted_mean_of_the_clients(train, make_images, model):
    spec = NORMALIZED if model == "normalized" else make_spec(model, STUDENTS[model], quantize="qat")
    data, initial = make_images(STUDENTS.get(model, IMAGES)), initialize_weights(spec, 0)
    together, first, second = (train(spec, data, np.array(clients)) for clients in ([0, 1], [0], [1]))
    found_from_data = find_weights(spec, "_min", "_max", "moving_mean", "moving_variance")
    assert found_from_data
    for i, start in enumerate(initial):
        if start.dtype.kind == "i":
            np.testing.assert_array_equal(together[i], start, "counters are never averaged")
            continue
        np.testing.assert_allclose(together[i], (16 * first[i] + 40 * second[i]) / 56, rtol=1e-4, atol=1e-5)
        if i in found_from_data:
            assert not np.any(together[i] == start), "each moves away from its first value"


def test_the_statistics_follow_every_step_by_hand(train, make_images):
    """Nine steps on one batch m that move no weight: 0.9^9 of the first value and 1 - 0.9^9 = 0.6126 of m."""
    data = make_images(IMAGES)
    trained = train(NORMALIZED, data, np.array([1]), dataclasses.replace(TRAINING, learning_rate=1e-30))
    model = NORMALIZED.build()
    # What BatchNorm sees: the convolution's outputs at the first weights, which never move.
    model.set_weights(initialize_weights(NORMALIZED, 0))
    features = model.layers[0](data.read_split(data.clients[1], "train")[0]).numpy()
    mean, variance = (trained[i] for i in find_weights(NORMALIZED, "moving_mean", "moving_variance"))
    np.testing.assert_allclose(mean, 0.6126 * features.mean(axis=(0, 1, 2)), rtol=1e-3, atol=1e-5)
    unbiased = features.var(axis=(0, 1, 2)) * (40 * 64) / (40 * 64 - 1)
    np.testing.assert_allclose(variance, 0.3874 + 0.6126 * unbiased, rtol=1e-3)


def test_float_rounds_are_the_float_processes_and_the_first_quantized_one_starts_from_their_model(
    tff_runtime, make_federation, linear_spec
):
    spec, data = build_quantized_spec(linear_spec), make_federation([9, 12, 30, 3])
    float_process, quantized = (build_fed_avg_process(each, data, FedAvgConfig(), 7) for each in (linear_spec, spec))
    template = initialize_weights(spec, 7)
    late = QuantizationStart(float_process, quantized, spec.quantization, template, start_round=3)
    (before, _), (float_state, _) = run(late, 2), run(float_process, 2)
    assert_same(late.get_models(before)["global"], float_process.get_models(float_state)["global"])
    wrapped = spec.quantization.wrap(take_model(float_state.models, 0), template)
    start = quantized.initialize()._replace(
        round_num=float_state.round_num, virtual_time_s=float_state.virtual_time_s, models=stack_models([wrapped])
    )
    model = late.get_models(run(late, 1, before)[0])["global"]
    assert_same(model, quantized.get_models(run(quantized, 1, start)[0])["global"])
    assert spec.of_weights(model) is spec
    assert all(np.all(model[i] != template[i]) for i in find_weights(spec, "_min", "_max"))
