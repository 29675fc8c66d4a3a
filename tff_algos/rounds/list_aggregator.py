"""What an aggregator that sees single updates is; `groupwise_aggregator` has it work on every group."""

import abc
import math
from collections.abc import Sequence
from typing import Any

import numpy as np


def join_update(deltas: Sequence[np.ndarray]) -> np.ndarray:
    """An update as one vector, its arrays flattened and joined in order."""
    return np.concatenate(deltas, axis=None)


def cut_updates(vectors: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> tuple[np.ndarray, ...]:
    """The inverse for vectors of any leading axes: one array a shape, (..., num_weights) to (..., *shape)."""
    # Without the last sum, which is the length: it would make an empty part more.
    parts = np.split(vectors, np.cumsum([math.prod(shape) for shape in shapes])[:-1], axis=-1)
    return tuple(part.reshape((*vectors.shape[:-1], *shape)) for part, shape in zip(parts, shapes, strict=True))


def count_weights(shapes: Sequence[tuple[int, ...]]) -> int:
    """The numbers in an update of these shapes."""
    return sum(math.prod(shape) for shape in shapes)


def make_trial(shapes: Sequence[tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """(updates, weights) of one client whose update is zero, by which it is found out what an aggregator does."""
    return np.zeros((1, count_weights(shapes)), np.float32), np.ones(1, np.float32)


class ListAggregator(abc.ABC):
    """Makes one update of the updates of a group's clients, on the host.

    Empty slots of a cohort and updates that are not finite never reach it.
    """

    def initialize(self, shapes: Sequence[tuple[int, ...]], num_groups: int) -> tuple:
        """The states before the first round.

        Args:
          shapes: of the floating-point weights, in order.
          num_groups: groups that are aggregated apart from each other.

        Returns:
          The state of each group, nested tuples of NumPy arrays of a fixed structure; `()` without a state.
        """
        return ()

    @abc.abstractmethod
    def combine(self, updates: np.ndarray, weights: np.ndarray, state: Any) -> tuple[np.ndarray, Any, dict[str, float]]:
        """The update of a group; a pure function of its arguments.

        Args:
          updates: finite, float32, shape (clients, num_weights), at least one client, in ascending order of the
            clients. All floating-point weights of a model are flattened and joined in order. Not to be changed.
          weights: the clients', float32, shape (clients,), at least 0.
          state: of the group, `()` without.

        Returns:
          (the update, float32, shape (num_weights,); the group's next state; columns of the round, always under the
          same names).
        """
