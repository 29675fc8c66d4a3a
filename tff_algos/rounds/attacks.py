"""What attackers send in place of their updates. They are on the host by then, and no aggregator has seen them.

| attack | what an attacker sends |
|---|---|
| `label_flip` | the update that it has trained, honestly, on the labels classes - 1 - y (its files hold these) |
| `sign_flip` | minus `attack_scale` times its update |
| `gaussian` | noise of the deviation `attack_deviation` on every weight |
| `alie` | mean - z * deviation of the attackers' own updates, of each weight alone: a little is enough |

ALIE is Baruch, Baruch and Goldberg 2019. Of n clients m attack. s = floor(n / 2 + 1) - m honest ones make a majority
with them, so z is the largest with Phi(z) <= (n - m - s) / (n - m): s honest clients are still farther out. n and m are
those of the group in the round. The paper assumes an attacking minority; z is 0 where the formula gives less, and s is
at least 1. The deviation is that of the attackers alone (divided by m), who see no other client, so a single attacker
sends its own update.

Of an attacker only the update is forged. Its weight is what it would be, and what else the algorithm sends (sums, what
the client keeps) is honest. A forged update is not rounded by `compression_bits`.
"""

import dataclasses
import math
import zlib
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from datasets.federated_data import FederatedData
from tff_algos.client.cohort import ClientInput
from tff_algos.client.local_training import LocalResult
from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.settings.aggregation import ALIE, GAUSSIAN, SIGN_FLIP, AttackConfig
from tff_algos.simulation.attackers import draw_attackers

MOST_NAMED = 10


@dataclasses.dataclass(frozen=True, eq=False)
class Attack:
    """The attackers of a run and what they do.

    Attributes:
      config: the settings.
      clients: indices of the attackers, ascending.
      paths: prefixes of the attackers' files, by which a round knows them.
    """

    config: AttackConfig
    clients: np.ndarray
    paths: frozenset[str]

    def describe(self, data: FederatedData) -> str:
        """The line that a run says before its first round."""
        named = ", ".join(data.clients[i].name for i in self.clients[:MOST_NAMED])
        more = f" and {len(self.clients) - MOST_NAMED} others" if len(self.clients) > MOST_NAMED else ""
        return (
            f"attack   {self.config.attack} by {len(self.clients)} of {len(data.clients)} clients ({named}{more}); "
            "results over clients leave them out"
        )

    def forge(self, updates: Sequence[ClientUpdate], clients: Sequence[ClientInput]) -> list[ClientUpdate]:
        """The updates of a round as the server gets them; `clients` is what each was told, in the same order."""
        if not self.config.forges_updates:
            return list(updates)
        with np.errstate(over="ignore", invalid="ignore"):  # too large a number is told as a rejected update is
            return self._forge(list(updates), clients)

    def _forge(self, updates: list[ClientUpdate], clients: Sequence[ClientInput]) -> list[ClientUpdate]:
        # By path: what clients are told has no index, and a client may come twice.
        attackers = [i for i, told in enumerate(clients) if told.path in self.paths]
        if self.config.attack == ALIE:
            for group in {int(updates[i].group) for i in attackers}:
                self._forge_alike(updates, [i for i in attackers if int(updates[i].group) == group], group)
            return updates
        for i in attackers:
            updates[i] = _put(updates[i], self._forge_alone(updates[i].result, clients[i].seed))
        return updates

    def _forge_alone(self, result: LocalResult, seed: np.ndarray) -> list[np.ndarray]:
        deltas = [np.asarray(delta) for delta in result.weights_delta]
        if self.config.attack == SIGN_FLIP:
            return [-np.float32(self.config.attack_scale) * delta for delta in deltas]
        assert self.config.attack == GAUSSIAN
        # The client's seed is of this round and purpose, and of the slot of the model that it has trained.
        generator = np.random.default_rng([*np.asarray(seed).view(np.uint32), zlib.crc32(b"attack")])
        return [generator.normal(0, self.config.attack_deviation, delta.shape).astype(np.float32) for delta in deltas]

    def _forge_alike(self, updates: list[ClientUpdate], attackers: Sequence[int], group: int) -> None:
        # A diverged update is zeros, which would pull the mean that the others hide behind.
        known = [updates[i].result.weights_delta for i in attackers if bool(updates[i].result.is_finite)]
        if not known:
            return
        num_clients = sum(int(update.group) == group for update in updates)
        z = self.config.attack_z or compute_alie_z(num_clients, len(attackers))
        forged = [forge_alie(np.stack(rows), z) for rows in zip(*known, strict=True)]
        for i in attackers:
            updates[i] = _put(updates[i], forged)


def compute_alie_z(num_clients: int, num_attackers: int) -> float:
    """The z of a little is enough (see the module) for a round of n clients, m of which attack; at least 0."""
    num_honest = num_clients - num_attackers
    supporters = max(num_clients // 2 + 1 - num_attackers, 1)
    share = (num_honest - supporters) / num_honest if num_honest else 0.0
    return max(float(ndtri(share)), 0.0) if share > 0 else 0.0


def forge_alie(known: np.ndarray, z: float) -> np.ndarray:
    """mean - z * deviation over axis 0, (attackers, *shape) to (*shape), float32; float64 inside."""
    # In float64: a variance of updates of 1e20 overflows float32.
    known = known.astype(np.float64)
    return (known.mean(axis=0) - z * known.std(axis=0)).astype(np.float32)


def _put(update: ClientUpdate, deltas: Sequence[np.ndarray]) -> ClientUpdate:
    """The update with other weights. One that is not finite is left out, as an honest client's would be."""
    squared_norm = np.float32(min(sum(float(np.sum(np.square(delta, dtype=np.float64))) for delta in deltas), math.inf))
    is_finite = np.isfinite(squared_norm)
    sent = tuple(np.asarray(delta, np.float32) if is_finite else np.zeros_like(delta) for delta in deltas)
    result = update.result._replace(
        weights_delta=sent, squared_norm=squared_norm if is_finite else np.float32(0), is_finite=np.bool_(is_finite)
    )
    return update._replace(result=result)


def build_attack(config: AttackConfig, clients: FederatedData, seed: int) -> Attack | None:
    """The attack that the settings ask for; None if nobody attacks."""
    attackers = draw_attackers(config, len(clients.clients), seed)
    if not attackers.size:
        return None
    return Attack(config, attackers, frozenset(clients.clients[i].prefix for i in attackers))
