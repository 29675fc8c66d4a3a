"""The Gaussian mechanism on FedSiKD's statistics: each client adds noise to its moment vector before releasing it.

Neighbouring data sets differ by one example of one client, added or removed. A client clips its values to the data
set's known range and maps them to u in [-1, 1]. It then releases S = sum over its examples of a contribution, plus
noise:

- 'per_feature': an example contributes (1, u_f, u_f^2, u_f^3 for each of F features), the count being shared by all
  features. Every entry lies in [-1, 1], so the contribution's L2 norm is at most sqrt(1 + 3 F).
- 'scalar': an example contributes (1, mean u, mean u^2, mean u^3), means over its features. Means of numbers in [-1, 1]
  lie there too, so the norm is at most sqrt(1 + 3) = 2.

Adding or removing an example changes S by its contribution; so S, of 1 + 3 * columns entries, has L2 sensitivity
sqrt(1 + 3 * columns), reached by an example whose values are all 1. What is computed from the noisy S alone costs no
further privacy: the statistics, and the number of examples that the server takes a client to have, which is the first
entry of S, or 1 if that is less. By it the server chooses the leaders and weights by examples.

This hides one example more or less of a client, not about how large it is. And it covers this release alone. What else
the server sees stays as it is: that a client takes part, the bytes that it sends (of models, whatever its data), the
time that it takes (longer the more examples it has), and its updates, which have no noise.

The noise is drawn from the run's seed in floating point: a simulation of the mechanism. A deployment needs noise that
the server cannot redraw, and a sampler safe against floating-point attacks.
"""

import math

import dp_accounting
import numpy as np
import tensorflow as tf

from tff_algos.rounds.privacy_accounting import calibrate_gaussian, compute_gaussian_epsilon
from tff_algos.settings.update_privacy import PLD

# Rényi orders from 1 + 2^-15 to 1 + 2^30, eight an octave: enough for every epsilon from 1e-4 to 1e8. The accountant's
# own, 1.1 to 1024, cannot account an epsilon below about log(1 / delta) / 1024.
RENYI_ORDERS = tuple(1 + 2 ** (step / 8) for step in range(-120, 241))


def normalize_features(x: tf.Tensor, feature_range: tuple[float, float]) -> tf.Tensor:
    """Clips values to `feature_range` and maps it to [-1, 1], in any graph; NaN becomes 0.

    Args:
      x: preprocessed examples, any shape.
      feature_range: (lowest, highest) value, lowest < highest, known without looking at the data.

    Returns:
      float64, shape of x, never outside [-1, 1].
    """
    center, half_width = _center_and_half_width(feature_range)
    normalized = tf.clip_by_value((tf.cast(x, tf.float64) - center) / half_width, -1.0, 1.0)
    return tf.where(tf.math.is_nan(normalized), tf.zeros_like(normalized), normalized)


def restore_units(statistics: np.ndarray, feature_range: tuple[float, float]) -> np.ndarray:
    """Statistics of normalised values in the units of the features: skewness has no unit.

    Args:
      statistics: mean, standard deviation, skewness of u, shape (3,) or (3, columns).
      feature_range: as given to `normalize_features`.

    Returns:
      float64, same shape.
    """
    center, half_width = _center_and_half_width(feature_range)
    mean, deviation, skewness = statistics
    return np.stack([center + half_width * mean, half_width * deviation, skewness])


def compute_sensitivity(num_columns: int) -> float:
    """L2 sensitivity of a moment vector of `num_columns` columns: sqrt(1 + 3 * columns), derived above."""
    return math.sqrt(1 + 3 * num_columns)


def calibrate_noise_multiplier(epsilon: float, delta: float, accountant: str = PLD) -> float:
    """The noise multiplier that makes one release (epsilon, delta)-differentially private.

    The noise's standard deviation is this times `compute_sensitivity`. Rényi divergences ask for more noise than the
    exact curve: 9 % more at epsilon 1 and delta 1e-5, half as much again at worst (epsilon 1e-4, delta 1e-3).

    Args:
      epsilon: above 0.
      delta: in (0, 1).
      accountant: PLD, which is exact for one release, or RDP.
    """
    if accountant == PLD:
        return calibrate_gaussian(epsilon, delta)
    return dp_accounting.calibrate_dp_mechanism(_new_accountant, dp_accounting.GaussianDpEvent, epsilon, delta)


def spent_epsilon(noise_multiplier: float, delta: float, accountant: str = PLD) -> float:
    """The epsilon that one release with `noise_multiplier` (above 0) costs each client at `delta`."""
    if accountant == PLD:
        return compute_gaussian_epsilon(noise_multiplier, delta)
    return _new_accountant().compose(dp_accounting.GaussianDpEvent(noise_multiplier)).get_epsilon(delta)


def add_noise(moments: tf.Tensor, standard_deviation: float, seed: tf.Tensor) -> tf.Tensor:
    """Adds independent Gaussian noise to each entry, in any graph; a pure function of the seed.

    Args:
      moments: a moment vector, float64.
      standard_deviation: `noise_multiplier * sensitivity`.
      seed: int32, shape (2,), a different one for each client.

    Returns:
      float64, shape of `moments`.
    """
    noise = tf.random.stateless_normal(tf.shape(moments), seed, dtype=moments.dtype)
    return moments + standard_deviation * noise


def _new_accountant() -> dp_accounting.PrivacyAccountant:
    # What is hidden is an example more or less, see above.
    return dp_accounting.rdp.RdpAccountant(RENYI_ORDERS, dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)


def _center_and_half_width(feature_range: tuple[float, float]) -> tuple[float, float]:
    low, high = feature_range
    if not low < high:
        raise ValueError(f"feature_range=({low}, {high}): expected a lowest value below the highest")
    return (low + high) / 2, (high - low) / 2
