"""Ditto: its reductions, one pull by hand, and who keeps which model."""

import dataclasses

import numpy as np
import pytest

from tff_algos.ditto.config import DittoConfig
from tff_algos.ditto.process import build_ditto_process
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.local_only.config import LocalOnlyConfig
from tff_algos.local_only.process import build_local_only_process
from tff_algos.settings.local_training import LocalTrainingConfig

SEVERAL_BATCHES = LocalTrainingConfig(epochs=2, batch_size=4, learning_rate=0.01)
ONE_STEP = LocalTrainingConfig(epochs=1, batch_size=100, optimizer="sgd", learning_rate=0.1)


@pytest.fixture
def data(tff_runtime, make_federation):
    return make_federation([9, 4, 14])


@pytest.fixture
def build(data, linear_spec):
    """A function (training, fields of the config) -> process."""

    def build(training, **fields):
        config = DittoConfig(training, **fields)
        return build_ditto_process(linear_spec, data, config, seed=2)

    return build


def test_without_a_pull_the_personal_models_are_those_of_local_training(build, data, linear_spec, run, get_personal):
    process = build(SEVERAL_BATCHES, pull=0.0)
    local = build_local_only_process(linear_spec, data, LocalOnlyConfig(SEVERAL_BATCHES), seed=2)
    state, expected = run(process)[0][-1], run(local)[0][-1]
    personal = get_personal(process, state)
    for own, (_, other) in zip(personal, local.personalize(expected, data.clients), strict=True):
        for a, b in zip(own, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)
    assert not np.allclose(personal[0][0], personal[1][0], atol=1e-3)


@pytest.mark.parametrize("pull", [0.0, 3.0])
def test_the_global_model_is_that_of_fed_avg_whatever_the_pull(build, data, linear_spec, pull, run, get_bytes):
    """Bit for bit, though its updates come to the server one by one, where FedAvg's are summed on the way."""
    fed_avg = build_fed_avg_process(linear_spec, data, FedAvgConfig(SEVERAL_BATCHES, cohort_size=2), seed=2)
    (*_, state), rows = run(build(SEVERAL_BATCHES, cohort_size=2, pull=pull))
    (*_, expected), other_rows = run(fed_avg)
    assert get_bytes(state.models) == get_bytes(expected.models)
    # Twice the examples take longer, all else is FedAvg's.
    for row, other in zip(rows, other_rows, strict=True):
        assert row.pop("virtual_time_s") > other.pop("virtual_time_s")
        assert row == other


def test_the_pull_by_hand(build, run, get_personal):
    """One step a round: v_2 = v_1 - eta (grad F_k(v_1) + lambda (v_1 - w_1)), where eta = 0.1 and lambda = 2.

    In round 1, v_0 = w_0 and nothing pulls, so a run without a pull has the same v_1 and w_1: the difference after
    round 2 is -0.2 (v_1 - w_1).
    """
    pulled, free = (build(ONE_STEP, pull=pull) for pull in (2.0, 0.0))
    (_, first, second), _ = run(pulled, 2)
    (_, free_first, free_second), _ = run(free, 2)
    kept = [get_personal(pulled, first), get_personal(pulled, second)]
    others = [get_personal(free, free_first), get_personal(free, free_second)]
    for client in range(3):
        for v_1, w_1, with_pull, same, without in zip(
            kept[0][client], first.models, kept[1][client], others[0][client], others[1][client], strict=True
        ):
            np.testing.assert_allclose(v_1, same, rtol=1e-6)
            np.testing.assert_allclose(with_pull - without, -0.2 * (v_1 - w_1[0]), atol=1e-6)
            assert np.abs(v_1 - w_1[0]).max() > 1e-3, "nothing was pulled"


def test_who_is_not_in_the_cohort_keeps_its_personal_model(build, run, get_personal, get_bytes):
    """Who never took part has the first model, and no row in the store."""
    process = build(ONE_STEP, cohort_size=2)
    (before, after), (row,) = run(process, 1)
    pairs = zip(get_personal(process, before), get_personal(process, after), strict=True)
    changed = [client for client, (old, new) in enumerate(pairs) if get_bytes(old) != get_bytes(new)]
    assert len(changed) == row["num_clients"] == 2
    assert after.kept.clients.tolist() == changed and after.kept.versions.tolist() == [1, 1]
    assert before.kept.clients.size == 0
    assert all(get_bytes(own) == get_bytes(process.initial_weights) for own in get_personal(process, before))
    assert [array.shape for array in after.kept.arrays] == [(2, 4, 3), (2, 3)]


def test_one_client_alone_has_the_global_model_for_its_own(build, data, run, get_personal):
    """Both begin alike and see the same batches, and the pull is to the model itself."""
    alone = dataclasses.replace(data, clients=data.clients[:1])
    process = dataclasses.replace(build(ONE_STEP, pull=2.0), clients=alone)
    (*_, state), _ = run(process, 2)
    for own, shared in zip(get_personal(process, state)[0], process.get_models(state)["global"], strict=True):
        np.testing.assert_allclose(own, shared, atol=1e-6)


def test_two_models_are_trained_and_one_is_sent(build, run):
    """Client 0, the slowest: 60 bytes at 1000 a second, two models on 9 examples at 100, 60 bytes at 500."""
    _, (row,) = run(build(ONE_STEP), 1)
    assert row["bytes_up"] == row["bytes_down"] == 3 * 15 * 4
    assert row["virtual_time_s"] == pytest.approx(0.06 + 0.18 + 0.12)


def test_privacy_is_of_the_shared_model_and_its_rounds(build, run, get_personal, get_bytes):
    """Noise moves the shared model; a personal one is trained on its client's own examples without any."""
    from tff_algos.settings.update_privacy import UpdatePrivacyConfig

    privacy = UpdatePrivacyConfig(epsilon=1.0)
    process = build(ONE_STEP, pull=0.0, client_weighting="equal", privacy=privacy)
    free = build(ONE_STEP, pull=0.0, client_weighting="equal")
    (_, state), _ = run(process, 1)
    (_, expected), _ = run(free, 1)
    assert get_bytes(state.models) != get_bytes(expected.models)
    assert list(map(get_bytes, get_personal(process, state))) == list(map(get_bytes, get_personal(free, expected)))
