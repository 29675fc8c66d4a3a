"""Clients of a few kinds (archetypes): each kind has its own shares of the labels, and all draw from common pools.

Source: Kopparapu, Lin and Zhao, FedCD: Improving Performance in non-IID Federated Learning, 2020, sections 3.1 to 3.3.

hierarchical    One archetype for each label; the lower and the upper half of the labels are two meta-archetypes. A
                share b of a client's examples has its archetype's label; each of the other L - 1 labels of its
                meta-archetype has the share (1 - b) / (L - 1). b ~ U(bias_min, bias_max) is drawn for each client,
                since the paper speaks of a device's bias. b = 1 / L is the IID case within a meta-archetype.
hypergeometric  Six archetypes, K in 5, 25, ..., 105. The share of label l is the chance of l successes in n draws
                without replacement from N = 110, of which K are successes: C(K, l) C(N - K, n - l) / C(N, n).

Deviations from the paper: its n = 10 has eleven outcomes for ten labels. Here n is one less than the number of labels,
so that archetypes K and N - K mirror each other. With n = 10 the outcome without a label is added to the last one or,
as in the authors' code (github.com/jessijzhao/FedCD, commit cea256a), dropped; the other shares are then divided by
their sum, so that a client has as many examples all the same. A client has the expected number of each label, not a
random one: the largest remainders are rounded up, and of equal ones that of the lowest label.

Pools: a stratified part of the train part, by default a fifth, is for the validation splits, the rest of it for
training, and the test part for the clients' own test splits. Each client draws from a pool without replacement,
independently of other clients. So clients may share examples, as 30 clients of 5,000 images must when there are 40,000;
but what one trains on, none validates on. (In the authors' code the two splits overlap.)
"""

import math

import numpy as np

from datasets.arrays import ArrayDataset, hold_out_test_part
from datasets.errors import DatasetError
from datasets.federated_data import SPLITS, Archetypes
from datasets.partition_settings import CLIENTS_PER_ARCHETYPE, DROP, MERGE, ArchetypeSettings

POPULATION = 110
SUCCESSES = (5, 25, 45, 65, 85, 105)


def compute_hierarchical_shares(archetype: int, bias: float, num_classes: int) -> np.ndarray:
    """A client's shares of the labels: `bias` for its archetype's label, the rest evenly over the others of its half.

    Args:
      archetype: its label.
      bias: b, in [0, 1].
      num_classes: even, at least 4.

    Returns:
      float64, shape (classes,), sums to 1.
    """
    half = num_classes // 2
    shares = np.zeros(num_classes)
    first = archetype // half * half
    shares[first : first + half] = (1 - bias) / (half - 1)
    shares[archetype] = bias
    return shares


def compute_hypergeometric_shares(
    successes: int, draws: int, num_classes: int, last_outcome: str = MERGE
) -> np.ndarray:
    """Shares of the labels by the hypergeometric distribution.

    Args:
      successes: K of N = 110.
      draws: n.
      num_classes: at most n + 1.
      last_outcome: whether outcomes above the last label are added to it ("merge"), or left out of shares that are then
        divided by their sum ("drop").

    Returns:
      float64, shape (classes,), sums to 1.
    """
    outcomes = [
        math.comb(successes, outcome) * math.comb(POPULATION - successes, draws - outcome)
        for outcome in range(draws + 1)
    ]
    last = num_classes - 1
    if last_outcome == DROP:
        return np.array(outcomes[:num_classes]) / sum(outcomes[:num_classes])
    return np.array([*outcomes[:last], sum(outcomes[last:])]) / math.comb(POPULATION, draws)


def apportion(num_examples: int, shares: np.ndarray) -> np.ndarray:
    """Whole numbers that sum to `num_examples`, as near as possible to `num_examples * shares`.

    All are rounded down first; then those with the largest remainders are rounded up until the sum is right.

    Args:
      num_examples: at least 0.
      shares: sum to 1, shape (classes,).

    Returns:
      int64, shape (classes,); of equal remainders the lowest label's is rounded up.
    """
    exact = num_examples * shares
    # A product that should be 500 may be 499.99999999999994.
    counts = np.floor(exact + 1e-9).astype(np.int64)
    # Equal remainders may differ in their last digits.
    order = np.argsort(-np.round(exact - counts, 9), kind="stable")
    counts[order[: num_examples - counts.sum()]] += 1
    return counts


