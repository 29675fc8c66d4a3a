"""What attackers send, against numbers worked out by hand."""

import types
import warnings

import numpy as np
import pytest

from tff_algos.client.cohort import NOBODY
from tff_algos.client.local_training import LocalResult
from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.rounds.attacks import Attack, build_attack, compute_alie_z
from tff_algos.settings.aggregation import AttackConfig


def make_update(values, group=0, is_finite=True):
    values = np.asarray(values, np.float32)
    deltas = (values[:2], values[2])
    squared_norm = np.float32(min(np.sum(values.astype(float) ** 2), 1e38))
    result = LocalResult(deltas, squared_norm, np.float32(5), np.float32(4), np.bool_(is_finite))
    return ClientUpdate(result, np.int32(group), np.float32(7))


def make_clients(number):
    return [NOBODY._replace(path=f"client_{i}", seed=np.array([i, -i], np.int32)) for i in range(number)]


def forge(attack, updates, attackers, **settings):
    named = frozenset(f"client_{i}" for i in attackers)
    made = Attack(AttackConfig(attack, **settings), np.array(attackers), named)
    return made.forge(updates, make_clients(len(updates)))


def read(update):
    return np.array([*update.result.weights_delta[0], update.result.weights_delta[1]])


def test_sign_flip_sends_the_update_times_minus_the_scale():
    updates = [make_update([1, 2, 3]), make_update([1, -1, 2])]
    honest, forged = forge("sign_flip", updates, [1], attack_scale=2.0)
    assert honest is updates[0]
    np.testing.assert_array_equal(read(forged), [-2, 2, -4])
    assert forged.result.squared_norm == 24 and forged.result.is_finite
    # What it claims of itself stays.
    assert (forged.weight, forged.group, forged.result.loss_sum, forged.result.num_trained) == (7, 0, 5, 4)


@pytest.mark.parametrize(
    ("attack", "settings"),
    [
        ("sign_flip", {"attack_scale": 1e30}),
        ("gaussian", {"attack_deviation": 3e38}),
        ("alie", {"attack_z": 3e38}),
    ],
)
def test_an_update_that_becomes_too_large_is_left_out_without_a_warning(attack, settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forged = forge(attack, [make_update([1e9, 1, 1]), make_update([-1e9, 2, 3])], [0, 1], **settings)
    for each in forged:
        assert not each.result.is_finite and each.result.squared_norm == 0 and not read(each).any()


def test_noise_has_the_deviation_and_follows_from_the_clients_seed():
    def draw(deviation):
        # Many weights, so that the sample's deviation is known to a percent.
        large = LocalResult((np.zeros(10_000, np.float32),), 0, 0, 0, np.bool_(True))
        updates = [ClientUpdate(large, np.int32(0), np.float32(1))] * 3
        return [each.result.weights_delta[0] for each in forge("gaussian", updates, [0, 2], attack_deviation=deviation)]

    first, honest, last = draw(3.0)
    assert first.dtype == np.float32 and abs(first.std() - 3) < 0.1 and abs(first.mean()) < 0.15
    assert not honest.any() and not np.array_equal(first, last)
    np.testing.assert_array_equal(draw(3.0)[0], first)


def test_a_little_is_enough_by_hand():
    """Two attackers with 1 and 3 in a weight: mean 2, deviation 1; z = 0.5 gives 1.5."""
    updates = [make_update(values) for values in ([1, 0, 4], [9, 9, 9], [3, 0, 8])]
    forged = forge("alie", updates, [0, 2], attack_z=0.5)
    assert forged[1] is updates[1]
    for each in (forged[0], forged[2]):
        np.testing.assert_allclose(read(each), [1.5, 0, 5])  # mean 6, deviation 2


@pytest.mark.parametrize(
    ("num_clients", "num_attackers", "z"),
    [
        (50, 10, 0.2533471),  # s = 26 - 10 = 16 and Phi(z) = (40 - 16) / 40 = 0.6
        (50, 24, 1.4260769),  # s = 2 and Phi(z) = 24 / 26
        (3, 1, 0),  # Phi(z) = 0.5
        (4, 1, 0),  # less than one half
        (2, 2, 0),  # nobody else
        (1, 1, 0),
        (10, 7, 0.4307273),  # a majority: s is 1 and Phi(z) = 2 / 3
    ],
)
def test_the_z_of_the_paper_by_hand(num_clients, num_attackers, z):
    assert compute_alie_z(num_clients, num_attackers) == pytest.approx(z)


@pytest.mark.parametrize(
    ("updates", "attackers", "expected"),
    [
        ([([1, 2, 3],), ([5, 5, 5],)], [0], [[1, 2, 3], [5, 5, 5]]),  # a single one has no deviation to hide in
        ([([1] * 3,), ([3] * 3,), ([8] * 3, 1)], [0, 1, 2], [[1] * 3, [1] * 3, [8] * 3]),  # each group alone
        ([([1] * 3,), ([0] * 3, 0, False), ([3] * 3,)], [0, 1, 2], [[1] * 3] * 3),  # finite updates alone are known
    ],
)
def test_what_attackers_know_of_each_other(updates, attackers, expected):
    """At z = 1; all send, those whose own update is not finite as well."""
    forged = forge("alie", [make_update(*each) for each in updates], attackers, attack_z=1.0)
    assert [read(each).tolist() for each in forged] == expected and all(each.result.is_finite for each in forged)
    # Nothing is known to forge from, so it stays as it is.
    broken = make_update([0, 0, 0], is_finite=False)
    for attack in ("alie", "label_flip"):  # who flips labels sends what was trained
        assert forge(attack, [broken], [0]) == [broken]


def test_a_run_says_who_attacks():
    clients = tuple(types.SimpleNamespace(prefix=f"place_{i}", name=f"client_{i}") for i in range(20))
    data = types.SimpleNamespace(clients=clients)
    attack = build_attack(AttackConfig("alie", 0.1), data, 1)
    first, second = attack.clients
    assert attack.paths == {f"place_{first}", f"place_{second}"}
    assert attack.describe(data).startswith(f"attack   alie by 2 of 20 clients (client_{first}, client_{second}); ")
    assert "and 5 others" in build_attack(AttackConfig("alie", 0.75), data, 1).describe(data)
    assert build_attack(AttackConfig("alie", 0.0), data, 1) is None and build_attack(AttackConfig(), data, 1) is None
