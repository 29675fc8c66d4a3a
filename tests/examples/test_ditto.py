"""The example Ditto: its reductions, one pull by hand, and who keeps which model."""

import importlib.util
import pathlib
import sys

import numpy as np
import pytest

from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.local_only.config import LocalOnlyConfig
from tff_algos.local_only.process import build_local_only_process
from tff_algos.protocol import COMMON_METRICS
from tff_algos.settings.local_training import LocalTrainingConfig

PATH = pathlib.Path(__file__).parents[2] / "examples" / "ditto.py"
SEVERAL_BATCHES = LocalTrainingConfig(epochs=2, batch_size=4, learning_rate=0.01)
ONE_STEP = LocalTrainingConfig(epochs=1, batch_size=100, optimizer="sgd", learning_rate=0.1)


@pytest.fixture(scope="module")
def ditto():
    """The module, which is in no package, loaded from its file."""
    specification = importlib.util.spec_from_file_location("ditto_under_test", PATH)
    module = sys.modules[specification.name] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    yield module
    del sys.modules[specification.name]


@pytest.fixture
def data(tff_runtime, make_federation):
    return make_federation([9, 4, 14])


def run(process, rounds=3):
    states, rows = [process.initialize()], []
    for _ in range(rounds):
        state, metrics = process.next(states[-1])
        states.append(state)
        rows.append(metrics)
    return states, rows


def get_personal(process, state, data):
    return [weights for _, weights in process.personalize(state, data.clients)]


def assert_close(first, second, **tolerance):
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


def test_without_a_pull_the_personal_models_are_those_of_local_training(ditto, data, linear_spec):
    process = ditto.build_ditto_process(linear_spec, data, ditto.DittoConfig(SEVERAL_BATCHES, pull=0.0), seed=2)
    local = build_local_only_process(linear_spec, data, LocalOnlyConfig(SEVERAL_BATCHES), seed=2)
    personal, expected = (get_personal(each, run(each)[0][-1], data) for each in (process, local))
    for own, other in zip(personal, expected, strict=True):
        assert_close(own, other, rtol=0, atol=1e-6)
    assert not np.allclose(personal[0][0], personal[1][0], atol=1e-3)


@pytest.mark.parametrize("pull", [0.0, 3.0])
def test_the_global_model_is_that_of_fed_avg_whatever_the_pull(ditto, data, linear_spec, pull):
    config = ditto.DittoConfig(SEVERAL_BATCHES, pull=pull, cohort_size=2)
    process = ditto.build_ditto_process(linear_spec, data, config, seed=2)
    fed_avg = build_fed_avg_process(linear_spec, data, FedAvgConfig(SEVERAL_BATCHES, cohort_size=2), seed=2)
    models, expected = (each.get_models(run(each)[0][-1])["global"] for each in (process, fed_avg))
    assert_close(models, expected, rtol=0, atol=1e-6)


def test_the_pull_by_hand(ditto, data, linear_spec):
    """One step a round: v_2 = v_1 - eta (grad F_k(v_1) + lambda (v_1 - w_1)), where eta = 0.1 and lambda = 2.

    In round 1, v_0 = w_0 and nothing pulls, so a run without a pull has the same v_1 and w_1: the difference after
    round 2 is -0.2 (v_1 - w_1).
    """
    builds = [ditto.DittoConfig(ONE_STEP, pull=pull) for pull in (2.0, 0.0)]
    pulled, free = (ditto.build_ditto_process(linear_spec, data, config, seed=2) for config in builds)
    (_, first, second), _ = run(pulled, 2)
    (_, free_first, free_second), _ = run(free, 2)
    assert_close(first.personal, free_first.personal, rtol=1e-6)
    for v_1, w_1, with_pull, without in zip(
        first.personal, first.models, second.personal, free_second.personal, strict=True
    ):
        np.testing.assert_allclose(with_pull - without, -0.2 * (v_1 - w_1), atol=1e-6)
        assert np.abs(v_1 - w_1).max() > 1e-3, "nothing was pulled"


def test_who_is_not_in_the_cohort_keeps_its_personal_model(ditto, data, linear_spec):
    process = ditto.build_ditto_process(linear_spec, data, ditto.DittoConfig(ONE_STEP, cohort_size=2), seed=2)
    (before, after), (row,) = run(process, 1)
    changed = [bool(np.any(after.personal[0][client] != before.personal[0][client])) for client in range(3)]
    assert sum(changed) == row["num_clients"] == 2


def test_a_client_with_broken_data_keeps_its_models_and_counts_for_both(ditto, data, linear_spec, break_client):
    break_client(data, 1)
    process = ditto.build_ditto_process(linear_spec, data, ditto.DittoConfig(ONE_STEP), seed=2)
    (before, after), (row,) = run(process, 1)
    assert row["num_rejected"] == 2
    for old, new in zip(before.personal, after.personal, strict=True):
        np.testing.assert_array_equal(old[1], new[1])
        assert np.any(old[0] != new[0])


def test_it_meets_the_protocol(ditto, data, linear_spec):
    process = ditto.build_ditto_process(linear_spec, data, ditto.DittoConfig(ONE_STEP), seed=2)
    (first, second), (row,) = run(process, 1)
    assert set(COMMON_METRICS) <= set(row) and row["bytes_up"] == row["bytes_down"] == 3 * 15 * 4
    assert process.is_personal and set(process.client_model(second)) == set(process.get_models(second)) == {"global"}
    again, same_row = process.next(first)
    assert same_row == row and first.round_num == 0
    assert_close(again.personal, second.personal, rtol=0)


def test_its_row_names_what_the_module_has(ditto):
    row = ditto.ALGORITHM
    assert row.name == "ditto" and row.config_class is ditto.DittoConfig
    assert getattr(ditto, row.builder) is ditto.build_ditto_process


def test_it_fits_on_150_lines():
    assert len(PATH.read_text().splitlines()) <= 150
