"""Pachinko Allocation: clients that favour a few kinds of classes, and within these some classes.

Source: Reddi et al., Adaptive Federated Optimization, 2021, appendix F (CIFAR-100), after Li and McCallum, Pachinko
Allocation, 2006. A client draws its shares of the kinds from Dir(alpha) and, of each kind, the shares of the kind's
classes from Dir(beta). For each of its examples it draws a kind, then a class, then an example of this class that
nobody has yet. A class that has none left is taken out, and a kind without classes; the shares of the others are
divided by their sum. The paper has alpha = 0.1, beta = 10 and 500 clients of 100 examples.
"""

from collections.abc import Callable

import numpy as np

from datasets.errors import DatasetError
from datasets.partition_settings import PachinkoSettings

DrawShares = Callable[[int, float, np.random.Generator], np.ndarray]


def find_kinds(class_names: tuple[str, ...]) -> np.ndarray:
    """The kind of each class, 0-based, int64, shape (classes,).

    Raises:
      DatasetError: the classes are not of kinds that are known.
    """
    from datasets.cifar100_classes import CLASS_NAMES, KIND_OF_CLASS

    if class_names != CLASS_NAMES:
        raise DatasetError(
            "partition=pachinko: it needs classes that are of kinds, as cifar100's are; choose another --partition"
        )
    return np.array(KIND_OF_CLASS)


def partition_pachinko(
    labels: np.ndarray,
    kinds: np.ndarray,
    num_clients: int,
    settings: PachinkoSettings,
    draw_shares: DrawShares,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Ascending indices of each client's examples, every example once; their numbers differ by at most 1.

    Args:
      labels: integers, shape (examples,).
      kinds: of each class, shape (classes,).
      num_clients: at most the number of examples.
      settings: the concentrations.
      draw_shares: (how many, concentration, rng) -> a draw of the symmetric Dirichlet distribution.
      rng: is advanced.

    Raises:
      DatasetError: more clients than examples.
    """
    if not 1 <= num_clients <= len(labels):
        raise DatasetError(f"num_clients={num_clients}: expected 1 to {len(labels)}, the number of train examples")
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
            place = _choose(class_shares[kind], np.array(left[kind]), rng)
            own.append(waiting[classes_of_kind[kind][place]].pop())
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
