"""Which clients take part in a round, drawn from its seed. Imports no TensorFlow, so that reports can draw it again."""

import numpy as np

from tff_algos.seeds import derive_generator
from tff_algos.settings.config_fields import STRATIFIED


def sample_cohort(
    num_clients: int,
    cohort_size: int,
    participation: str,
    seed: int,
    round_num: int,
    may_be_empty: bool = False,
    kinds: np.ndarray | None = None,
) -> np.ndarray:
    """Indices of the clients of a round, ascending; never empty unless it may be. A function of its arguments.

    Args:
      num_clients: of the federation.
      cohort_size: clients asked; 0, or more than there are, means all.
      participation: "fixed": exactly so many; "bernoulli": each client by chance, so many on average; "stratified": so
        many, of each kind as many as of the others.
      seed: the run's.
      round_num: 1-based.
      may_be_empty: whether bernoulli may draw nobody; what is known of private sums needs that it does.
      kinds: the archetype of each client and its meta-archetype, which only "stratified" needs, shape (clients, 2).
    """
    cohort_size = min(cohort_size or num_clients, num_clients)
    generator = derive_generator(seed, "cohort", round_num)
    if participation == STRATIFIED:
        assert kinds is not None  # the settings refuse data without archetypes
        # Shuffled first, since `order_by_kind` takes the first clients of each kind as they come.
        order = generator.permutation(num_clients)
        return np.sort(order[order_by_kind(kinds[order])[:cohort_size]])
    if participation == "bernoulli":
        # An empty cohort would be a round without a mean, so one client is drawn in that case.
        drawn = np.flatnonzero(generator.random(num_clients) < cohort_size / num_clients)
        if drawn.size or may_be_empty:
            return drawn
        cohort_size = 1
    return np.sort(generator.choice(num_clients, cohort_size, replace=False))


def order_by_kind(kinds: np.ndarray) -> np.ndarray:
    """An order of clients of which every beginning has as many of each kind as of the others, or nearly so.

    First comes the first client of each archetype, then the second of each, and so on. Of the firsts come the first of
    each meta-archetype, then the second of each, and so on. Else the clients stay in the order in which they are given.

    Args:
      kinds: the archetype of each client and its meta-archetype, shape (clients, 2).

    Returns:
      Positions, int64, shape (clients,). Among the first so many, the numbers of clients of two archetypes differ by at
      most one, those of meta-archetypes of equal size too, unless an archetype has no more clients.
    """
    archetypes, meta_archetypes = kinds.T
    turns = _count_earlier(archetypes)
    meta_turns = _count_earlier(turns * (meta_archetypes.max(initial=0) + 1) + meta_archetypes)
    return np.lexsort((meta_turns, turns))


def _count_earlier(labels: np.ndarray) -> np.ndarray:
    """How often the label of each position stands at earlier ones, int64, shape of `labels`."""
    order = np.argsort(labels, kind="stable")
    ordered, counts = labels[order], np.empty(len(labels), np.int64)
    counts[order] = np.arange(len(labels)) - np.searchsorted(ordered, ordered)
    return counts
