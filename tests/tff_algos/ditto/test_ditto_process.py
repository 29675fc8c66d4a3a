"""Ditto: one pull by hand, a client alone, and privacy. Its limit cases are in `test_limit_cases`."""

import dataclasses
import functools

import numpy as np
import pytest
from small_runs import assert_close

from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.update_privacy import UpdatePrivacyConfig

ONE_STEP = LocalTrainingConfig(epochs=1, batch_size=100, optimizer="sgd", learning_rate=0.1)


@pytest.fixture
def build(build_algorithm, make_federation):
    """A function (fields of the config) -> process of three clients."""
    return functools.partial(build_algorithm, "ditto", make_federation([9, 4, 14]), ONE_STEP)


def test_the_pull_by_hand(build, run, get_personal):
    """One step a round: v_2 = v_1 - eta (grad F_k(v_1) + lambda (v_1 - w_1)), where eta = 0.1 and lambda = 2.

    In round 1, v_0 = w_0 and nothing pulls, so a run without a pull has the same v_1 and w_1: the difference after
    round 2 is -0.2 (v_1 - w_1).
    """
    pulled, free = (build(pull=pull) for pull in (2.0, 0.0))
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


def test_one_client_alone_has_the_global_model_for_its_own(build, run, get_personal):
    """Both begin alike and see the same batches, and the pull is to the model itself."""
    process = build(pull=2.0)
    data = process.clients
    process = dataclasses.replace(process, clients=dataclasses.replace(data, clients=data.clients[:1]))
    (*_, state), _ = run(process, 2)
    assert_close(get_personal(process, state)[0], process.get_models(state)["global"])


def test_privacy_is_of_the_shared_model_and_its_rounds(build, run, get_personal, get_bytes):
    """Noise moves the shared model; a personal one is trained on its client's own examples without any."""
    fields = {"pull": 0.0, "client_weighting": "equal"}
    process, free = build(**fields, privacy=UpdatePrivacyConfig(epsilon=1.0)), build(**fields)
    ((_, state), _), ((_, expected), _) = run(process, 1), run(free, 1)
    assert get_bytes(state.models) != get_bytes(expected.models)
    assert list(map(get_bytes, get_personal(process, state))) == list(map(get_bytes, get_personal(free, expected)))
