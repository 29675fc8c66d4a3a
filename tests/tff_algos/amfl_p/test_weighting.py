"""The weights of devices by hand (section 3.4)."""

import math

import pytest
import tensorflow as tf

from tff_algos.amfl_p.meta_round import compute_quality, compute_unnormalized_weight

LOG_2 = math.log(2)


def weigh(weighting, loss=LOG_2, resource=0.5, num_examples=40.0):
    """A device with Q = 1/2, R = 1/2 and 40 examples."""
    return float(compute_unnormalized_weight(weighting, *map(tf.constant, (loss, resource, num_examples))))


@pytest.mark.parametrize(
    ("weighting", "expected"),
    [("adaptive", 0.25), ("quality", 0.5), ("resource", 0.5), ("examples", 40.0), ("equal", 1.0)],
)
def test_weights_by_hand(weighting, expected):
    assert weigh(weighting) == pytest.approx(expected)


def test_each_factor_counts_where_it_should():
    for weighting in ("adaptive", "quality"):
        assert weigh(weighting, loss=math.log(4)) == pytest.approx(weigh(weighting) / 2)
    for weighting in ("adaptive", "resource"):
        assert weigh(weighting, resource=0.25) == pytest.approx(weigh(weighting) / 2)
    for weighting in ("resource", "examples", "equal"):
        assert weigh(weighting, loss=9.0) == weigh(weighting)


def test_quality_of_a_perfect_and_of_a_hopeless_device():
    assert float(compute_quality(tf.constant(0.0))) == 1
    assert float(compute_quality(tf.constant(1000.0))) == 0
