"""The scalars of a round, as TFF gives them and as they are written down."""

import math

import numpy as np

from tff_algos.protocol import COMMON_METRICS, ClientWork
from tff_algos.rounds.aggregation import RoundTotals, build_common_metrics, sum_bytes


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


def test_the_bytes_of_all_parts_are_summed_each_over_its_own_clients():
    """Two clients get 10 each and send 1 and 2; three get 100, 200 and 300; one sends 7."""
    works = [
        ClientWork(np.array([0, 3]), bytes_down=10, bytes_up=np.array([1, 2])),
        ClientWork(np.arange(3), bytes_down=np.array([100, 200, 300])),
        ClientWork(np.array([2]), bytes_up=7),
        ClientWork(np.zeros(0, int), bytes_down=50, bytes_up=np.zeros(0)),
    ]
    assert sum_bytes(works) == (620, 10)
