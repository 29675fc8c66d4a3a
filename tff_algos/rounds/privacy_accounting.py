"""What private updates cost: releases, what they hide, and the accountants that compose them.

A *release* is one sum with Gaussian noise whose deviation is `noise_multiplier` times the most by which one client can
change it. The bound on the sum depends on how the cohort is drawn, and so does what is hidden, the *unit*:

| cohort | unit | a release is |
|---|---|---|
| all clients | a client more or less | `Gaussian(z)` |
| each client by chance q (Poisson) | a client more or less | `PoissonSampled(q, Gaussian(z))` |
| m of n clients, drawn without replacement | a client in place of another | `SampledWithoutReplacement(n, m, ...)` |

In the last case n and m are known, and one client in place of another changes the sum by up to twice the clip norm: the
noise is z / 2 times that, so the event inside is `Gaussian(z / 2)`, and the bound is Theorem 27 of Wang, Balle and
Kasiviswanathan 2019. The amplification of both kinds of sampling holds only while nobody learns who was drawn.

Clients that are asked over a network are seen to take part. Then what is hidden is what they send: two runs have the
same clients in the same rounds, and one client's updates are zeros in one of them. However cohorts are drawn, and
whoever is missing, a round is `Gaussian(z)`. For that, nothing but the sum may depend on what a client sends: an update
that is rejected counts as an answer of zeros. It holds of clients that keep to the protocol: one that sends what is no
answer to its task, or fails at it, leaves as one that goes away does, and that it left is seen.

Where clients have released noisy statistics of their own before (FedSiKD), which hide an *example* of a client more or
less, that is the unit of the whole run. One example can turn a client's update into any other, which is twice the clip
norm again.

Rounds are composed by one of two accountants:

- `PLD`: privacy loss distributions, which say what is spent up to rounding. Gaussians alone, n of them, are one with
  z / sqrt(n), whose curve has a closed form (Balle and Wang 2018, "Improving the Gaussian Mechanism for Differential
  Privacy", Theorem 8). Sampled ones are composed numerically by `dp_accounting.pld`, rounded towards more.
- `RDP`: Rényi divergences, by `dp_accounting.rdp`: bounds, about a tenth larger. Cohorts of a fixed size have no others
  here, whatever accountant is asked for; nor has a delta that the numbers of a composition cannot resolve.
"""

import dataclasses
import functools
import math
from collections.abc import Callable

import dp_accounting
import numpy as np
from dp_accounting import pld, rdp
from scipy import optimize, special

from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.update_privacy import ADAPTIVE, PLD, RDP, UpdatePrivacyConfig

CLIENT, REPLACED_CLIENT, EXAMPLE = "a client more or less", "a client in place of another", "an example more or less"
SEEN_CLIENT = "all that a client sends, but not that it takes part"
LEAST_MULTIPLIER, MOST_MULTIPLIER = 0.02, 1e6  # of the search for the noise
USUAL_MULTIPLIER = 64 * LEAST_MULTIPLIER  # where it begins: the sampled bounds are dear where there is little noise

# The orders that dp_accounting takes by default. The bound for fixed cohorts takes seconds for so many, and is
# interpolated between integers anyway.
ORDERS = (*(1 + step / 10 for step in range(1, 100)), *range(11, 64), 128, 256, 512, 1024)
INTEGER_ORDERS = (*range(2, 33), 40, 48, 64, 96, 128)
WIDEST_MULTIPLIERS = (1e-7, 1e12)  # of one release: those of any epsilon that a setting may have

# Of the steps into which losses are cut, in the usual loss of a release, q / z; and the least, for the time it takes.
SHARE_OF_LOSS, LEAST_STEP = 0.02, 2e-5
LEAST_DELTA = 1e-12  # of a numerical composition: sums of doubles are not exact enough for less
ACCOUNTANTS = {PLD: "privacy loss distributions", RDP: "Rényi divergences"}


