"""What private updates cost: by hand, against published numbers, and by both accountants."""

import dataclasses

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from hypothesis import given, settings
from hypothesis import strategies as st

from tff_algos.rounds.privacy_accounting import (
    CLIENT,
    EXAMPLE,
    REPLACED_CLIENT,
    SEEN_CLIENT,
    Accounting,
    calibrate_gaussian,
    compute_gaussian_delta,
    compute_gaussian_epsilon,
    split_noise,
)
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.update_privacy import PLD, RDP, UpdatePrivacyConfig

ADAPTIVE = UpdatePrivacyConfig(epsilon=8.0, clipping="adaptive")
POISSON = Accounting(1e-5, num_clients=1000, cohort_size=100, participation="bernoulli")
FIXED = dataclasses.replace(POISSON, participation="fixed")
EVERYONE = dataclasses.replace(POISSON, cohort_size=1000)
ALL_OF_20 = Accounting(1e-5, 20, 20, "fixed")
GAUSSIAN = dp_accounting.GaussianDpEvent


def by_divergences(accounting):
    return dataclasses.replace(accounting, asked=RDP)


def compute_epsilon(*events):
    """The epsilon of releases (event, how often) by Rényi divergences, at delta 1e-5."""
    accountant = rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    for event, number in events:
        accountant.compose(event, number)
    return accountant.get_epsilon(1e-5)


def compute_numerically(event, number, pessimistic=True, delta=1e-5):
    """The epsilon of so many releases, sampled or not, by losses in steps of 0.0005, from above or from below."""
    sampling, z = getattr(event, "sampling_probability", 1.0), getattr(event, "event", event).noise_multiplier
    losses = pld.privacy_loss_distribution.from_gaussian_mechanism(
        z,
        pessimistic_estimate=pessimistic,
        value_discretization_interval=5e-4,
        sampling_prob=sampling,
        use_connect_dots=pessimistic,
    )
    return losses.self_compose(number).get_epsilon_for_delta(delta)


@pytest.mark.parametrize(("said", "exact"), [(1, 0.901), (2, 1.780), (4, 3.497), (8, 6.946)])
def test_what_runs_really_spent_whose_noise_was_chosen_by_divergences(said, exact):
    """1,000 clients, each by chance 0.1, 40 rounds. `exact` are an independent accountant's, by Fourier transforms."""
    multiplier = by_divergences(POISSON).calibrate(said, 40)
    spent = POISSON.compute_epsilon(multiplier, 40)
    assert spent == pytest.approx(exact, rel=0.01)
    sampled = POISSON.build_event(multiplier)
    # Never less than what is certain, by rounding losses down, and hardly more than finer steps say.
    assert compute_numerically(sampled, 40, pessimistic=False) <= spent
    assert spent == pytest.approx(compute_numerically(sampled, 40), rel=2e-4)


def test_one_gaussian_by_hand():
    """z = 1, epsilon 1: Phi(-1/2) - e Phi(-3/2) = 0.308538 - 2.718282 * 0.066807 = 0.126937."""
    assert compute_gaussian_delta(1.0, 1.0) == pytest.approx(0.126937, abs=1e-6)
    assert compute_gaussian_epsilon(1.0, 0.126937) == pytest.approx(1.0, abs=1e-5)
    assert calibrate_gaussian(1.0, 0.126937) == pytest.approx(1.0, abs=1e-5)
    # At epsilon 0 it is the distance of two normal distributions, 2 Phi(1 / 2 z) - 1 = 0.0797 at z = 5.
    assert compute_gaussian_epsilon(5.0, 0.08) == 0 < compute_gaussian_epsilon(5.0, 0.079)


@settings(max_examples=50)
@given(log=st.floats(-1.5, 4), delta=st.floats(-11, -0.5))
def test_noise_and_epsilon_are_inverse_and_never_too_small(log, delta):
    z, delta = 10.0**log, 10.0**delta
    epsilon = compute_gaussian_epsilon(z, delta)
    assert compute_gaussian_delta(z, epsilon) <= delta
    if epsilon > 1e-9:
        assert calibrate_gaussian(epsilon, delta) == pytest.approx(z, rel=1e-5)
        assert compute_gaussian_delta(z, epsilon * (1 - 1e-5)) > delta


@pytest.mark.parametrize("rounds", [1, 7, 100])
def test_epsilon_by_round_is_that_of_numerical_composition(rounds):
    for accounting, rel in ((POISSON, 2e-3), (EVERYONE, 1e-4)):
        expected = compute_numerically(accounting.build_event(1.1), rounds)
        assert accounting.compute_epsilon(1.1, rounds) == pytest.approx(expected, rel=rel)
        assert accounting.compute_epsilon(1.1, rounds) < by_divergences(accounting).compute_epsilon(1.1, rounds)