def describe_archetypes(partition: str, class_names: tuple[str, ...], settings: ArchetypeSettings) -> Archetypes:
    """The archetypes of a partition and who belongs to which; clients of one archetype are side by side.

    Args:
      partition: one of `ARCHETYPE_PARTITIONS`.
      class_names: one name a label.
      settings: says how many clients an archetype has.

    Raises:
      DatasetError: the partition does not fit the number of labels.
    """
    num_classes = len(class_names)
    if partition == "hierarchical":
        if num_classes < 4 or num_classes % 2:
            raise DatasetError(
                f"partition=hierarchical: {num_classes} labels, expected an even number of at least 4, of which each "
                f"half is a meta-archetype; choose another --partition"
            )
        names = class_names
        meta_archetypes = tuple(label // (num_classes // 2) for label in range(num_classes))
    else:
        draws = settings.hypergeometric_draws
        if draws + 1 not in (num_classes, num_classes + 1):
            raise DatasetError(
                f"hypergeometric_draws={draws}: expected {num_classes - 1} for {num_classes} labels, or {num_classes} "
                f"with the last two outcomes merged or the last one dropped"
            )
        if settings.hypergeometric_last_outcome == DROP and draws < num_classes:
            raise DatasetError(
                f"hypergeometric_last_outcome={DROP}: each of the {draws + 1} outcomes has a label; expected {MERGE}, "
                f"or --hypergeometric_draws={num_classes}"
            )
        names = tuple(f"K={successes}" for successes in SUCCESSES)
        meta_archetypes = (0,) * len(names)
    num_clients = settings.clients_per_archetype or CLIENTS_PER_ARCHETYPE[partition]
    of_clients = tuple(archetype for archetype in range(len(names)) for _ in range(num_clients))
    return Archetypes(names, meta_archetypes, of_clients)


def compute_client_shares(
    partition: str, archetypes: Archetypes, num_classes: int, settings: ArchetypeSettings, seed: int
) -> np.ndarray:
    """Each client's shares of the labels, float64, shape (clients, classes).

    Args:
      partition: one of `ARCHETYPE_PARTITIONS`.
      archetypes: who belongs to which.
      num_classes: number of labels.
      settings: the range of the biases, or the number of draws.
      seed: draws the biases.
    """
    if partition == "hierarchical":
        biases = np.random.default_rng([seed, 6]).uniform(
            settings.bias_min, settings.bias_max, len(archetypes.of_clients)
        )
        pairs = zip(archetypes.of_clients, biases.tolist(), strict=True)
        return np.array([compute_hierarchical_shares(archetype, bias, num_classes) for archetype, bias in pairs])
    draws, last_outcome = settings.hypergeometric_draws, settings.hypergeometric_last_outcome
    rows = [compute_hypergeometric_shares(successes, draws, num_classes, last_outcome) for successes in SUCCESSES]
    table = np.array(rows)
    return table[list(archetypes.of_clients)]


def count_labels(
    partition: str, archetypes: Archetypes, num_classes: int, settings: ArchetypeSettings, seed: int
) -> dict[str, np.ndarray]:
    """How many examples of each label each client has, whichever they are; arguments of `compute_client_shares`.

    Returns:
      split -> int64, shape (clients, classes).
    """
    shares = compute_client_shares(partition, archetypes, num_classes, settings, seed)
    return {
        split: np.array([apportion(getattr(settings, f"{split}_per_client"), row) for row in shares])
        for split in SPLITS
    }


def draw_clients(
    arrays: ArrayDataset, partition: str, settings: ArchetypeSettings, seed: int
) -> list[dict[str, np.ndarray]]:
    """Each client's examples: split -> ascending indices, of the test part for "test", else of the train part.

    Args:
      arrays: the data set.
      partition: one of `ARCHETYPE_PARTITIONS`.
      settings: numbers of clients and examples, biases.
      seed: draws the validation pool, the biases and the examples.

    Raises:
      DatasetError: the partition does not fit the labels, or a pool has fewer examples of a label than a client needs.
    """
    class_names, num_classes = arrays.format.class_names, arrays.format.num_classes
    archetypes = describe_archetypes(partition, class_names, settings)
    counts = count_labels(partition, archetypes, num_classes, settings, seed)
    train, validation = hold_out_test_part(arrays.train_y, settings.validation_pool, seed)
    labels = {"train": arrays.train_y[train], "validation": arrays.train_y[validation], "test": arrays.test_y}
    indices = {"train": train, "validation": validation, "test": np.arange(len(arrays.test_y))}
    pools = {split: [indices[split][labels[split] == label] for label in range(num_classes)] for split in SPLITS}
    for split in SPLITS:
        # The worst shortfall is named.
        lacking = counts[split] - [len(members) for members in pools[split]]
        client, label = np.unravel_index(np.argmax(lacking), lacking.shape)
        if lacking[client, label] > 0:
            raise DatasetError(
                f"{arrays.name}, partition={partition}: client_{client} needs {counts[split][client, label]:,} {split} "
                f"examples of label {label} ({class_names[label]}), there are {len(pools[split][label]):,}; lower "
                f"--{split}_per_client"
            )
    clients = []
    for client in range(len(archetypes.of_clients)):
        # A client's draw depends on no other client.
        rng = np.random.default_rng([seed, 7, client])
        clients.append({split: _draw(pools[split], counts[split][client], rng) for split in SPLITS})
    return clients


def _draw(pool: list[np.ndarray], counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """`counts[label]` of the pool's examples of each label, ascending."""
    parts = [rng.choice(members, count, replace=False) for members, count in zip(pool, counts.tolist(), strict=True)]
    return np.sort(np.concatenate(parts))
