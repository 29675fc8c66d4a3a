"""What the rounds of a private run cost: epsilon after so many of them, and the noise that a budget needs.

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

Where clients have released noisy statistics of their own before (FedSiKD), which hide an *example* of a client more or
less, that is the unit of the whole run. One example can turn a client's update into any other, which is twice the clip
norm again.

All is composed by Rényi differential privacy (`dp_accounting.rdp`), which takes no more than seconds for every case.
"""

import dataclasses
import functools

import dp_accounting
import numpy as np
from dp_accounting import rdp
from scipy import optimize

from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.update_privacy import UpdatePrivacyConfig

CLIENT, REPLACED_CLIENT, EXAMPLE = "a client more or less", "a client in place of another", "an example more or less"
LEAST_MULTIPLIER, MOST_MULTIPLIER = 0.02, 1e6  # of the search for the noise
USUAL_MULTIPLIER = 64 * LEAST_MULTIPLIER  # where it begins: the sampled bounds are dear where there is little noise

# The orders that dp_accounting takes by default. The bound for fixed cohorts takes seconds for so many, and is
# interpolated between integers anyway.
ORDERS = (*(1 + step / 10 for step in range(1, 100)), *range(11, 64), 128, 256, 512, 1024)
INTEGER_ORDERS = (*range(2, 33), 40, 48, 64, 96, 128)


@functools.lru_cache(maxsize=256)
def _compute_divergences(event: dp_accounting.DpEvent, orders: tuple[float, ...]) -> np.ndarray:
    """The Rényi divergences of an event; kept, since they are the same in every round, and may take a second."""
    is_fixed_size = isinstance(event, dp_accounting.SampledWithoutReplacementDpEvent)
    relation = dp_accounting.NeighboringRelation
    neighbors = relation.REPLACE_ONE if is_fixed_size else relation.ADD_OR_REMOVE_ONE
    return rdp.RdpAccountant(orders, neighbors).compose(event).rdp


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
    """

    delta: float
    num_clients: int
    cohort_size: int
    participation: str
    releases_per_round: int = 1
    statistics_multiplier: float | None = None

    def __post_init__(self):
        # Two releases of one sample are not two samples, and an example is not a client that is drawn.
        if self.is_sampled and (self.releases_per_round > 1 or self.statistics_multiplier is not None):
            raise ValueError("several releases a round, or statistics: accounted only for rounds of all clients")

    @property
    def is_sampled(self) -> bool:
        """Whether a client may be left out of a round."""
        return self.cohort_size < self.num_clients

    @property
    def is_fixed_size(self) -> bool:
        return self.is_sampled and self.participation == "fixed"

    @property
    def unit(self) -> str:
        """What two runs may differ in that nobody can tell apart."""
        if self.statistics_multiplier is not None:
            return EXAMPLE
        return REPLACED_CLIENT if self.is_fixed_size else CLIENT

    def describe_sampling(self) -> str:
        """How the cohort of a round is drawn, in words."""
        if not self.is_sampled:
            return f"all {self.num_clients} clients in every round"
        if self.is_fixed_size:
            return f"{self.cohort_size} of {self.num_clients} clients a round, drawn without replacement"
        return f"each of {self.num_clients} clients by chance, {self.cohort_size} a round on average (Poisson)"

    def build_event(self, noise_multiplier: float) -> dp_accounting.DpEvent:
        """One release."""
        if self.unit == CLIENT:
            event = dp_accounting.GaussianDpEvent(noise_multiplier)
        else:
            event = dp_accounting.GaussianDpEvent(noise_multiplier / 2)
        if not self.is_sampled:
            return event
        if self.is_fixed_size:
            return dp_accounting.SampledWithoutReplacementDpEvent(self.num_clients, self.cohort_size, event)
        return dp_accounting.PoissonSampledDpEvent(self.cohort_size / self.num_clients, event)

    @property
    def _orders(self) -> tuple[float, ...]:
        return INTEGER_ORDERS if self.is_fixed_size else ORDERS

    def compute_epsilon(self, noise_multiplier: float, rounds: int) -> float:
        """Epsilon after so many rounds, and after the statistics if there are any; infinite without noise."""
        total = np.zeros(len(self._orders))
        if self.statistics_multiplier is not None:
            total += _compute_divergences(dp_accounting.GaussianDpEvent(self.statistics_multiplier), self._orders)
        if rounds:
            if not noise_multiplier:
                return float("inf")
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
        low = high = USUAL_MULTIPLIER
        while self.compute_epsilon(high, rounds) > epsilon:
            low, high = high, 2 * high
            if high > MOST_MULTIPLIER:
                raise ConfigError("dp_epsilon", epsilon, "more: no noise is enough for so little")
        while self.compute_epsilon(low, rounds) <= epsilon:
            if low == LEAST_MULTIPLIER:
                return low
            low, high = low / 2, low
        found = optimize.brentq(lambda multiplier: self.compute_epsilon(multiplier, rounds) - epsilon, low, high)
        while self.compute_epsilon(found, rounds) > epsilon:  # the root is found to a last bit or two
            found *= 1 + 1e-9
        return found

    def settle_noise(self, config: UpdatePrivacyConfig) -> float:
        """The noise multiplier of a run: as given, or calibrated.

        Raises:
          ConfigError: see `calibrate`; or with the noise given, not even one round is within the budget.
        """
        if not config.noise_multiplier:
            return self.calibrate(config.epsilon, config.rounds)
        first = self.compute_epsilon(config.noise_multiplier, 1)
        if first > config.epsilon:
            expected = f"more noise, or dp_epsilon of at least {first:.4g}, which one round costs with it"
            raise ConfigError("dp_noise_multiplier", config.noise_multiplier, expected)
        return config.noise_multiplier


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
