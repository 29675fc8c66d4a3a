"""Epsilon by round against published numbers and the accountant's own; the noise that a budget needs."""

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp

from tff_algos.rounds.private_aggregation import CLIENT, EXAMPLE, REPLACED_CLIENT, Accounting, split_noise
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.update_privacy import UpdatePrivacyConfig

POISSON = Accounting(1e-5, num_clients=1000, cohort_size=100, participation="bernoulli")
FIXED = Accounting(1e-5, num_clients=1000, cohort_size=100, participation="fixed")
EVERYONE = Accounting(1e-5, num_clients=1000, cohort_size=1000, participation="fixed")


def test_poisson_sampling_costs_what_tensorflow_privacy_documents():
    """60,000 records, batches of 150, noise 1.3, 15 epochs at delta 1e-5: 0.7242 in TensorFlow Privacy 0.9's tests."""
    accounting = Accounting(1e-5, num_clients=60000, cohort_size=150, participation="bernoulli")
    assert accounting.compute_epsilon(1.3, 15 * 60000 // 150) == pytest.approx(0.7242234026109595, rel=1e-6)


def test_a_run_of_abadi_costs_no_more_than_printed():
    """Abadi et al. 2016, section 3.1: q = 0.01, sigma = 4, 10,000 steps, delta 1e-5 is (1.26, 1e-5).

    The printed number is log(1 / delta) / (order - 1) + divergence, at the best integer order; today's conversion from
    Rényi divergences is tighter.
    """
    accounting = Accounting(1e-5, num_clients=10_000, cohort_size=100, participation="bernoulli")
    divergences = rdp.RdpAccountant(range(2, 64)).compose(accounting.build_event(4.0), 10_000).rdp
    printed = min(divergences + np.log(1e5) / (np.arange(2, 64) - 1))
    assert printed == pytest.approx(1.26, abs=0.005)
    assert 1.0 < accounting.compute_epsilon(4.0, 10_000) < printed


@pytest.mark.parametrize("rounds", [1, 7, 100])
def test_epsilon_by_round_is_the_accountants_own(rounds):
    relation = dp_accounting.NeighboringRelation
    event = dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(1.1))
    accountant = rdp.RdpAccountant(neighboring_relation=relation.ADD_OR_REMOVE_ONE).compose(event, rounds)
    assert POISSON.compute_epsilon(1.1, rounds) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-12)
    accountant = rdp.RdpAccountant().compose(dp_accounting.GaussianDpEvent(1.1), rounds)
    assert EVERYONE.compute_epsilon(1.1, rounds) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-12)


def test_a_fixed_cohort_has_the_bound_of_its_own_sampling_at_twice_the_sensitivity():
    event = dp_accounting.SampledWithoutReplacementDpEvent(1000, 100, dp_accounting.GaussianDpEvent(4.0 / 2))
    accountant = rdp.RdpAccountant(range(2, 33), dp_accounting.NeighboringRelation.REPLACE_ONE).compose(event, 10)
    assert FIXED.compute_epsilon(4.0, 10) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-9)
    assert FIXED.compute_epsilon(4.0, 10) > POISSON.compute_epsilon(4.0, 10)


def test_what_is_hidden_goes_by_how_the_cohort_is_drawn():
    assert (POISSON.unit, EVERYONE.unit, FIXED.unit) == (CLIENT, CLIENT, REPLACED_CLIENT)
    assert Accounting(1e-5, 9, 9, "bernoulli").build_event(1.0) == dp_accounting.GaussianDpEvent(1.0)
    assert Accounting(1e-5, 9, 9, "fixed", statistics_multiplier=1.0).unit == EXAMPLE


def test_statistics_and_releases_are_composed_by_hand():
    """Gaussians alone compose by 1 / z^2: 2 releases in each of 3 rounds at z / 2 = 1, and statistics at 2: 6.25."""
    accounting = Accounting(1e-5, 20, 20, "fixed", releases_per_round=2, statistics_multiplier=2.0)
    alone = rdp.RdpAccountant().compose(dp_accounting.GaussianDpEvent(6.25**-0.5))
    assert accounting.compute_epsilon(2.0, 3) == pytest.approx(alone.get_epsilon(1e-5), rel=1e-9)
    statistics = rdp.RdpAccountant().compose(dp_accounting.GaussianDpEvent(2.0))
    assert accounting.compute_epsilon(2.0, 0) == pytest.approx(statistics.get_epsilon(1e-5), rel=1e-9)


