"""Who is scheduled, and who attacks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tff_algos.settings.aggregation import AttackConfig
from tff_algos.simulation.attackers import draw_attackers
from tff_algos.simulation.scheduling import POLICIES, SchedulingContext, count_scheduled, schedule

READY = st.lists(st.integers(0, 19), unique=True, max_size=20).map(np.array)
NORMS = np.linspace(1, 2, 20)


def run(name, ready, max_scheduled, counts=None, norms=NORMS, seed=0):
    counts = np.zeros(20, np.int64) if counts is None else counts
    return schedule(name, ready, SchedulingContext(max_scheduled, counts, norms), np.random.default_rng(seed))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(POLICIES)), READY, st.integers(1, 25), st.integers(0, 99))
def test_the_scheduled_are_sorted_distinct_ready_devices_as_many_as_allowed(name, ready, max_scheduled, seed):
    scheduled = run(name, ready, max_scheduled, seed=seed)
    assert scheduled.dtype == np.int64 and scheduled.tolist() == sorted(set(scheduled.tolist()))
    assert set(scheduled.tolist()) <= set(ready.tolist()) and len(scheduled) == min(max_scheduled, len(ready))
    np.testing.assert_array_equal(scheduled, run(name, ready[::-1], max_scheduled, seed=seed))
    if max_scheduled >= len(ready):
        assert scheduled.tolist() == sorted(ready.tolist())


def test_significance_picks_the_largest_norms_and_a_diverged_device_last():
    norms = np.array([3.0, np.nan, 5.0, 1.0, np.inf, 5.0, 9.0])
    ready = np.array([0, 1, 2, 3, 4, 5])
    for max_scheduled, expected in ((1, [2]), (2, [2, 5]), (3, [0, 2, 5]), (4, [0, 2, 3, 5]), (5, [0, 1, 2, 3, 5])):
        assert run("significance", ready, max_scheduled, norms=norms).tolist() == expected


def test_random_reaches_every_set_and_frequency_the_least_scheduled_with_ties_at_random():
    counts = np.array([2, 0, 1, 1, 1, 0])
    sets = {tuple(run("random", np.array([3, 8, 11]), 2, seed=seed)) for seed in range(40)}
    assert sets == {(3, 8), (3, 11), (8, 11)}
    # Two have never been scheduled; the third is drawn among three.
    picks = {tuple(run("frequency", np.arange(6), 3, counts, seed=seed)) for seed in range(40)}
    assert picks == {(1, 2, 5), (1, 3, 5), (1, 4, 5)}


def test_counts_stay_balanced_with_frequency_and_not_with_random():
    spreads = {}
    for name in ("frequency", "random"):
        counts = np.zeros(20, np.int64)
        for seed in range(30):
            counts = count_scheduled(counts, run(name, np.arange(20), 7, counts, seed=seed))
            spreads[name] = counts.max() - counts.min()
            assert name == "random" or spreads[name] <= 1
        assert counts.sum() == 210
    assert spreads["random"] > 1


def test_only_significance_has_to_see_updates():
    assert [name for name, policy in POLICIES.items() if policy.needs_updates] == ["significance"]
    assert len(run("frequency", np.arange(9), 4, norms=None)) == 4


@pytest.mark.parametrize(
    ("share", "num_clients", "expected"),
    [(0.2, 50, 10), (0.07, 100, 7), (0.2, 3, 1), (0.21, 50, 11), (0.99, 5, 4), (0.5, 1, 0), (0.0, 50, 0)],
)
def test_the_share_is_rounded_up_and_somebody_stays_honest(share, num_clients, expected):
    attackers = draw_attackers(AttackConfig("alie", share), num_clients, 3)
    assert len(attackers) == expected == len(set(attackers.tolist()))
    assert attackers.tolist() == sorted(attackers) and set(attackers) <= set(range(num_clients))


def test_attackers_follow_from_the_seed_alone():
    first, other_attack, other_seed, nobody = (
        draw_attackers(AttackConfig(attack), 50, seed).tolist()
        for attack, seed in (("alie", 1), ("gaussian", 1), ("alie", 2), ("none", 1))
    )
    assert first == other_attack != other_seed and nobody == []
