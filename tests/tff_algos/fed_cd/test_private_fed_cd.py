"""FedCD with private updates: a device with several models, and what the server may not know."""

import functools

import numpy as np
import pytest
from small_runs import silence

from tff_algos.settings.aggregation import ServerStepConfig
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.update_privacy import UpdatePrivacyConfig

SGD = LocalTrainingConfig(epochs=1, optimizer="sgd", learning_rate=0.5, batch_size=4)
PRIVATE = UpdatePrivacyConfig(epsilon=50.0, clip_norm=0.1, rounds=4)


@pytest.fixture
def build(build):
    """A function (fields of the config) -> process of four devices, with two milestones."""
    fields = {"weighting": "equal", "cohort_size": 4, "milestones": (1, 2), "privacy": PRIVATE}
    return functools.partial(build, [8, 12, 5, 9], SGD, **fields)


def train(process, state, cohort):
    """Steps 1 and 2 with a cohort that is given: (the server's new models, the metrics of privacy)."""
    outcome = process.train(state, process.invite(state, np.array(cohort, int)), int(state.round_num) + 1)
    return process.apply(state, outcome).models, outcome.aggregate.metrics


def test_a_device_changes_the_sums_of_all_its_models_by_at_most_the_clip_norm(build):
    """After two milestones, a device with four models, one with two and one with a single one."""
    process = build()
    state = process.initialize()
    for _ in range(2):
        state, _ = process.next(state)
    is_active = np.array([[1, 1, 1, 1], [1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 1, 0]], bool)
    state = silence(state._replace(is_active=is_active))

    def sum_of(cohort):
        models, metrics = train(process, state, cohort)
        deltas = [after - before for after, before in zip(models, state.models, strict=True)]
        return 4 * np.concatenate([delta.reshape(4, -1) for delta in deltas], axis=1), metrics

    everyone, metrics = sum_of([0, 1, 2, 3])
    assert metrics["num_clipped"] == 10
    for device, num_models in enumerate([4, 2, 1, 3]):
        change = everyone - sum_of([other for other in range(4) if other != device])[0]
        assert np.linalg.norm(change) == pytest.approx(0.1, rel=1e-3)
        assert np.linalg.norm(change) <= 0.1 * (1 + 1e-4)  # the sums are rounded
        by_slot = np.linalg.norm(change, axis=1)
        np.testing.assert_allclose(by_slot, is_active[device] * 0.1 / num_models**0.5, atol=1e-5)


def test_the_server_keeps_noises_and_clones_models_that_no_device_has(build):
    """That a model is in no device's hands is known from their data, so nothing that others see may tell."""
    process = build()
    state, _ = process.next(process.initialize())
    only_first = np.zeros((4, 4), bool)
    only_first[:, 0] = True  # all devices have deleted the clone in slot 1
    before = state._replace(is_active=only_first)
    after, _ = process.next(before)
    assert not np.array_equal(after.models[0][1], before.models[0][1])  # noise
    np.testing.assert_array_equal(after.models[0][3], after.models[0][1])  # its clone
    assert list(process.get_models(after)) == ["model_0", "model_1", "model_2", "model_3"]
    assert not after.is_active[:, [1, 3]].any()
    assert after.parents.tolist() == [-1, 0, 0, 1]


@pytest.mark.parametrize("step", [ServerStepConfig(), ServerStepConfig("adam")], ids=["plain", "adam"])
def test_slots_that_no_milestone_has_filled_stay_empty(build, step):
    """Noise comes to all four sums; after the first round two slots have a model. Adam would count the steps."""
    process = build(server=step)
    start = process.initialize()
    state, _ = process.next(start)
    for array in state.models:
        assert array[:2].all() and not array[2:].any()
    for before, after in zip(start.server, state.server, strict=True):
        np.testing.assert_array_equal(after[2:], before[2:])
