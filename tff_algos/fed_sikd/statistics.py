"""FedSiKD's client statistics, Eq. (1): mean, standard deviation and skewness of a client's features.

Two ways lead to the same numbers. Without privacy a client computes them directly (`compute_statistics`). With privacy
it releases only sums of moments of values in [-1, 1] (`compute_moment_sums`, noise added in `privacy.py`), and the
server derives the statistics from the noisy sums (`statistics_from_moments`).

A kind of statistics has `columns`: 'scalar' has one, all values of a client being one sample; 'per_feature' has one for
each feature, flattened in C order.

The moment vector, the one layout that clients, noise and server share, is float64 of shape (1 + 3 * columns,):
`[n, sum u (columns), sum u^2 (columns), sum u^3 (columns)]`, sums over the client's n examples. For 'scalar', u, u^2
and u^3 of an example are means over its features, so that dividing by n gives the moments of all values.
"""

import math

import numpy as np
import tensorflow as tf

# Below this variance of values in [-1, 1], the rounding errors of moment sums in float64 reach the skewness.
MINIMUM_VARIANCE = 1e-8

# Deviations below this fraction of a column's largest value are rounding errors of equal values.
RELATIVE_TOLERANCE = 1e-12


def _as_columns(x: tf.Tensor, kind: str) -> tf.Tensor:
    """Flattens examples, shape (examples, *features), to samples in float64, shape (samples, columns)."""
    columns = 1 if kind == "scalar" else math.prod(x.shape[1:])
    return tf.reshape(tf.cast(x, tf.float64), (-1, columns))


def compute_statistics(x: tf.Tensor, kind: str) -> tf.Tensor:
    """Mean, population standard deviation and skewness of one client's features, Eq. (1), in any graph.

    The skewness is the third central moment over the cubed standard deviation; that of a constant feature is 0. Values
    are shifted by the first one before two passes over them, so that a constant feature has variance exactly 0.

    Args:
      x: preprocessed examples, at least one, shape (examples, *features) with known feature axes.
      kind: 'scalar' or 'per_feature'.

    Returns:
      float64, shape (3,) for 'scalar', (3, features) for 'per_feature': mean, standard deviation, skewness.
    """
    values = _as_columns(x, kind)
    origin = values[0]
    shifted = values - origin
    shifted_mean = tf.reduce_mean(shifted, axis=0)
    centered = shifted - shifted_mean
    variance = tf.reduce_mean(tf.square(centered), axis=0)
    third_moment = tf.reduce_mean(centered**3, axis=0)
    skewness = tf.math.divide_no_nan(third_moment, variance**1.5)
    statistics = tf.stack([origin + shifted_mean, tf.sqrt(variance), skewness])
    return statistics[:, 0] if kind == "scalar" else statistics


def compute_moment_sums(normalized: tf.Tensor, kind: str) -> tf.Tensor:
    """The moment vector of one client, in any graph (layout in the module's docstring).

    Args:
      normalized: values in [-1, 1] (`privacy.normalize_features`), shape (examples, *features), feature axes known.
      kind: 'scalar' or 'per_feature'.

    Returns:
      float64, shape (1 + 3 * columns,).
    """
    values = _as_columns(normalized, kind)
    num_examples = tf.cast(tf.shape(normalized)[0], tf.float64)
    values_in_sample = math.prod(normalized.shape[1:]) if kind == "scalar" else 1
    sums = [tf.reduce_sum(values**power, axis=0) / values_in_sample for power in (1, 2, 3)]
    return tf.concat([num_examples[tf.newaxis], *sums], axis=0)


def count_examples(moments: np.ndarray) -> np.ndarray:
    """The numbers of examples that noisy moment vectors tell, at least 1: every client has an example.

    Args:
      moments: finite, shape (..., 1 + 3 * columns).

    Returns:
      float64, shape (...): no whole numbers.
    """
    return np.maximum(np.asarray(moments, np.float64)[..., 0], 1.0)


def statistics_from_moments(moments: np.ndarray, kind: str) -> np.ndarray:
    """The statistics of Eq. (1) of one client from its noisy moment vector; never NaN or infinite.

    The count is at least 1 (`count_examples`) and the raw moments are clipped to what values in [-1, 1] can have. With
    raw moments m1, m2, m3: variance = m2 - m1^2, floored at 0; third central moment = m3 - 3 m1 m2 + 2 m1^3. The
    skewness is 0 where the variance is at most `MINIMUM_VARIANCE`, and no larger than values in [-1, 1] allow: such
    values lie at most 2 from their mean, so the third central moment is at most twice the variance.

    Args:
      moments: finite, shape (1 + 3 * columns,), of values in [-1, 1].
      kind: 'scalar' or 'per_feature'.

    Returns:
      float64, shape (3,) for 'scalar', (3, columns) for 'per_feature': mean, standard deviation, skewness of u.
    """
    moments = np.asarray(moments, np.float64)
    first, second, third = moments[1:].reshape(3, -1) / count_examples(moments)
    first, second, third = np.clip(first, -1, 1), np.clip(second, 0, 1), np.clip(third, -1, 1)
    variance = np.maximum(second - first**2, 0)
    third_central = np.clip(third - 3 * first * second + 2 * first**3, -2 * variance, 2 * variance)
    is_spread = variance > MINIMUM_VARIANCE
    skewness = np.where(is_spread, third_central / np.where(is_spread, variance, 1.0) ** 1.5, 0.0)
    statistics = np.stack([first, np.sqrt(variance), skewness])
    return statistics[:, 0] if kind == "scalar" else statistics


def standardize(statistics: np.ndarray) -> np.ndarray:
    """Scales each column to mean 0 and variance 1 over the clients; a column that is constant becomes 0.

    Args:
      statistics: finite, shape (clients, columns).

    Returns:
      float64, same shape.
    """
    statistics = np.asarray(statistics, np.float64)
    largest = np.abs(statistics).max(axis=0)
    scaled = statistics / np.where(largest > 0, largest, 1.0)  # so that squares of tiny values do not vanish
    centered = scaled - scaled.mean(axis=0)
    deviation = np.sqrt(np.mean(centered**2, axis=0))
    is_constant = deviation <= RELATIVE_TOLERANCE
    return np.where(is_constant, 0.0, centered / np.where(is_constant, 1.0, deviation))


def project_to_plane(standardized: np.ndarray) -> np.ndarray:
    """The clients' first two principal components, for plots.

    A component's sign is free: it is chosen so that the column with the largest weight in it counts as positive.
    Components that do not exist (one client, one column) are 0.

    Args:
      standardized: shape (clients, columns).

    Returns:
      float64, shape (clients, 2).
    """
    centered = standardized - standardized.mean(axis=0)
    _, _, components = np.linalg.svd(centered, full_matrices=False)
    components = components[:2]
    largest = np.abs(components).argmax(axis=1)
    signs = np.where(components[np.arange(len(components)), largest] < 0, -1.0, 1.0)
    plane = np.zeros((len(standardized), 2))
    plane[:, : len(components)] = centered @ (components * signs[:, np.newaxis]).T
    return plane
