"""Algorithms and parts that are FedAvg in a limit case, or a mean: within 1e-6 after three rounds."""

import dataclasses
import shutil

import numpy as np
import pytest
import tensorflow as tf
from small_runs import assert_close, run

from tff_algos.ditto.config import DittoConfig
from tff_algos.ditto.process import build_ditto_process
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.fed_nova.config import FedNovaConfig
from tff_algos.fed_nova.process import build_fed_nova_process
from tff_algos.fl_hc.config import FLHCConfig
from tff_algos.fl_hc.process import build_fl_hc_process
from tff_algos.scaffold.config import ScaffoldConfig
from tff_algos.scaffold.process import build_scaffold_process
from tff_algos.settings.aggregation import AggregationConfig, ServerStepConfig
from tff_algos.settings.local_training import LocalTrainingConfig

SEED, ROUNDS = 2, 3
TRAINING = LocalTrainingConfig(epochs=2, batch_size=8, optimizer="sgd", learning_rate=0.1)
FULL_BATCH = LocalTrainingConfig(epochs=2, batch_size=100, optimizer="sgd", learning_rate=0.1)
SIZES = [9, 4, 14, 20, 11]


@pytest.fixture(scope="module")
def data(tff_runtime, build_federation, tmp_path_factory):
    """Clients with other examples each, and other numbers of them."""
    return build_federation(tmp_path_factory.mktemp("unlike"), SIZES)


@pytest.fixture(scope="module")
def alike(tff_runtime, build_federation, tmp_path_factory):
    """Five clients with the examples of the first."""
    return copy_examples(build_federation(tmp_path_factory.mktemp("alike"), [12] * 5), [0] * 5)


def copy_examples(data, sources):
    """Each client with the train examples of the client that it is given as a source."""
    for client, source in zip(data.clients, sources, strict=True):
        if client.index != source:
            for array in ("x", "y"):
                shutil.copy(f"{data.clients[source].path}.train.{array}", f"{client.path}.train.{array}")
    return data


@pytest.fixture(scope="module")
def fed_avg(data, train_fed_avg):
    """The models of FedAvg after three rounds."""
    return train_fed_avg(data)


@pytest.fixture(scope="module")
def fed_avg_of_alike(alike, train_fed_avg):
    return train_fed_avg(alike, FULL_BATCH)


@pytest.fixture(scope="module")
def train_fed_avg(linear_spec):
    """A function (data, training, fields of the config) -> the models of FedAvg after three rounds."""

    def train(data, training=TRAINING, **fields):
        process = build_fed_avg_process(linear_spec, data, FedAvgConfig(training, **fields), SEED)
        models = run(process, ROUNDS)[0].models
        for array, start in zip(models, process.initialize().models, strict=True):
            assert np.abs(array - start).max() > 0.05, "nothing was learned, so all would be alike"
        return models

    return train


@pytest.mark.parametrize("optimizer", ["adam", "yogi"])
def test_an_optimizer_without_memory_and_with_a_large_epsilon_is_fed_avg(data, train_fed_avg, fed_avg, optimizer):
    """Adam's step is rate * d / (|d| + epsilon), which is d where the rate is epsilon and both are large.

    Yogi's v without memory is v - sign(v - d^2) d^2, between 0 and 2 d^2, whose root epsilon outweighs.
    """
    server = ServerStepConfig(optimizer, learning_rate=1e6, beta_1=0.0, beta_2=0.0, epsilon=1e6)
    assert_close(train_fed_avg(data, server=server), fed_avg)


def hold_at_zero(work):
    """SCAFFOLD's work, of which the client keeps nothing and sends no difference."""

    def hold(told):
        sent = work(told)
        return sent._replace(sums=tuple(map(tf.zeros_like, sent.sums)), kept=tuple(map(tf.zeros_like, sent.kept)))

    return hold


