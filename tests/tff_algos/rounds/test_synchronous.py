"""What every synchronous algorithm of the table has in common: bytes, times, purity, and who may change models."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from launch.settings.algorithms import ALGORITHMS
from tff_algos.ditto.config import DittoConfig
from tff_algos.ditto.process import build_ditto_process
from tff_algos.fed_avg.config import FedAvgConfig, FineTunedConfig
from tff_algos.fed_avg.process import build_fed_avg_process, build_fine_tuned_process
from tff_algos.protocol import BYTES_DOWN, BYTES_UP, COMMON_METRICS, VIRTUAL_TIME_S
from tff_algos.rounds.round_metrics import sum_bytes
from tff_algos.rounds.synchronous import SynchronousProcess
from tff_algos.settings.aggregation import AggregationConfig
from tff_algos.settings.fine_tuning import FineTuningConfig
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.server_step import ServerStepConfig
from tff_algos.settings.update_privacy import UpdatePrivacyConfig
from tff_algos.simulation.virtual_clock import compute_phases_s

ONE_STEP = LocalTrainingConfig(epochs=1, batch_size=100, optimizer="sgd", learning_rate=0.1)
# These have no rounds that all wait for, or no server.
OTHERS = {"async_periodic", "fed_async", "buffered", "local_only"}
# They are FedAvg with another server's step, which no bytes and no time depend on.
ONLY_SLOW = {"fedyogi", "fedavgm", "random_cluster"}
ROWS = [
    pytest.param(row, id=name, marks=[pytest.mark.slow] if name in ONLY_SLOW else [])
    for name, row in ALGORITHMS.items()
    if name not in OTHERS
]


@pytest.fixture(scope="module")
def data(tff_runtime, build_federation, tmp_path_factory):
    """Five clients that validate on their train examples."""
    data = build_federation(tmp_path_factory.mktemp("synchronous"), [60, 48, 52, 70, 55])
    for client in data.clients:
        for array in ("x", "y"):
            with (
                open(f"{client.path}.train.{array}", "rb") as source,
                open(f"{client.path}.validation.{array}", "wb") as target,
            ):
                target.write(source.read())
    clients = tuple(dataclasses.replace(client, num_validation=client.num_train) for client in data.clients)
    return dataclasses.replace(data, clients=clients)


def get_bytes(state):
    return [np.asarray(leaf).tobytes() for leaf in tf.nest.flatten(state)]


@pytest.mark.parametrize("row", ROWS)
def test_bytes_and_times_are_those_of_the_work_and_rounds_repeat(row, data, linear_spec):
    """Two rounds, the second of which goes on from a state that the first has made."""
    config = row.default_config().shrink_to_smoke()
    process = row.load_builder()(linear_spec, data, config, 3)
    inner = getattr(process, "process", process)
    assert isinstance(inner, SynchronousProcess)
    before, columns = process.initialize(), []
    for _ in range(2):
        held = get_bytes(before)
        after, metrics = process.next(before)
        assert get_bytes(before) == held, "a round changed the state that it was given"
        assert type(after) is type(before) and int(after.round_num) == int(before.round_num) + 1
        assert set(COMMON_METRICS) <= set(metrics)
        assert sum_bytes(process.list_work(before, after)) == (metrics[BYTES_DOWN], metrics[BYTES_UP])
        assert metrics[BYTES_DOWN] > 0 and metrics[BYTES_UP] > 0
        wait_s, cohort = inner.choose_cohort(before)
        start_s = float(before.virtual_time_s) + wait_s
        seconds = compute_phases_s(data.profiles, inner.list_phases(before, cohort), start_s)
        assert metrics[VIRTUAL_TIME_S] == float(after.virtual_time_s) == pytest.approx(start_s + seconds, rel=1e-12)
        assert seconds > 0 and metrics["num_clients"] == len(cohort)
        columns.append(list(metrics))
        first, before = before, after
    assert columns[0] == columns[1]
    again, same = process.next(first)
    assert get_bytes(again) == get_bytes(after) and str(same) == str(metrics)
    assert set(process.client_model(after)) <= set(process.get_models(after))


@pytest.fixture
def build(data, linear_spec):
    """A function (fields of FedAvg's config) -> process."""

    def build(**fields):
        if "fine_tuning" in fields:
            return build_fine_tuned_process(linear_spec, data, FineTunedConfig(ONE_STEP, **fields), seed=1)
        return build_fed_avg_process(linear_spec, data, FedAvgConfig(ONE_STEP, **fields), seed=1)

    return build


def test_models_can_be_changed_where_no_part_keeps_arrays_of_their_shapes(build, data, linear_spec):
    process = build()
    state = process.map_models(process.initialize(), lambda models: tuple(2 * array for array in models))
    for doubled, array in zip(state.models, process.initialize().models, strict=True):
        np.testing.assert_array_equal(doubled, 2 * array)
    assert build(client_weighting="equal", privacy=UpdatePrivacyConfig(epsilon=3.0, rounds=2)).map_models
    assert build(server=ServerStepConfig(learning_rate=0.5)).map_models
    tuned = build(fine_tuning=FineTuningConfig(steps=2))
    assert tuned.map_models and tuned.map_models(tuned.initialize(), lambda models: models).round_num == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"server": ServerStepConfig(optimizer="adam")},
        {"server": ServerStepConfig(momentum=0.9)},
        {"aggregation": AggregationConfig("median")},
        {"aggregation": AggregationConfig("zeroing")},
        {"server": ServerStepConfig(momentum=0.9), "fine_tuning": FineTuningConfig(steps=2)},
    ],
    ids=["adam", "momentum", "median", "zeroing", "with fine-tuning"],
)
def test_models_cannot_be_changed_where_a_part_does(build, fields):
    assert build(**fields).map_models is None


