"""Who attacks."""

import numpy as np
import pytest

from tff_algos.settings.attack import AttackConfig
from tff_algos.simulation.attackers import draw_attackers


@pytest.mark.parametrize(
    ("share", "num_clients", "expected"),
    [(0.2, 50, 10), (0.07, 100, 7), (0.2, 3, 1), (0.21, 50, 11), (0.99, 5, 4), (0.5, 1, 0), (0.0, 50, 0)],
)
def test_the_share_is_rounded_up_and_somebody_stays_honest(share, num_clients, expected):
    attackers = draw_attackers(AttackConfig("alie", share), num_clients, 3)
    assert len(attackers) == expected == len(set(attackers.tolist()))
    assert attackers.tolist() == sorted(attackers) and set(attackers) <= set(range(num_clients))


def test_they_follow_from_the_seed_alone():
    drawn = [
        draw_attackers(AttackConfig(attack), 50, seed) for attack, seed in (("alie", 1), ("gaussian", 1), ("alie", 2))
    ]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert drawn[0].tolist() != drawn[2].tolist()
    assert not draw_attackers(AttackConfig(), 50, 1).size
