"""AMFL-P with private meta-gradients."""

import numpy as np
import pytest
from small_runs import flatten, silence

from tff_algos.amfl_p import process as amfl_p
from tff_algos.amfl_p.config import AMFLPConfig
from tff_algos.settings.update_privacy import UpdatePrivacyConfig

PRIVATE = UpdatePrivacyConfig(epsilon=50.0, clip_norm=0.01, rounds=3)


def build(spec, data, **settings):
    defaults = {"support_size": 2, "query_size": 3, "weighting": "equal", "privacy": PRIVATE}
    defaults |= {"server_optimizer": "sgd", "meta_learning_rate": 1.0}
    return amfl_p.build_amfl_p_process(spec, data, AMFLPConfig(**{**defaults, **settings}), seed=2)


def test_one_device_changes_the_sum_of_gradients_by_at_most_the_clip_norm(
    tff_runtime, make_federation, linear_spec, fix_cohort
):
    process = build(linear_spec, make_federation([8, 12, 5, 9]))
    state = silence(process.initialize())

    def sum_of(cohort):
        fix_cohort(cohort)
        return 4 * flatten(process.next(state).state.model)

    everyone = sum_of(range(4))
    for device in range(4):
        change = everyone - sum_of([other for other in range(4) if other != device])
        assert np.linalg.norm(change) == pytest.approx(0.01, rel=1e-3)


def test_a_drawn_cohort_may_be_empty_and_is_a_round(tff_runtime, make_federation, linear_spec):
    process = build(linear_spec, make_federation([8, 12, 5, 9]), participation="bernoulli", cohort_size=1)
    states = [process.initialize()._replace(round_num=np.int32(number)) for number in range(30)]
    sizes = [len(process.process.choose_cohort(state)[1]) for state in states]
    assert 0 in sizes and max(sizes) > 1
    _, metrics = process.next(states[sizes.index(0)])
    assert metrics["num_clients"] == 0 and metrics["effective_num_clients"] == 0 and metrics["epsilon_spent"] > 0


def test_the_noise_on_the_gradient_is_z_clip_norms_over_the_devices(work_once, make_federation, linear_spec):
    process, noise = build(linear_spec, make_federation([8, 12, 5, 9])), []
    for round_num in range(40):
        state = process.initialize()._replace(round_num=np.int32(round_num))
        loud, quiet = process.next(state).state, process.next(silence(state)).state
        noise.append(flatten(loud.model) - flatten(quiet.model))  # the meta-learning rate is 1
    expected = float(state.aggregator.noise_multiplier) * 0.01 / 4
    assert np.std(noise) == pytest.approx(expected, rel=4 / (2 * np.size(noise)) ** 0.5)
