"""Private sums of client updates: clipped by the clients, noised once by the server, paid for from a budget.

McMahan et al. 2018 ("Learning Differentially Private Recurrent Language Models", Algorithm 1), with a fixed denominator
and, if asked for, the adaptive clip norm of Andrew et al. 2021 ("Differentially Private Learning with Adaptive
Clipping", Algorithm 1). A round:
1. A client's update d becomes d * min(1, S / |d|); if it sends several, their norms together stay within S.
2. They are summed, without weights, in the one aggregation that all algorithms share.
3. The server adds noise of deviation z S to every entry of the sum, from NumPy's generator, once, whatever computed the
   sum and in however many shares; and divides by the cohort's expected size, which tells nothing of who came.
4. With adaptive clipping, S moves along the noisy number of clients whose update was left whole.

An update that is not finite counts as none, and adds zeros; so does an empty slot. The accounting is in
`Accounting`. TFF's `DifferentiallyPrivateFactory` does the same inside a TFF aggregation, but draws its noise
unseeded in the graph, so that no run could be repeated or resumed, and again in each share of a round that is cut.

The noise of a simulation is drawn from the run's seed, in floating point. Where clients are asked over a network
(`AskedPrivateAggregator`), it comes from the operating system, and sums are made of whole numbers, see `noise_sources`.

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

All is composed by Rényi differential privacy (`dp_accounting.rdp`), which takes no more than seconds for every case.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import dp_accounting
import numpy as np
import tensorflow as tf
from dp_accounting import rdp
from scipy import optimize

from models.model_spec import ModelSpec
from tff_algos.late_computation import OUTSIDE_GRAPHS
from tff_algos.protocol import EPSILON_SPENT, Weights
from tff_algos.rounds.aggregation import ClientUpdate, GroupTotals
from tff_algos.rounds.aggregators import Aggregate, SumAggregator
from tff_algos.rounds.noise_sources import NoiseSource, count_steps, find_grid
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.update_privacy import ADAPTIVE, UpdatePrivacyConfig

CLIENT, REPLACED_CLIENT, EXAMPLE = "a client more or less", "a client in place of another", "an example more or less"
SEEN_CLIENT = "all that a client sends, but not that it takes part"
LEAST_MULTIPLIER, MOST_MULTIPLIER = 0.02, 1e6  # of the search for the noise
USUAL_MULTIPLIER = 64 * LEAST_MULTIPLIER  # where it begins: the sampled bounds are dear where there is little noise

# The orders that dp_accounting takes by default. The bound for fixed cohorts takes seconds for so many, and is
# interpolated between integers anyway.
ORDERS = (*(1 + step / 10 for step in range(1, 100)), *range(11, 64), 128, 256, 512, 1024)
INTEGER_ORDERS = (*range(2, 33), 40, 48, 64, 96, 128)


@functools.lru_cache(maxsize=256)
def _compute_divergences(event: dp_accounting.DpEvent, orders: tuple[float, ...]) -> np.ndarray:
    """The Rényi divergences of an event; cached, since they are the same in every round, and may take a second."""
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
      is_seen: whether others may know who takes part, so that no cohort is a secret sample.
    """

    delta: float
    num_clients: int
    cohort_size: int
    participation: str
    releases_per_round: int = 1
    statistics_multiplier: float | None = None
    is_seen: bool = False

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
        found = optimize.brentq(lambda multiplier: self.compute_epsilon(multiplier, rounds) - epsilon, low, high)
        while self.compute_epsilon(found, rounds) > epsilon:  # the root is found to a last bit or two
            found *= 1 + 1e-9
        return found

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


CLIP_NORM, NUM_CLIPPED = "clip_norm", "num_clipped"  # metrics
MOST_STEP = 100.0  # of the logarithm of the clip norm in a round: a huge draw of the noise must not end the run
SAFETY = 1e-6  # by which a clipped update stays below the norm, relatively: more than float32 can round it up


class ClipCounts(NamedTuple):
    """What is counted while updates are clipped, float32; a client counts 1, or its updates together.

    Attributes:
      num_counted: clients whose update is finite.
      num_whole: those of them whose update was left whole, its norm being within the clip norm.
      num_clipped: updates that were clipped, each counting 1: for a person, who simulates; it is never released.
    """

    num_counted: tf.Tensor
    num_whole: tf.Tensor
    num_clipped: tf.Tensor


class PrivacyState(NamedTuple):
    """What of the mechanism belongs to a run's state.

    Attributes:
      noise_multiplier: z, settled when the run began: more rounds on resume must not change it, float64.
      clip_norms: S of each release of a round, float32, shape (releases,).
    """

    noise_multiplier: np.float64
    clip_norms: np.ndarray


