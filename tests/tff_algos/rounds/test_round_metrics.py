"""The scalars of a round, as TFF gives them and as they are written down."""

import math

import numpy as np

from tff_algos.protocol import COMMON_METRICS
from tff_algos.rounds.aggregation import RoundTotals
from tff_algos.rounds.round_metrics import build_common_metrics


def build_metrics(loss_sum, num_trained):
    totals = RoundTotals(np.float32(loss_sum), np.float32(num_trained), np.int32(2), np.float32(1), np.float32(3))
    return build_common_metrics(totals, np.float64(1.5), num_clients=4, bytes_down=np.int64(60), bytes_up=30)


def test_the_loss_is_the_mean_over_trained_examples():
    """A loss of 6 over 8 examples."""
    metrics = build_metrics(6, 8)
    assert tuple(metrics) == COMMON_METRICS
    assert list(metrics.values()) == [1.5, 4, 2, 60, 30, 0.75]
    assert {type(value) for value in metrics.values()} == {int, float}, "NumPy's numbers would not go into JSON"


def test_without_a_trained_example_the_loss_is_nan():
    assert math.isnan(build_metrics(0, 0)["train_loss"])
