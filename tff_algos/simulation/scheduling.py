"""Which of the ready devices may send their update (Hu et al. 2021, section III-A). NumPy only.

A policy is one function (ready devices, context, generator) -> min(R, ready) of them; a new one is a function and a row
of `POLICIES`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tff_algos.settings.asynchronous import FREQUENCY, RANDOM, SIGNIFICANCE


class SchedulingContext(NamedTuple):
    """What a policy may look at.

    Attributes:
      max_scheduled: R, at least 1.
      counts: c_k(t) of Eq. (12), how often each device has been scheduled, int64, shape (clients,).
      update_norms: of Eq. (11), |trained - start|_2, shape (clients,); only those of ready devices are read. None if
        the policy needs no updates.
    """

    max_scheduled: int
    counts: np.ndarray
    update_norms: np.ndarray | None = None


class Policy(NamedTuple):
    """A policy, and whether it has to see the updates: if not, devices need not be trained before they are scheduled.

    `choose` gets more than R ready devices, ascending, and returns R of them in any order.
    """

    choose: Callable[[np.ndarray, SchedulingContext, np.random.Generator], np.ndarray]
    needs_updates: bool


def choose_at_random(ready: np.ndarray, context: SchedulingContext, generator: np.random.Generator) -> np.ndarray:
    """R of the ready devices, each set equally likely."""
    return generator.choice(ready, context.max_scheduled, replace=False)


def choose_most_significant(
    ready: np.ndarray, context: SchedulingContext, generator: np.random.Generator
) -> np.ndarray:
    """The R with the largest updates, Eq. (11); ties by index. A norm that is not finite (it diverged) comes last."""
    # A diverged update is never worth a slot while another device is ready.
    norms = np.asarray(context.update_norms, np.float64)[ready]
    order = np.argsort(-np.where(np.isfinite(norms), norms, -1.0), kind="stable")
    return ready[order[: context.max_scheduled]]


def choose_least_frequent(ready: np.ndarray, context: SchedulingContext, generator: np.random.Generator) -> np.ndarray:
    """The R least often scheduled, Eq. (12); ties at random."""
    # `lexsort` sorts by its last key first; the random key decides between equal counts.
    order = np.lexsort((generator.random(len(ready)), context.counts[ready]))
    return ready[order[: context.max_scheduled]]


POLICIES = {
    RANDOM: Policy(choose_at_random, needs_updates=False),
    SIGNIFICANCE: Policy(choose_most_significant, needs_updates=True),
    FREQUENCY: Policy(choose_least_frequent, needs_updates=False),
}


def schedule(name: str, ready: np.ndarray, context: SchedulingContext, generator: np.random.Generator) -> np.ndarray:
    """The scheduled devices, min(R, ready) of them: int64, ascending. If R is enough for all, the policy is not asked.

    Args:
      name: of the policy, in `POLICIES`.
      ready: indices of the ready devices, each once, in any order.
      context: what the policy may look at.
      generator: derived for this aggregation.
    """
    # Sorted first, so that what a policy draws does not depend on the order in which devices were found.
    ready = np.sort(np.asarray(ready, np.int64))
    if len(ready) <= context.max_scheduled:
        return ready
    return np.sort(POLICIES[name].choose(ready, context, generator))


def count_scheduled(counts: np.ndarray, scheduled: np.ndarray) -> np.ndarray:
    """c_k(t + 1) of Eq. (12), int64, shape (clients,)."""
    counts = counts.copy()
    counts[scheduled] += 1
    return counts