@functools.lru_cache(maxsize=256)
def _compute_divergences(event: dp_accounting.DpEvent, orders: tuple[float, ...]) -> np.ndarray:
    """The Rényi divergences of an event; cached, since they are the same in every round, and may take a second."""
    is_fixed_size = isinstance(event, dp_accounting.SampledWithoutReplacementDpEvent)
    relation = dp_accounting.NeighboringRelation
    neighbors = relation.REPLACE_ONE if is_fixed_size else relation.ADD_OR_REMOVE_ONE
    return rdp.RdpAccountant(orders, neighbors).compose(event).rdp


@functools.lru_cache(maxsize=8)
def _distribute_losses(
    noise_multiplier: float, sampling: float
) -> pld.privacy_loss_distribution.PrivacyLossDistribution:
    """The losses of one sampled release."""
    step = max(SHARE_OF_LOSS * sampling / noise_multiplier, LEAST_STEP)
    return pld.privacy_loss_distribution.from_gaussian_mechanism(
        noise_multiplier, value_discretization_interval=step, sampling_prob=sampling
    )


@functools.lru_cache(maxsize=64)
def _compose_losses(noise_multiplier: float, sampling: float, rounds: int, delta: float) -> float:
    """Epsilon of so many sampled releases; cached, since whether a round fits is asked before what it has cost."""
    losses = _distribute_losses(noise_multiplier, sampling)
    return float(losses.self_compose(rounds).get_epsilon_for_delta(delta))


def compute_gaussian_delta(noise_multiplier: float, epsilon: float) -> float:
    """The least delta for which Gaussian(z) is (epsilon, delta)-private; Balle and Wang 2018, Theorem 8."""
    half, place = 0.5 / noise_multiplier, epsilon * noise_multiplier
    return float(special.ndtr(half - place) - np.exp(epsilon + special.log_ndtr(-half - place)))


def compute_gaussian_epsilon(noise_multiplier: float, delta: float) -> float:
    """The least epsilon for which Gaussian(z) is (epsilon, delta)-private, to rounding and never below it."""
    if compute_gaussian_delta(noise_multiplier, 0.0) <= delta:
        return 0.0
    # By the tail of a normal loss of mean 1 / 2 z^2 and deviation 1 / z, less than which does not do.
    high = 0.5 / noise_multiplier**2 - special.ndtri(delta) / noise_multiplier
    while compute_gaussian_delta(noise_multiplier, high) > delta:
        high *= 2
    exceeds = lambda epsilon: compute_gaussian_delta(noise_multiplier, epsilon) - delta
    return _raise_until(exceeds, optimize.brentq(exceeds, 0.0, high, xtol=1e-14 * high), 1e-15)


def calibrate_gaussian(epsilon: float, delta: float) -> float:
    """The least z, to a billionth and never below it, for which Gaussian(z) is (epsilon, delta)-private."""
    exceeds = lambda log: compute_gaussian_delta(math.exp(log), epsilon) - delta
    log = optimize.brentq(exceeds, *map(math.log, WIDEST_MULTIPLIERS), xtol=1e-14)
    return _raise_until(lambda z: compute_gaussian_delta(z, epsilon) - delta, math.exp(log) * (1 + 1e-9), 1e-9)


def _raise_until(exceeds: Callable[[float], float], found: float, step: float) -> float:
    """From a root that was found to rounding, the first number beyond which nothing is exceeded."""
    while exceeds(found) > 0:
        found, step = found * (1 + step), 2 * step
    return float(found)