def test_what_cannot_be_accounted_is_refused():
    with pytest.raises(ValueError, match="only for rounds of all clients"):
        Accounting(1e-5, 20, 10, "bernoulli", releases_per_round=2)
    with pytest.raises(ValueError, match="only for rounds of all clients"):
        Accounting(1e-5, 20, 10, "fixed", statistics_multiplier=1.0)


def test_without_noise_nothing_is_private():
    assert POISSON.compute_epsilon(0.0, 1) == np.inf and POISSON.compute_epsilon(0.0, 0) == 0


@pytest.mark.parametrize(
    ("accounting", "epsilon"),
    [(POISSON, 1.0), (POISSON, 1000.0), (EVERYONE, 0.1), (EVERYONE, 1.0), (EVERYONE, 8.0), (EVERYONE, 1000.0)],
    ids=lambda value: value.participation if isinstance(value, Accounting) else value,
)
def test_the_least_noise_keeps_the_budget_and_a_little_less_does_not(accounting, epsilon):
    multiplier = accounting.calibrate(epsilon, 50)
    assert accounting.compute_epsilon(multiplier, 50) <= epsilon
    assert accounting.compute_epsilon(multiplier * (1 - 1e-4), 50) > epsilon


def test_a_fixed_cohorts_noise_keeps_the_budget():
    small = Accounting(1e-5, 20, 5, "fixed")
    multiplier = small.calibrate(4.0, 10)
    assert small.compute_epsilon(multiplier, 10) <= 4.0 < small.compute_epsilon(multiplier * 0.999, 10)


def test_noise_is_as_given_or_calibrated():
    assert POISSON.settle_noise(UpdatePrivacyConfig(epsilon=4.0, noise_multiplier=2.5)) == 2.5
    assert EVERYONE.settle_noise(UpdatePrivacyConfig(epsilon=4.0, rounds=10)) == EVERYONE.calibrate(4.0, 10)


def test_a_budget_that_nothing_fits_into_is_refused():
    with pytest.raises(ConfigError, match=r"dp_noise_multiplier=0\.3: expected more noise, or dp_epsilon of at least"):
        POISSON.settle_noise(UpdatePrivacyConfig(epsilon=1.0, noise_multiplier=0.3))
    with_statistics = Accounting(1e-5, 20, 20, "fixed", statistics_multiplier=1.0)
    with pytest.raises(ConfigError, match="that the clients' statistics cost at dp_delta=1e-05"):
        with_statistics.calibrate(1.0, 5)
    with pytest.raises(ConfigError, match="no noise is enough"):
        Accounting(1e-9, 20, 20, "fixed").calibrate(1e-6, 5)


def test_the_noise_is_split_as_in_andrew():
    """z = 1, sigma_b = 1: z_delta = (1 - 1/4)^-1/2 = 2 / sqrt(3); the two together are z again."""
    assert split_noise(1.0, 1.0) == pytest.approx(2 / 3**0.5)
    together = rdp.RdpAccountant().compose(dp_accounting.GaussianDpEvent(split_noise(1.0, 1.0)))
    together.compose(dp_accounting.GaussianDpEvent(2.0))  # bits of -1/2 or 1/2 at deviation 1
    alone = rdp.RdpAccountant().compose(dp_accounting.GaussianDpEvent(1.0))
    assert together.get_epsilon(1e-5) == pytest.approx(alone.get_epsilon(1e-5))
    assert split_noise(0.0, 1.0) == 0.0


def test_the_noise_is_split_as_by_tff():
    from tensorflow_federated import aggregators  # imports for seconds

    theirs = aggregators.differential_privacy.adaptive_clip_noise_params(1.2, 100.0)
    assert (split_noise(1.2, theirs[1]), 5.0) == (pytest.approx(theirs[0]), theirs[1])


def test_a_count_that_costs_more_than_the_round_is_refused():
    with pytest.raises(ConfigError, match=r"dp_clip_count_noise=0\.5: expected more"):
        split_noise(1.0, 0.5)