def clip_update(
    deltas: Sequence[tf.Tensor], clip_norm: tf.Tensor | float
) -> tuple[tuple[tf.Tensor, ...], tf.Tensor, tf.Tensor]:
    """d * min(1, S / |d|), in any graph: an update that is within the norm stays as it is, to the last bit.

    Args:
      deltas: an update, float32 and finite.
      clip_norm: S, the bound on the L2 norm over all of its entries; above 0.

    Returns:
      (the clipped update, its squared norm, whether it was left whole).
    """
    # In float64: the rounding errors of a float32 sum over many entries could hide that the bound is passed.
    norm = tf.sqrt(tf.add_n([tf.reduce_sum(tf.square(tf.cast(delta, tf.float64))) for delta in deltas]))
    bound = tf.cast(clip_norm, tf.float64)
    is_whole = norm <= bound
    factor = tf.cast(
        tf.where(is_whole, tf.ones_like(norm), (1 - SAFETY) * tf.math.divide_no_nan(bound, norm)), tf.float32
    )
    clipped_norm = tf.cast(tf.minimum(norm, bound), tf.float32)
    return tuple(factor * delta for delta in deltas), tf.square(clipped_norm), is_whole


def clip_client(update: ClientUpdate, clip_norm: tf.Tensor) -> tuple[ClientUpdate, ClipCounts]:
    """The update as it enters a private sum, and what it counts, in any graph.

    Args:
      update: its weight is the share of the clip norm that it may have: 1 for a client with one update; 1 / sqrt(n) for
        each of the n updates of one client, whose norms together are then within the clip norm; 0 in an empty slot.
      clip_norm: S, float32.
    """
    result, share = update.result, update.weight
    # An empty slot has weight 0; it must not count as an update that was left whole.
    is_there = (share > 0) & result.is_finite
    deltas, squared_norm, is_whole = clip_update(result.weights_delta, clip_norm * share)
    # The squared shares of a client's updates sum to 1, so that a client counts 1 however many models it trains.
    counted = tf.where(is_there, tf.square(share), 0.0)
    counts = ClipCounts(
        counted,
        tf.where(is_whole, counted, 0.0),
        tf.cast(is_there & ~is_whole, tf.float32),
    )
    clipped = result._replace(weights_delta=deltas, squared_norm=squared_norm)
    return ClientUpdate(clipped, update.group, tf.where(is_there, 1.0, 0.0)), counts


def move_clip_norm(clip_norm: float, share_whole: float, config: UpdatePrivacyConfig) -> np.float32:
    """S * exp(-eta_C (b - gamma)), Andrew et al. 2021: up if fewer than a share gamma of the updates were left whole.

    Args:
      clip_norm: S.
      share_whole: b, noisy; below 0 or above 1 if the noise says so.
      config: gives gamma and eta_C.
    """
    exponent = -config.clip_learning_rate * (share_whole - config.clip_quantile)
    moved = clip_norm * math.exp(min(max(exponent, -MOST_STEP), MOST_STEP))
    # The state is float32: 0 or infinity in it would end all later rounds.
    limits = np.finfo(np.float32)
    return np.float32(min(max(moved, float(limits.tiny)), float(limits.max)))