@dataclasses.dataclass(frozen=True)
class Accounting:
    """What a run releases, and to whom it is private.

    Attributes:
      delta: of the guarantee.
      num_clients: of the federation, taken as known.
      cohort_size: clients of a round, on average or exactly.
      participation: "fixed" or "bernoulli", see `cohort_draw.sample_cohort`.
      releases_per_round: sums with noise in a round.
      statistics_multiplier: noise multiplier of what each client released of its examples before; None for nothing.
      is_seen: whether others may know who takes part, so that no cohort is a secret sample.
      asked: the accountant that is asked for, see `accountant`.
    """

    delta: float
    num_clients: int
    cohort_size: int
    participation: str
    releases_per_round: int = 1
    statistics_multiplier: float | None = None
    is_seen: bool = False
    asked: str = PLD

    def __post_init__(self):
        # Two releases of one sample are not two samples, and an example is not a client that is drawn.
        if self.is_sampled and (self.releases_per_round > 1 or self.statistics_multiplier is not None):
            raise ValueError("several releases a round, or statistics: accounted only for rounds of all clients")

    @property
    def is_sampled(self) -> bool:
        """Whether a client may be left out of a round, and nobody knows."""
        return self.cohort_size < self.num_clients and not self.is_seen

    @property
    def is_fixed_size(self) -> bool:
        return self.is_sampled and self.participation == "fixed"

    @property
    def unit(self) -> str:
        """What two runs may differ in that nobody can tell apart."""
        if self.statistics_multiplier is not None:
            return EXAMPLE
        if self.is_seen:
            return SEEN_CLIENT
        return REPLACED_CLIENT if self.is_fixed_size else CLIENT

    def describe_sampling(self) -> str:
        """How the cohort of a round is drawn, in words."""
        if self.is_seen:
            return f"a round counts as one of all {self.num_clients} clients, since who takes part is seen"
        if not self.is_sampled:
            return f"all {self.num_clients} clients in every round"
        if self.is_fixed_size:
            return f"{self.cohort_size} of {self.num_clients} clients a round, drawn without replacement"
        return f"each of {self.num_clients} clients by chance, {self.cohort_size} a round on average (Poisson)"

    def build_event(self, noise_multiplier: float) -> dp_accounting.DpEvent:
        """One release."""
        if self.unit in (CLIENT, SEEN_CLIENT):
            event = dp_accounting.GaussianDpEvent(noise_multiplier)
        else:
            # Replacing a client, or all that an example did, changes the sum by up to twice the clip norm.
            event = dp_accounting.GaussianDpEvent(noise_multiplier / 2)
        if not self.is_sampled:
            return event
        if self.is_fixed_size:
            return dp_accounting.SampledWithoutReplacementDpEvent(self.num_clients, self.cohort_size, event)
        return dp_accounting.PoissonSampledDpEvent(self.cohort_size / self.num_clients, event)

    @property
    def accountant(self) -> str:
        """The one that composes: RDP also where the other does not apply."""
        if self.is_fixed_size or (self.is_sampled and self.delta < LEAST_DELTA):
            return RDP
        return self.asked

    def describe_accountant(self) -> str:
        """How rounds are composed, in words."""
        instead = "" if self.accountant == self.asked else f", since {ACCOUNTANTS[self.asked]} do not apply"
        return f"accounted by {ACCOUNTANTS[self.accountant]}{instead}"

    @property
    def _orders(self) -> tuple[float, ...]:
        return INTEGER_ORDERS if self.is_fixed_size else ORDERS

    def compute_epsilon(self, noise_multiplier: float, rounds: int) -> float:
        """Epsilon after so many rounds, and after the statistics if there are any; infinite without noise."""
        if rounds and not noise_multiplier:
            return float("inf")
        if self.accountant == RDP:
            return self._compose_divergences(noise_multiplier, rounds)
        if self.is_sampled:
            sampling = self.cohort_size / self.num_clients
            return _compose_losses(noise_multiplier, sampling, rounds, self.delta) if rounds else 0.0
        # Gaussians alone compose by 1 / z^2.
        of_release = self.build_event(noise_multiplier).noise_multiplier if rounds else 1.0
        total = rounds * self.releases_per_round / of_release**2
        total += (self.statistics_multiplier or math.inf) ** -2
        return compute_gaussian_epsilon(total**-0.5, self.delta) if total else 0.0

    def _compose_divergences(self, noise_multiplier: float, rounds: int) -> float:
        total = np.zeros(len(self._orders))
        if self.statistics_multiplier is not None:
            total += _compute_divergences(dp_accounting.GaussianDpEvent(self.statistics_multiplier), self._orders)
        if rounds:
            of_release = _compute_divergences(self.build_event(noise_multiplier), self._orders)
            total += rounds * self.releases_per_round * of_release
        return float(rdp.compute_epsilon(self._orders, total, self.delta)[0])

    def calibrate(self, epsilon: float, rounds: int) -> float:
        """The least noise multiplier from `LEAST_MULTIPLIER` on with which so many rounds cost at most `epsilon`.

        Raises:
          ConfigError: what was released before costs that much alone, or no noise is enough.
        """
        before = self.compute_epsilon(1.0, 0)
        if before >= epsilon:
            expected = f"more than the {before:.4g} that the clients' statistics cost at dp_delta={self.delta:g}"
            raise ConfigError("dp_epsilon", epsilon, expected)
        # Doubled and halved first: Brent's method needs a sign change, and little noise is slow to account.
        low = high = USUAL_MULTIPLIER
        while self.compute_epsilon(high, rounds) > epsilon:
            low, high = high, 2 * high
            if high > MOST_MULTIPLIER:
                raise ConfigError("dp_epsilon", epsilon, "more: no noise is enough for so little")
        while self.compute_epsilon(low, rounds) <= epsilon:
            if low == LEAST_MULTIPLIER:
                return low
            low, high = low / 2, low
        exceeds = lambda multiplier: self.compute_epsilon(multiplier, rounds) - epsilon
        return _raise_until(exceeds, optimize.brentq(exceeds, low, high), 1e-9)

    def compute_count_deviation(self, config: UpdatePrivacyConfig) -> float:
        """sigma_b, in clients: of the noise on the number of clients whose update was left whole."""
        return config.clip_count_noise * self.cohort_size

    def settle_noise(self, config: UpdatePrivacyConfig) -> float:
        """The noise multiplier of a run: as given, or calibrated.

        Raises:
          ConfigError: see `calibrate`; or with the noise given, not even one round is within the budget; or adaptive
            clipping takes more than there is, see `split_noise`.
        """
        multiplier = config.noise_multiplier or self.calibrate(config.epsilon, config.rounds)
        if config.noise_multiplier:
            first = self.compute_epsilon(multiplier, 1)
            if first > config.epsilon:
                expected = f"more noise, or dp_epsilon of at least {first:.4g}, which one round costs with it"
                raise ConfigError("dp_noise_multiplier", multiplier, expected)
        if config.clipping == ADAPTIVE:
            split_noise(multiplier, self.compute_count_deviation(config))
        return multiplier


def split_noise(noise_multiplier: float, count_deviation: float) -> float:
    """Andrew et al. 2021, Theorem 1: the noise multiplier left for the updates if a count is released beside them.

    Each client's bit, shifted to -1/2 or 1/2, changes the sum of bits by 1/2, so noise of deviation sigma_b on it has
    the multiplier 2 sigma_b. Both releases together are one Gaussian of multiplier z if z^-2 = z_delta^-2 +
    (2 sigma_b)^-2.

    Args:
      noise_multiplier: z, of both together.
      count_deviation: sigma_b, in clients.

    Returns:
      z_delta.

    Raises:
      ConfigError: the count alone would cost more than both may.
    """
    if not noise_multiplier:
        return 0.0
    rest = noise_multiplier**-2 - (2 * count_deviation) ** -2
    if rest <= 0:
        expected = (
            f"more: a deviation of {count_deviation:.3g} clients is below half the noise multiplier "
            f"{noise_multiplier:.3g}, so that the count alone would cost more than the round may"
        )
        raise ConfigError("dp_clip_count_noise", count_deviation, expected)
    return rest**-0.5