def test_scaffold_with_variates_held_at_zero_is_fed_avg(data, linear_spec, fed_avg):
    process = build_scaffold_process(linear_spec, data, ScaffoldConfig(TRAINING), SEED)
    free = run(process, ROUNDS)[0].models
    phase = dataclasses.replace(process.phase, work=hold_at_zero(process.phase.work))
    assert_close(run(dataclasses.replace(process, phase=phase), ROUNDS)[0].models, fed_avg)
    assert max(np.abs(a - b).max() for a, b in zip(free, fed_avg, strict=True)) > 1e-3, "they change nothing"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="plain"),
        pytest.param({"momentum": 0.5}, id="momentum", marks=pytest.mark.slow),
        pytest.param({"proximal_weight": 0.3}, id="proximal", marks=pytest.mark.slow),
    ],
)
def test_fed_nova_is_fed_avg_with_equal_steps_alone(data, linear_spec, train_fed_avg, fed_avg, fields):
    """Five steps each, whatever the examples; or two epochs of unlike numbers of examples."""
    training = dataclasses.replace(TRAINING, steps=5, epochs=5, **fields)
    equal, unequal = (
        run(build_fed_nova_process(linear_spec, data, FedNovaConfig(each), SEED), ROUNDS)[0].models
        for each in (training, TRAINING)
    )
    assert_close(equal, train_fed_avg(data, training))
    assert max(np.abs(a - b).max() for a, b in zip(unequal, fed_avg, strict=True)) > 1e-4


def test_a_trimmed_mean_that_trims_nothing_is_the_equal_mean(data, train_fed_avg):
    aggregation = AggregationConfig("trimmed_mean", aggregator_trimmed_share=0.0)
    trimmed = train_fed_avg(data, aggregation=aggregation)
    assert_close(trimmed, train_fed_avg(data, client_weighting="equal"))


@pytest.mark.parametrize(
    "aggregation",
    [
        AggregationConfig("krum"),
        AggregationConfig("multi_krum", aggregator_num_chosen=3),
        AggregationConfig("median"),
        AggregationConfig("geometric_median"),
    ],
    ids=lambda aggregation: aggregation.aggregator,
)
def test_robust_aggregators_of_clients_that_are_alike_are_fed_avg(alike, train_fed_avg, fed_avg_of_alike, aggregation):
    """In one batch the examples have no order, so the updates differ by rounding alone."""
    assert_close(train_fed_avg(alike, FULL_BATCH, aggregation=aggregation), fed_avg_of_alike)


def test_the_median_in_clusters_of_clients_that_are_alike_is_their_mean(
    tff_runtime, build_federation, tmp_path, linear_spec, relabel
):
    """Two kinds of clients with contradicting labels part after round 1, and each cluster has its own median."""
    data = build_federation(tmp_path, [24] * 6)
    relabel(data, [1])
    copy_examples(data, [0, 1, 0, 1, 1, 0])
    models = []
    for aggregation in (AggregationConfig("median"), AggregationConfig()):
        # Cut by number, so that there are two clusters however near they are.
        config = FLHCConfig(FULL_BATCH, distance_multiple=0, num_clusters=2, aggregation=aggregation)
        state, _ = run(build_fl_hc_process(linear_spec, data, config, SEED), ROUNDS)
        assert state.assignments.tolist() in ([0, 1, 0, 1, 1, 0], [1, 0, 1, 0, 0, 1])
        models.append(state.models)
    assert [array.shape[0] for array in models[0]] == [2, 2]
    assert np.abs(models[0][0][0] - models[0][0][1]).max() > 0.05
    assert_close(*models)


def test_a_mean_of_single_updates_is_that_of_summed_ones_bit_for_bit(data, linear_spec, fed_avg):
    """Ditto's updates come as a list, since its clients keep something."""
    state, _ = run(build_ditto_process(linear_spec, data, DittoConfig(TRAINING), SEED), ROUNDS)
    assert [array.tobytes() for array in state.models] == [np.asarray(array).tobytes() for array in fed_avg]
