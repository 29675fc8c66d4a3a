"""Who attacks. NumPy only."""

import math

import numpy as np

from tff_algos.seeds import derive_generator
from tff_algos.settings.aggregation import AttackConfig


def draw_attackers(config: AttackConfig, num_clients: int, seed: int) -> np.ndarray:
    """Indices of the clients that attack in every round, ascending, int64; none without an attack.

    There are ceil(share * clients), but at least one client is honest.

    Args:
      config: the attack.
      num_clients: of the federation, without new clients.
      seed: the run's.
    """
    if not config.is_active:
        return np.zeros(0, np.int64)
    wanted = math.ceil(config.attack_share * num_clients - 1e-9)  # 0.07 * 100 is 7.000000000000001
    generator = derive_generator(seed, "attackers")
    # One client is honest, or nothing would be left to attack.
    return np.sort(generator.choice(num_clients, min(wanted, num_clients - 1), replace=False)).astype(np.int64)
