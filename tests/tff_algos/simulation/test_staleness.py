"""Mixing weights by hand."""

import numpy as np
import pytest

from tff_algos.settings.config_fields import ConfigError
from tff_algos.simulation.staleness import STALENESS_FUNCTIONS, StalenessParameters, compute_mixing_weight

STALENESS = np.array([0, 3, 4, 8])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("constant", [0.6, 0.6, 0.6, 0.6]),
        ("polynomial", [0.6, 0.6 / 2, 0.6 / 5**0.5, 0.6 / 3]),  # (d + 1)^-0.5
        ("hinge", [0.6, 0.6, 0.6 / 1.5, 0.6 / 3.5]),  # 1 / (0.5 (d - 3) + 1) from 3 on
    ],
)
def test_weights_by_hand(function, expected):
    weights = compute_mixing_weight(0.6, STALENESS, function, StalenessParameters(decay=0.5, grace=3.0))
    np.testing.assert_allclose(weights, expected)
    assert weights.dtype == np.float64


@pytest.mark.parametrize("function", STALENESS_FUNCTIONS)
def test_fresh_updates_weigh_alpha_and_staler_ones_never_more(function):
    weights = compute_mixing_weight(0.9, np.arange(50), function, StalenessParameters(decay=2.0, grace=4.0))
    assert weights[0] == 0.9 and (np.diff(weights) <= 0).all() and (weights > 0).all()
    constant = compute_mixing_weight(0.9, np.arange(50), function, StalenessParameters(decay=0.0, grace=4.0))
    assert (constant == 0.9).all()


def test_wrong_requests_are_errors():
    with pytest.raises(ConfigError, match="staleness=linear: expected one of constant, polynomial, hinge"):
        compute_mixing_weight(0.5, 1, "linear", StalenessParameters(1.0, 1.0))
    with pytest.raises(ValueError, match="below 0"):
        compute_mixing_weight(0.5, -1, "constant", StalenessParameters(1.0, 1.0))
