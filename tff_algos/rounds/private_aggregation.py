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
`privacy_accounting`. TFF's `DifferentiallyPrivateFactory` does the same inside a TFF aggregation, but draws its noise
unseeded in the graph, so that no run could be repeated or resumed, and again in each share of a round that is cut.

The noise of a simulation is drawn from the run's seed, in floating point. Where clients are asked over a network
(`AskedPrivateAggregator`), it comes from the operating system, and sums are made of whole numbers, see `noise_sources`.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from models.model_spec import ModelSpec
from tff_algos.late_computation import OUTSIDE_GRAPHS
from tff_algos.protocol import EPSILON_SPENT, Weights
from tff_algos.rounds.aggregation import ClientUpdate, GroupTotals
from tff_algos.rounds.aggregators import Aggregate, SumAggregator
from tff_algos.rounds.noise_sources import NoiseSource, count_steps, find_grid
from tff_algos.rounds.privacy_accounting import Accounting, split_noise
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.update_privacy import ADAPTIVE, UpdatePrivacyConfig

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
            "accountant": self.accounting.accountant,
            "noise_multiplier": float(state.noise_multiplier),
        }
        return {"privacy": summary}

    def list_notes(self, state: PrivacyState, released: str) -> tuple[str, ...]:
        config, accounting = self.config, self.accounting
        secret = "; who was drawn stays secret" if accounting.is_sampled else ""
        bound = f"{state.clip_norms[0]:g}" + (" at first, then adaptive" if config.clipping == ADAPTIVE else "")
        return (
            f"privacy  epsilon {config.epsilon:g} at delta {config.delta:g} hides {accounting.unit}; "
            f"{accounting.describe_sampling()}{secret}; {accounting.describe_accountant()}",
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