def test_which_accountant_composes():
    """Cohorts of a fixed size have bounds by divergences alone; numerical sums cannot resolve every delta."""
    asked = {each: each.accountant for each in (POISSON, EVERYONE, FIXED, ALL_OF_20, by_divergences(POISSON))}
    assert list(asked.values()) == [PLD, PLD, RDP, PLD, RDP]
    tiny = [dataclasses.replace(each, delta=1e-14) for each in (POISSON, EVERYONE)]
    assert [each.accountant for each in tiny] == [RDP, PLD] and all(each.compute_epsilon(5.0, 9) > 0 for each in tiny)
    assert EVERYONE.describe_accountant() == "accounted by privacy loss distributions"
    instead = "accounted by Rényi divergences, since privacy loss distributions do not apply"
    assert FIXED.describe_accountant() == instead


def test_poisson_sampling_costs_what_tensorflow_privacy_documents():
    """60,000 records, batches of 150, noise 1.3, 15 epochs at delta 1e-5: 0.7242 in TensorFlow Privacy 0.9's tests."""
    accounting = Accounting(1e-5, num_clients=60000, cohort_size=150, participation="bernoulli")
    rounds = 15 * 60000 // 150
    assert by_divergences(accounting).compute_epsilon(1.3, rounds) == pytest.approx(0.7242234026109595, rel=1e-6)
    assert 0.5 < accounting.compute_epsilon(1.3, rounds) < 0.7


def test_a_run_of_abadi_costs_no_more_than_printed():
    """Abadi et al. 2016, section 3.1: q = 0.01, sigma = 4, 10,000 steps, delta 1e-5 is (1.26, 1e-5).

    The printed number is log(1 / delta) / (order - 1) + divergence, at the best integer order; today's conversion from
    Rényi divergences is tighter.
    """
    accounting = Accounting(1e-5, num_clients=10_000, cohort_size=100, participation="bernoulli")
    # Integer orders, as the moments accountant of the paper had them.
    divergences = rdp.RdpAccountant(range(2, 64)).compose(accounting.build_event(4.0), 10_000).rdp
    printed = min(divergences + np.log(1e5) / (np.arange(2, 64) - 1))
    assert printed == pytest.approx(1.26, abs=0.005)
    bound = by_divergences(accounting).compute_epsilon(4.0, 10_000)
    assert 0.9 < accounting.compute_epsilon(4.0, 10_000) < bound < printed


@pytest.mark.parametrize("rounds", [1, 7, 100])
def test_epsilon_by_round_is_the_accountants_own(rounds):
    # Of divergences, to the last digits.
    sampled = dp_accounting.PoissonSampledDpEvent(0.1, GAUSSIAN(1.1))
    for accounting, event in ((POISSON, sampled), (EVERYONE, GAUSSIAN(1.1))):
        expected = compute_epsilon((event, rounds))
        assert by_divergences(accounting).compute_epsilon(1.1, rounds) == pytest.approx(expected, rel=1e-12)


def test_a_fixed_cohort_has_the_bound_of_its_own_sampling_at_twice_the_sensitivity():
    event = dp_accounting.SampledWithoutReplacementDpEvent(1000, 100, GAUSSIAN(4.0 / 2))
    accountant = rdp.RdpAccountant(range(2, 33), dp_accounting.NeighboringRelation.REPLACE_ONE).compose(event, 10)
    assert FIXED.compute_epsilon(4.0, 10) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-9)
    assert FIXED.compute_epsilon(4.0, 10) > POISSON.compute_epsilon(4.0, 10)


def test_what_is_hidden_goes_by_how_the_cohort_is_drawn():
    with_statistics = dataclasses.replace(EVERYONE, statistics_multiplier=1.0)
    units = [each.unit for each in (POISSON, EVERYONE, FIXED, with_statistics)]
    assert units == [CLIENT, CLIENT, REPLACED_CLIENT, EXAMPLE]
    assert Accounting(1e-5, 9, 9, "bernoulli").build_event(1.0) == GAUSSIAN(1.0)


def test_statistics_and_releases_are_composed_by_hand():
    """Gaussians alone compose by 1 / z^2: 2 releases in each of 3 rounds at z / 2 = 1, and statistics at 2: 6.25."""
    accounting = dataclasses.replace(ALL_OF_20, releases_per_round=2, statistics_multiplier=2.0)
    for rounds, multiplier in ((3, 6.25**-0.5), (0, 2.0)):
        alone = compute_epsilon((GAUSSIAN(multiplier), 1))
        assert by_divergences(accounting).compute_epsilon(2.0, rounds) == pytest.approx(alone, rel=1e-9)
        exact = compute_gaussian_epsilon(multiplier, 1e-5)
        assert accounting.compute_epsilon(2.0, rounds) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("changes", [{"releases_per_round": 2}, {"statistics_multiplier": 1.0}])
