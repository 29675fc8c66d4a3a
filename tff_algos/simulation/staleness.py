"""Weights by staleness of asynchronous aggregation (Xie et al. 2019), and FedAsync's mixing weight. NumPy only.

FedAsync's server sets x_t = (1 - alpha_t) x_{t-1} + alpha_t x_new with alpha_t = alpha * s(t - tau). Here the staleness
t - tau is the number of updates that the server mixed in between the device's start and its arrival. An update that no
other overtook thus has staleness 0 and weight alpha.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tff_algos.settings.asynchronous import CONSTANT, HINGE, POLYNOMIAL
from tff_algos.settings.config_fields import ConfigError


class StalenessParameters(NamedTuple):
    """a and b of the paper, both at least 0: `decay` of polynomial and hinge; `grace`, up to which hinge is 1."""

    decay: float
    grace: float


def compute_constant(staleness: np.ndarray, parameters: StalenessParameters) -> np.ndarray:
    """s(d) = 1."""
    return np.ones_like(staleness)


def compute_polynomial(staleness: np.ndarray, parameters: StalenessParameters) -> np.ndarray:
    """s(d) = (d + 1)^-a."""
    return (staleness + 1.0) ** -parameters.decay


def compute_hinge(staleness: np.ndarray, parameters: StalenessParameters) -> np.ndarray:
    """s(d) = 1 if d <= b, else 1 / (a (d - b) + 1)."""
    return 1.0 / (parameters.decay * np.maximum(staleness - parameters.grace, 0.0) + 1.0)


STALENESS_FUNCTIONS: dict[str, Callable[[np.ndarray, StalenessParameters], np.ndarray]] = {
    CONSTANT: compute_constant,
    POLYNOMIAL: compute_polynomial,
    HINGE: compute_hinge,
}


def compute_mixing_weight(
    alpha: float, staleness: np.ndarray | int, function: str, parameters: StalenessParameters
) -> np.ndarray:
    """alpha_t = alpha * s(staleness), float64, in (0, alpha], the shape of `staleness`.

    Args:
      alpha: mixing weight of a fresh update, in (0, 1].
      staleness: updates mixed in since the device started, at least 0.
      function: a name in `STALENESS_FUNCTIONS`.
      parameters: of that function.

    Raises:
      ConfigError: there is no such function; the message lists the functions.
      ValueError: a staleness is below 0.
    """
    if function not in STALENESS_FUNCTIONS:
        raise ConfigError("staleness", function, "one of " + ", ".join(STALENESS_FUNCTIONS))
    staleness = np.asarray(staleness, np.float64)
    if (staleness < 0).any():
        raise ValueError("a staleness below 0: expected updates mixed in since the device started")
    return alpha * STALENESS_FUNCTIONS[function](staleness, parameters)
