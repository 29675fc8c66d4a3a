"""Who holds which example: from the labels and a seed to an ascending array of indices for each client.

Every partitioner here uses each example exactly once, leaves no client empty, and gives the same split for the same
state of the generator. The archetype partitions, whose clients may share examples, are in `datasets/archetypes.py`.

Pachinko Allocation makes clients that favour a few kinds of classes, and within these some classes.
Source: Reddi et al., Adaptive Federated Optimization, 2021, appendix F (CIFAR-100), after Li and McCallum, Pachinko
Allocation, 2006. A client draws its shares of the kinds from Dir(alpha) and, of each kind, the shares of the kind's
classes from Dir(beta). For each of its examples it draws a kind, then a class, then an example of this class that
nobody has yet. A class that has none left is taken out, and a kind without classes; the shares of the others are
divided by their sum. The paper has alpha = 0.1, beta = 10 and 500 clients of 100 examples.

A client's examples are then split for training, for validation and for its own test.
"""

import heapq
from collections.abc import Callable

import numpy as np

from datasets.catalog import DATASETS
from datasets.errors import DatasetError
from datasets.example_format import LabelFormat
from datasets.partition_settings import NATURAL, PACHINKO, WITHOUT_CLASSES, PartitionSettings

DrawShares = Callable[[int, float, np.random.Generator], np.ndarray]


def find_kinds(class_names: tuple[str, ...]) -> np.ndarray:
    """The kind of each class, 0-based, int64, shape (classes,).

    Raises:
      DatasetError: the classes are not of kinds that are known.
    """
    from datasets.cifar import CIFAR100_CLASS_NAMES, KIND_OF_CLASS

    if class_names != CIFAR100_CLASS_NAMES:
        raise DatasetError(
            "partition=pachinko: it needs classes that are of kinds, as cifar100's are; choose another --partition"
        )
    return np.array(KIND_OF_CLASS)