def test_what_cannot_be_accounted_is_refused(changes):
    with pytest.raises(ValueError, match="only for rounds of all clients"):
        dataclasses.replace(POISSON, **changes)


def test_without_noise_nothing_is_private():
    assert POISSON.compute_epsilon(0.0, 1) == np.inf and POISSON.compute_epsilon(0.0, 0) == 0


@pytest.mark.parametrize(
    ("accounting", "epsilon", "rounds"),
    [
        (POISSON, 1.0, 50),
        (POISSON, 1000.0, 50),
        (by_divergences(POISSON), 1.0, 50),
        (by_divergences(EVERYONE), 8.0, 50),
        (EVERYONE, 0.1, 50),
        (EVERYONE, 8.0, 50),
        (EVERYONE, 1000.0, 50),
        (Accounting(1e-5, 20, 5, "fixed"), 4.0, 10),
    ],
    ids=lambda value: value.participation if isinstance(value, Accounting) else value,
)
def test_the_least_noise_is_the_budgets_and_a_little_less_is_not(accounting, epsilon, rounds):
    multiplier = accounting.calibrate(epsilon, rounds)
    assert accounting.compute_epsilon(multiplier, rounds) <= epsilon
    assert accounting.compute_epsilon(multiplier * 0.999, rounds) > epsilon


def test_noise_is_as_given_or_calibrated():
    assert POISSON.settle_noise(UpdatePrivacyConfig(epsilon=4.0, noise_multiplier=2.5)) == 2.5
    assert EVERYONE.settle_noise(UpdatePrivacyConfig(epsilon=4.0, rounds=10)) == EVERYONE.calibrate(4.0, 10)


@pytest.mark.parametrize(
    ("accounting", "config", "message"),
    [
        (
            POISSON,
            UpdatePrivacyConfig(epsilon=1.0, noise_multiplier=0.3),
            r"dp_noise_multiplier=0\.3: expected more noise, or dp_epsilon of at least",
        ),
        (
            dataclasses.replace(ALL_OF_20, statistics_multiplier=1.0),
            UpdatePrivacyConfig(epsilon=1.0),
            "that the clients' statistics cost at dp_delta=1e-05",
        ),
        (dataclasses.replace(ALL_OF_20, delta=1e-9), UpdatePrivacyConfig(epsilon=1e-6), "no noise is enough"),
        (ALL_OF_20, ADAPTIVE, r"dp_clip_count_noise=1\.0: expected more"),  # the count costs more than the round may
    ],
)
def test_a_budget_that_nothing_fits_into_is_refused(accounting, config, message):
    with pytest.raises(ConfigError, match=message):
        accounting.settle_noise(config)


def test_the_noise_is_split_as_in_andrew_and_by_tff():
    """z = 1, sigma_b = 1: z_delta = (1 - 1/4)^-1/2 = 2 / sqrt(3); the two together are z again."""
    assert split_noise(1.0, 1.0) == pytest.approx(2 / 3**0.5) and split_noise(0.0, 1.0) == 0.0
    # Bits of -1/2 or 1/2 at deviation 1.
    together = compute_epsilon((GAUSSIAN(split_noise(1.0, 1.0)), 1), (GAUSSIAN(2.0), 1))
    assert together == pytest.approx(compute_epsilon((GAUSSIAN(1.0), 1)))
    from tensorflow_federated import aggregators  # imports for seconds

    theirs = aggregators.differential_privacy.adaptive_clip_noise_params(1.2, 100.0)
    assert (split_noise(1.2, theirs[1]), 5.0) == (pytest.approx(theirs[0]), theirs[1])


@pytest.mark.parametrize(("cohort_size", "participation"), [(1000, "fixed"), (100, "fixed"), (100, "bernoulli")])
def test_who_is_seen_is_not_hidden_by_a_sample(cohort_size, participation):
    """A round is Gaussian(z), whatever the cohort. Gaussians compose by 1 / z^2: 30 rounds at 3 are one at 0.5477."""
    seen = Accounting(1e-5, 1000, cohort_size, participation, is_seen=True)
    assert seen.build_event(3.0) == GAUSSIAN(3.0) and seen.unit == SEEN_CLIENT
    bound = by_divergences(seen).compute_epsilon(3.0, 30)
    assert bound == pytest.approx(compute_epsilon((GAUSSIAN(3.0), 30)), rel=1e-12)
    assert bound == pytest.approx(compute_epsilon((GAUSSIAN(3.0 / 30**0.5), 1)), rel=1e-9)
    exact = compute_gaussian_epsilon(3.0 / 30**0.5, 1e-5)
    assert seen.compute_epsilon(3.0, 30) == pytest.approx(exact, rel=1e-9)
    assert seen.compute_epsilon(3.0, 30) >= POISSON.compute_epsilon(3.0, 30)
