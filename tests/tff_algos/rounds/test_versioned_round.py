"""Updates that came back to the host, averaged by hand."""

import numpy as np

from tff_algos.client.local_training import LocalResult
from tff_algos.rounds.versioned_round import average_updates, compute_update_norms


def make_result(delta, loss_sum=1.0, num_trained=2.0):
    delta = np.float32(delta)
    if not np.isfinite(delta).all():
        zero = np.float32(0)
        return LocalResult((np.zeros_like(delta),), zero, zero, zero, np.bool_(False))
    return LocalResult(
        (delta,), np.float32(np.sum(delta**2)), np.float32(loss_sum), np.float32(num_trained), np.bool_(True)
    )


def test_the_mean_is_over_the_finite_updates():
    """(1 * [3, 4] + 3 * [7, 0]) / 4 = [6, 1]; the second diverged."""
    results = [make_result([3, 4]), make_result([np.nan, 1]), make_result([7, 0], loss_sum=5.0, num_trained=4.0)]
    averaged = average_updates(results, np.array([1.0, 9.0, 3.0]))
    assert [mean.numpy().tolist() for mean in averaged.mean_update] == [[6.0, 1.0]]
    assert averaged.is_finite.numpy().tolist() == [1.0, 0.0, 1.0]
    totals = averaged.totals
    assert (float(totals.loss_sum), float(totals.num_trained), int(totals.num_rejected)) == (6.0, 6.0, 1)


def test_without_a_finite_update_the_mean_is_zero():
    averaged = average_updates([make_result([np.inf, 1])], np.array([1.0]))
    assert averaged.mean_update[0].numpy().tolist() == [0.0, 0.0]
    assert averaged.is_finite.numpy().tolist() == [0.0]


def test_norms_and_the_diverged():
    norms = compute_update_norms([make_result([3, 4]), make_result([np.nan, 0])])
    assert norms[0] == 5 and np.isnan(norms[1])