def partition_pachinko(
    labels: np.ndarray,
    kinds: np.ndarray,
    num_clients: int,
    settings: PartitionSettings,
    draw_shares: DrawShares,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Ascending indices of each client's examples, every example once; their numbers differ by at most 1.

    Args:
      labels: integers, shape (examples,).
      kinds: of each class, shape (classes,).
      num_clients: at most the number of examples.
      settings: with the two concentrations.
      draw_shares: (how many, concentration, rng) -> a draw of the symmetric Dirichlet distribution.
      rng: is advanced.

    Raises:
      DatasetError: more clients than examples.
    """
    _check_enough(labels, num_clients)
    members = [np.flatnonzero(labels == label) for label in range(len(kinds))]
    waiting = [rng.permutation(each).tolist() for each in members]
    classes_of_kind = [np.flatnonzero(kinds == kind).tolist() for kind in range(int(kinds.max()) + 1)]
    clients = []
    for size in [len(part) for part in np.array_split(labels, num_clients)]:
        kind_shares = draw_shares(len(classes_of_kind), settings.pachinko_alpha, rng)
        class_shares = [draw_shares(len(classes), settings.pachinko_beta, rng) for classes in classes_of_kind]
        own = []
        for _ in range(size):
            left = [[bool(waiting[label]) for label in classes] for classes in classes_of_kind]
            kind = _choose(kind_shares, np.array([any(each) for each in left]), rng)
            choice = _choose(class_shares[kind], np.array(left[kind]), rng)
            own.append(waiting[classes_of_kind[kind][choice]].pop())
        clients.append(np.sort(own))
    return clients


def _choose(shares: np.ndarray, is_left: np.ndarray, rng: np.random.Generator) -> int:
    """A draw among those that are left; all alike if their shares are too small for a number."""
    weights = np.where(is_left, shares, 0.0)
    if not weights.sum() > 0:
        weights = is_left.astype(np.float64)
    ends = np.cumsum(weights)
    # Strictly below the end, so that nothing of share 0 is drawn.
    return int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))


Partition = list[np.ndarray]

# Below the first, NumPy's draw takes time in proportion to 1/alpha; above the second, the sum of its draws overflows.
LEAST_DRAWN_ALPHA, LARGEST_DRAWN_ALPHA = 1e-6, 1e100


def check_partition(partition: str, labels: LabelFormat) -> None:
    """Raises DatasetError if the partition deals out examples by their class and the task has no classes."""
    if partition not in WITHOUT_CLASSES and not labels.is_by_class:
        raise DatasetError(
            f"partition={partition}: it deals out examples by their class, which {labels.title} does not have; "
            f"expected {' or '.join(WITHOUT_CLASSES)}"
        )


def _check_enough(labels: np.ndarray, num_clients: int) -> None:
    if not 1 <= num_clients <= len(labels):
        raise DatasetError(f"num_clients={num_clients}: expected 1 to {len(labels)}, the number of train examples")


def partition_iid(labels: np.ndarray, num_clients: int, rng: np.random.Generator) -> Partition:
    """Shuffles the examples and deals them out in parts whose sizes differ by at most 1.

    Raises:
      DatasetError: more clients than examples.
    """
    _check_enough(labels, num_clients)
    return [np.sort(part) for part in np.array_split(rng.permutation(len(labels)), num_clients)]


def partition_dirichlet(labels: np.ndarray, num_clients: int, alpha: float, rng: np.random.Generator) -> Partition:
    """Label skew: the clients' shares of each class are drawn from Dir(alpha, ..., alpha), so sizes differ as well.

    As Yurochkin et al., Bayesian Nonparametric Federated Learning of Neural Networks, 2019. A client that is left with
    nothing gets one random example of the client that has the most; otherwise the draw stays as it is.

    Args:
      labels: integers, shape (examples,).
      num_clients: at most the number of examples.
      alpha: above 0; towards 0 each class goes to one client, towards infinity all clients get the same mixture.
      rng: is advanced.

    Raises:
      DatasetError: more clients than examples.
    """
    _check_enough(labels, num_clients)
    owners = np.empty(len(labels), np.int64)
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        shares = draw_shares(num_clients, alpha, rng)
        last_indices = np.rint(np.cumsum(shares) * len(members)).astype(np.int64)
        last_indices[-1] = len(members)
        owners[members] = np.searchsorted(last_indices, np.arange(len(members)), side="right")
    _fill_empty_clients(owners, num_clients, rng)
    return _group_by_owner(owners, num_clients)


def draw_shares(num_clients: int, alpha: float, rng: np.random.Generator) -> np.ndarray:
    """One draw from Dir(alpha, ..., alpha), float64, shape (clients,), in a time that does not depend on alpha.

    A share is a gamma variate with shape alpha over the sum of all. That of a small alpha is below every float64, but
    its logarithm is not: it is that of a variate with shape alpha + 1, plus log(U) / alpha with uniform U.
    """
    if alpha >= LEAST_DRAWN_ALPHA:
        return rng.dirichlet(np.full(num_clients, min(alpha, LARGEST_DRAWN_ALPHA)))
    # The logarithm of 1 - U, which is never 0.
    logs = np.log1p(-rng.random(num_clients))
    # What overflows is minus infinity, whose share is 0.
    with np.errstate(over="ignore"):
        logs = (logs - logs.max()) / alpha + np.log(rng.standard_gamma(alpha + 1, num_clients))
    shares = np.exp(logs - logs.max())
    return shares / shares.sum()


def _fill_empty_clients(owners: np.ndarray, num_clients: int, rng: np.random.Generator) -> None:
    members = _group_by_owner(owners, num_clients)
    # The first of the largest is on top: looking for it among all, for each empty client, would take their square.
    sizes = [(-len(own), client) for client, own in enumerate(members)]
    heapq.heapify(sizes)
    for client in (client for client, own in enumerate(members) if not len(own)):
        _, largest = sizes[0]
        given = rng.choice(members[largest])
        owners[given] = client
        members[largest] = members[largest][members[largest] != given]
        heapq.heapreplace(sizes, (-len(members[largest]), largest))


def _group_by_owner(owners: np.ndarray, num_clients: int) -> Partition:
    order = np.argsort(owners, kind="stable")
    return np.split(order, np.cumsum(np.bincount(owners, minlength=num_clients))[:-1])


def partition_shards(
    labels: np.ndarray, num_clients: int, labels_per_client: int, rng: np.random.Generator
) -> Partition:
    """Sorts by label, cuts into `num_clients * labels_per_client` shards and deals each client `labels_per_client`.

    As McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, 2017, except that no
    shard crosses a class border, so that "at most k labels a client" also holds for classes of uneven size. A class has
    as many shards as its size warrants: the next shard always goes to the class whose shards are largest. With classes
    of equal size this is the original. With fewer examples than shards, each example is a shard.

    Raises:
      DatasetError: more clients than examples, too few shards to have one of each class, or more labels for a client
        than there are.
    """
    _check_enough(labels, num_clients)
    classes, class_sizes = np.unique(labels, return_counts=True)
    if labels_per_client > len(classes):
        raise DatasetError(
            f"labels_per_client={labels_per_client}: expected at most {len(classes)}, the classes there are"
        )
    num_shards = min(num_clients * labels_per_client, len(labels))
    if num_shards < len(classes):
        raise DatasetError(
            f"shards: {num_clients} clients with at most {labels_per_client} labels cannot hold {len(classes)} classes"
            f"; raise num_clients or labels_per_client"
        )
    shards_of_class = np.ones(len(classes), np.int64)
    for _ in range(num_shards - len(classes)):
        shards_of_class[np.argmax(class_sizes / shards_of_class)] += 1
    shards = []
    for label, num_class_shards in zip(classes, shards_of_class, strict=True):
        shards += np.array_split(rng.permutation(np.flatnonzero(labels == label)), num_class_shards)
    owners = np.empty(len(labels), np.int64)
    for position, shard in enumerate(rng.permutation(num_shards)):
        owners[shards[shard]] = position % num_clients
    return _group_by_owner(owners, num_clients)


def partition_natural(clients: np.ndarray, num_clients: int) -> Partition:
    """Each example stays with who made it.

    Args:
      clients: client of each example, integers 0..num_clients-1, shape (examples,).
      num_clients: how many there are.
    """
    return _group_by_owner(np.asarray(clients, np.int64), num_clients)


def _partition_natural_clients(labels, clients, settings, rng, class_names) -> Partition:
    if clients is None:
        natural = ", ".join(name for name, row in DATASETS.items() if row.clients)
        raise DatasetError(
            f"partition=natural: this data set does not say who holds which example; use {natural}, an npz file with "
            f"an array client, or another partition"
        )
    return partition_natural(clients, int(clients.max()) + 1)


# Name -> (labels, natural clients or None, settings, rng, names of the classes) -> partition.
PARTITIONS: dict[str, Callable[..., Partition]] = {
    "iid": lambda labels, clients, settings, rng, class_names: partition_iid(labels, settings.num_clients, rng),
    "dirichlet": lambda labels, clients, settings, rng, class_names: partition_dirichlet(
        labels, settings.num_clients, settings.dirichlet_alpha, rng
    ),
    "shards": lambda labels, clients, settings, rng, class_names: partition_shards(
        labels, settings.num_clients, settings.labels_per_client, rng
    ),
    PACHINKO: lambda labels, clients, settings, rng, class_names: partition_pachinko(
        labels, find_kinds(class_names), settings.num_clients, settings, draw_shares, rng
    ),
    NATURAL: _partition_natural_clients,
}


# A client with fewer examples keeps them all for training: a split of one example says nothing.
MINIMUM_EXAMPLES_TO_SPLIT = 12


def split_client(
    indices: np.ndarray, client: int, settings: PartitionSettings, is_ordered: bool = False, overlap: int = 0
) -> dict[str, np.ndarray]:
    """Divides one client's examples: split -> ascending indices; counts are rounded, halves up.

    The division is random, unless the examples are ordered: then the test split comes last and validation before it,
    each after `overlap` examples that are left out. A client whose train split would lose more than half its examples
    that way keeps all. With `most_train_examples` the rest of the train split is left out.
    """
    counts = count_drawn(np.array([len(indices)]), settings, overlap if is_ordered else 0)
    num_validation, num_test = (int(counts[split][0]) for split in ("validation", "test"))
    most = settings.most_train_examples or len(indices)
    if is_ordered:
        test_start = len(indices) - num_test
        validation_end = test_start - overlap * bool(num_test and num_validation)
        validation_start = validation_end - num_validation
        train_end = validation_start - overlap * bool(num_test or num_validation)
        return {
            "train": indices[:train_end][:most],
            "validation": indices[validation_start:validation_end],
            "test": indices[test_start:],
        }
    # A client's split depends on no other client.
    shuffled = np.random.default_rng([settings.seed, 2, client]).permutation(indices)
    validation, test, train = np.split(shuffled, [num_validation, num_validation + num_test])
    return {"train": np.sort(train[:most]), "validation": np.sort(validation), "test": np.sort(test)}


def count_drawn(num_examples: np.ndarray, settings: PartitionSettings, overlap: int = 0) -> dict[str, np.ndarray]:
    """How many examples `split_client` gives each split, of clients with so many: int64, shape (clients,).

    Args:
      num_examples: int64, shape (clients,).
      settings: with the shares.
      overlap: of examples in order, how many are left out before a split; 0 if they are not.
    """
    # Halves go up; `round` would take them to even numbers.
    validation, test = (
        (num_examples * fraction + 0.5).astype(np.int64)
        for fraction in (settings.validation_fraction, settings.test_fraction)
    )
    train, left_out = num_examples - validation - test, overlap * ((validation > 0) * 1 + (test > 0))
    is_split = (num_examples >= MINIMUM_EXAMPLES_TO_SPLIT) & (2 * left_out <= train)
    validation, test = np.where(is_split, validation, 0), np.where(is_split, test, 0)
    train = np.where(is_split, train - left_out, num_examples)
    if settings.most_train_examples:
        train = np.minimum(train, settings.most_train_examples)
    return {"train": train, "validation": validation, "test": test}