@dataclasses.dataclass(frozen=True, eq=False)
class PrivateAggregator(SumAggregator):
    """Sums of clipped updates with noise, of which the server takes the expected cohort's mean.

    A client's weight is as in `clip_client`: 1, or less where it sends several updates.

    Attributes:
      config: settings.
      accounting: what the rounds cost.
      noise: where it is drawn from; the host adds it.
      noise_multiplier: of a new run.
      release: which of the round's releases this is.
    """

    # Clients get the clip norm each round, and the host adds the noise: no graph is made of these.
    config: UpdatePrivacyConfig = dataclasses.field(metadata=OUTSIDE_GRAPHS)
    accounting: Accounting = dataclasses.field(metadata=OUTSIDE_GRAPHS)
    noise: NoiseSource = dataclasses.field(metadata=OUTSIDE_GRAPHS)
    noise_multiplier: float = dataclasses.field(metadata=OUTSIDE_GRAPHS)
    release: int = dataclasses.field(default=0, metadata=OUTSIDE_GRAPHS)

    hides_rejected = True

    @property
    def denominator(self) -> int:
        """By which a sum over the cohort is divided: its expected size, whoever came."""
        return self.accounting.cohort_size

    def initialize(self, num_groups: int) -> PrivacyState:
        clip_norms = np.full(self.accounting.releases_per_round, self.config.clip_norm, np.float32)
        return PrivacyState(np.float64(self.noise_multiplier), clip_norms)

    def tell(self, state: PrivacyState) -> tuple[np.ndarray, ...]:
        return (state.clip_norms[self.release],)

    def encode(self, update: ClientUpdate, told: tuple[tf.Tensor, ...]) -> tuple[ClientUpdate, ClipCounts]:
        return clip_client(update, told[0])

    def reduce(self, totals: GroupTotals) -> tuple[tf.Tensor, ...]:
        return totals.deltas

    def weigh(self, sums: Weights, sizes: np.ndarray) -> tuple[Weights, int]:
        """(what gets the noise and is changed by one client by at most S, by what the server divides it)."""
        return sums, self.denominator

    def finish(self, values, weight, counts, sizes, state, round_num) -> Aggregate:
        weighed, divisor = self.weigh(values, sizes)
        noisy, state = self.add_noise(weighed, counts, state, round_num)
        metrics = {
            EPSILON_SPENT: self.compute_epsilon(state, round_num),
            CLIP_NORM: float(state.clip_norms[0]),
            NUM_CLIPPED: int(counts.num_clipped),
        }
        # A row has its noise whoever came; rows are those of what was weighed, and count equally.
        num_rows = len(noisy[0])
        return Aggregate(noisy, np.ones(num_rows, bool), np.ones(num_rows, np.float32), divisor, state, metrics)

    def add_noise(
        self, sums: Sequence[np.ndarray], counts: ClipCounts, state: PrivacyState, round_num: int
    ) -> tuple[Weights, PrivacyState]:
        """Step 3, without the division, and step 4: the sums with noise, float32, and the next state.

        Args:
          sums: what one client changes by at most S in all, any shapes.
          counts: from the same clients.
          state: the mechanism's.
          round_num: 1-based; the noise is drawn anew for each round and release.
        """
        clip_norm, multiplier = float(state.clip_norms[self.release]), float(state.noise_multiplier)
        normals, clip_norms = self.noise.open(self.release, round_num), state.clip_norms
        if self.config.clipping == ADAPTIVE:
            count_deviation = self.accounting.compute_count_deviation(self.config)
            multiplier = split_noise(multiplier, count_deviation)
            # Shifted by 1/2 a client, whose bit then changes the sum by 1/2 only; an absent one changes nothing.
            centered = float(counts.num_whole) - float(counts.num_counted) / 2
            [noisy_count] = self.noise.add([np.asarray(centered)], count_deviation if multiplier else 0.0, 1.0, normals)
            share_whole = 0.5 + float(noisy_count) / self.denominator
            clip_norms = clip_norms.copy()
            clip_norms[self.release] = move_clip_norm(clip_norm, share_whole, self.config)
        deviation = multiplier * clip_norm
        noisy = self.noise.add(sums, deviation, clip_norm, normals)
        return tuple(array.astype(np.float32) for array in noisy), state._replace(clip_norms=clip_norms)

    def compute_epsilon(self, state: PrivacyState, rounds: int) -> float:
        """What so many rounds have cost."""
        # The state's noise, since a resumed run may have been given another number of rounds.
        return self.accounting.compute_epsilon(float(state.noise_multiplier), rounds)

    def is_spent(self, state: PrivacyState, rounds: int) -> bool:
        return self.compute_epsilon(state, rounds + 1) > self.config.epsilon

    def summarize(self, state: PrivacyState, rounds: int) -> dict[str, dict[str, float | str]]:
        summary: dict[str, float | str] = {
            EPSILON_SPENT: self.compute_epsilon(state, rounds),
            "delta": self.accounting.delta,
            "hides": self.accounting.unit,
            "noise_multiplier": float(state.noise_multiplier),
        }
        return {"privacy": summary}

    def list_notes(self, state: PrivacyState, released: str) -> tuple[str, ...]:
        config, accounting = self.config, self.accounting
        secret = "; who was drawn stays secret" if accounting.is_sampled else ""
        bound = f"{state.clip_norms[0]:g}" + (" at first, then adaptive" if config.clipping == ADAPTIVE else "")
        return (
            f"privacy  epsilon {config.epsilon:g} at delta {config.delta:g} hides {accounting.unit}; "
            f"{accounting.describe_sampling()}{secret}",
            f"         updates are clipped to the norm {bound}, and the server, which is trusted, adds noise of "
            f"{state.noise_multiplier:.4g} clip norms to their sum; {self.noise.description}",
            f"         released: {released}. Not to be released, since without noise: losses, accuracies, numbers of "
            "clients, clipped and rejected updates, bytes, times, drift, clients.csv, events.csv and plots of these",
        )


class AskedPrivateAggregator(PrivateAggregator):
    """The same of updates that came over a network, one by one: their sum is made of whole numbers, on the host."""

    def aggregate(self, updates, totals, counts, sizes, state, num):
        grid = find_grid(float(state.clip_norms[self.release]))
        steps = [np.zeros(np.shape(array), np.int64) for array in totals.deltas]
        for update in updates:
            # Not multiplied by the weight, which is 1: an update that is not finite may be anything.
            if float(update.weight):
                for total, delta in zip(steps, update.result.weights_delta, strict=True):
                    total[int(update.group)] += count_steps(delta, grid)
        values = tuple(each * grid for each in steps)
        return self.finish(values, np.asarray(totals.weight), counts, sizes, state, num)


def check_private_model(model_spec: ModelSpec) -> None:
    """Raises ConfigError for a model with weights that are found from data and not trained.

    Noise would make BatchNorm's variances negative; the ranges of quantization-aware training are found outside of the
    updates.
    """
    if model_spec.quantization is not None:
        raise ConfigError(
            "--quantize", "qat", "none with private updates, since ranges are found from the clients' data"
        )
    if model_spec.build().non_trainable_weights:
        expected = "a model whose weights are all trained, without BatchNorm, with private updates"
        raise ConfigError("model", model_spec.name, expected)