def test_models_cannot_be_changed_where_clients_keep_something(data, linear_spec):
    assert build_ditto_process(linear_spec, data, DittoConfig(ONE_STEP), seed=1).map_models is None


@pytest.mark.parametrize("participation", ["fixed", "bernoulli"])
def test_one_computation_serves_all_rounds(build, participation):
    """Also where the cohorts differ in size: they have the same places."""
    process = build(cohort_size=3, participation=participation)
    state, sizes = process.initialize(), set()
    for _ in range(4):
        state, metrics = process.next(state)
        sizes.add(metrics["num_clients"])
    assert len(process.phase._computations) == 1
    assert (len(sizes) > 1) == (participation == "bernoulli")
    usual = {process.count_places(number) for number in sizes}
    assert len(usual) == 1 and usual.pop() >= max(sizes)


def test_an_empty_private_cohort_of_clients_that_keep_something(data, linear_spec):
    """Rounds until nobody is drawn: the shared model gets its noise, and everybody keeps what they had."""
    privacy = UpdatePrivacyConfig(epsilon=5.0, rounds=20)
    config = DittoConfig(ONE_STEP, cohort_size=1, participation="bernoulli", client_weighting="equal", privacy=privacy)
    process = build_ditto_process(linear_spec, data, config, seed=1)
    state = process.initialize()
    number = next(n for n in range(20) if not len(process.choose_cohort(state._replace(round_num=np.int32(n)))[1]))
    state = state._replace(round_num=np.int32(number))
    after, metrics = process.next(state)
    assert metrics["num_clients"] == metrics["num_rejected"] == metrics[BYTES_UP] == 0
    assert get_bytes(after.kept) == get_bytes(state.kept) and get_bytes(after.models) != get_bytes(state.models)


def test_the_columns_of_an_algorithm_may_replace_the_usual_ones(build):
    """`describe` is read after them, and what the aggregator measures last."""

    class Described(SynchronousProcess):
        def describe(self, state, new_state, outcome, cohort):
            return {"num_rejected": 7, "own": float(new_state.round_num - state.round_num)}

    plain = build()
    fields = {field.name: getattr(plain, field.name) for field in dataclasses.fields(plain)}
    process = Described(**fields)
    _, metrics = process.next(process.initialize())
    assert metrics["num_rejected"] == 7 and metrics["own"] == 1.0 and "total_drift" not in metrics
