"""What synchronous algorithms have in common: who may change models, computations, cohorts of nobody."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tff_algos.ditto.config import DittoConfig
from tff_algos.ditto.process import build_ditto_process
from tff_algos.fed_avg.config import FedAvgConfig, FineTunedConfig
from tff_algos.fed_avg.process import build_fed_avg_process, build_fine_tuned_process
from tff_algos.protocol import BYTES_UP
from tff_algos.rounds.synchronous import SynchronousProcess
from tff_algos.settings.aggregation import AggregationConfig, ServerStepConfig
from tff_algos.settings.fine_tuning import FineTuningConfig
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.update_privacy import UpdatePrivacyConfig

ONE_STEP = LocalTrainingConfig(epochs=1, batch_size=100, optimizer="sgd", learning_rate=0.1)


@pytest.fixture(scope="module")
def data(tff_runtime, build_federation, tmp_path_factory):
    return build_federation(tmp_path_factory.mktemp("synchronous"), [6, 4, 5, 7, 5])


def get_bytes(state):
    return [np.asarray(leaf).tobytes() for leaf in tf.nest.flatten(state)]


@pytest.fixture
def build(data, linear_spec):
    """A function (fields of FedAvg's config) -> process."""

    def build(**fields):
        if "fine_tuning" in fields:
            return build_fine_tuned_process(linear_spec, data, FineTunedConfig(ONE_STEP, **fields), seed=1)
        return build_fed_avg_process(linear_spec, data, FedAvgConfig(ONE_STEP, **fields), seed=1)

    return build


@pytest.mark.parametrize(
    "fields",
    [
        {"client_weighting": "equal", "privacy": UpdatePrivacyConfig(epsilon=9.0, noise_multiplier=5.0)},
        {"server": ServerStepConfig(learning_rate=0.5)},
        {"fine_tuning": FineTuningConfig(steps=2)},
    ],
    ids=["private", "server rate", "fine-tuning"],
)
def test_models_can_be_changed_where_no_part_keeps_arrays_of_their_shapes(build, fields):
    """That it is all of them that change is in `test_protocol.py`."""
    process = build(**fields)
    assert process.map_models(process.initialize(), lambda models: models).round_num == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"server": ServerStepConfig(momentum=0.9)},
        {"aggregation": AggregationConfig("median")},
        {"server": ServerStepConfig(momentum=0.9), "fine_tuning": FineTuningConfig(steps=2)},
    ],
    ids=["momentum", "median", "with fine-tuning"],
)
def test_models_cannot_be_changed_where_a_part_does(build, fields):
    """Where clients keep something, too: the protocol's test has one such algorithm after another."""
    assert build(**fields).map_models is None


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
    usual = {process.count_slots(number) for number in sizes}
    assert len(usual) == 1 and usual.pop() >= max(sizes)


def test_an_empty_private_cohort_of_clients_that_keep_something(data, linear_spec):
    """Rounds until nobody is drawn: the shared model gets its noise, and everybody keeps what they had."""
    privacy = UpdatePrivacyConfig(epsilon=5.0, noise_multiplier=5.0)
    config = DittoConfig(ONE_STEP, cohort_size=1, participation="bernoulli", client_weighting="equal", privacy=privacy)
    process = build_ditto_process(linear_spec, data, config, seed=1)
    state = process.initialize()
    # A round's cohort follows from its number, so an empty one is found and not waited for.
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
    process = Described(**{field.name: getattr(plain, field.name) for field in dataclasses.fields(plain)})
    _, metrics = process.next(process.initialize())
    assert metrics["num_rejected"] == 7 and metrics["own"] == 1.0 and "total_drift" not in metrics
