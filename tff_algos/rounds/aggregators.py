"""Aggregators: how the updates of a group's clients become one.

There are two kinds. A *sum* is made while the updates come in and never holds more than one model a group; the weighted
mean, which is the default, is one. A *list* sees single updates (`ListAggregator`), and works on every
group apart from the others.
"""

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_algos.protocol import Weights
from tff_algos.rounds.aggregation import ClientUpdate, GroupTotals, compute_group_means
from tff_algos.rounds.list_aggregator import ListAggregator, count_weights, cut_updates, join_update, make_trial


class Aggregate(NamedTuple):
    """What an aggregator makes of the updates of a round.

    Attributes:
      update: for each floating-point weight, shape (groups, *shape), float32; zeros for a group without an update.
      has_update: which groups have one, bool, shape (groups,).
      weight: sum of the weights of each group's clients that count, float32, shape (groups,).
      divisor: by which the server divides the update; more than 1 where it is a sum.
      state: the aggregator's next state.
      metrics: columns of the round.
    """

    update: Weights
    has_update: np.ndarray
    weight: np.ndarray
    divisor: int
    state: Any
    metrics: dict[str, float]


class Aggregator(abc.ABC):
    """What becomes of the clients' updates; the defaults fit one without a state and without a budget.

    Attributes:
      is_bound_to_shapes: whether its state has arrays of the model's shapes, so that the model may not change.
      hides_rejected: whether an update that is rejected must change nothing but the sum: it is an answer of zeros.
    """

    is_bound_to_shapes = False
    hides_rejected = False

    def initialize(self, num_groups: int) -> Any:
        """The state before the first round: nested arrays, `()` for none."""
        return ()

    def copy_groups(self, state: Any, sources: np.ndarray) -> Any:
        """The state of groups that each go on where the group `sources[g]` is; by default no group has one."""
        return state

    def tell(self, state: Any) -> tuple[np.ndarray, ...]:
        """What clients must know to encode their updates; by default nothing."""
        return ()

    def encode(self, update: ClientUpdate, told: tuple[tf.Tensor, ...]) -> tuple[ClientUpdate, Any]:
        """The update as a client sends it, and counts that the server gets summed, in any graph."""
        return update, ()

    @abc.abstractmethod
    def aggregate(
        self, updates: Sequence[ClientUpdate], totals: GroupTotals, counts: Any, sizes: np.ndarray, state: Any, num: int
    ) -> Aggregate:
        """The aggregate of single updates, on the host.

        Args:
          updates: in the order of the clients, empty slots left out; NumPy's.
          totals: their weighted sums.
          counts: the sums of those of `encode`.
          sizes: clients of each group that were asked, int64, shape (groups,).
          state: from before the round.
          num: of the round, 1-based.
        """

    def is_spent(self, state: Any, rounds: int) -> bool:
        """Whether a budget allows no round after so many; by default never."""
        return False

    def summarize(self, state: Any, rounds: int) -> dict[str, Any]:
        """The aggregator in summary.json; by default nothing."""
        return {}

    def list_notes(self, state: Any, released: str) -> Sequence[str]:
        """Lines that a run says before its first round, where `released` is what the algorithm gives out."""
        return ()


class SumAggregator(Aggregator):
    """The mean of a group's updates, by the weights of their clients; what sums otherwise extends it.

    The server makes something of the sums, in the graph (`reduce`) and outside of it (`finish`).

    Attributes:
      is_sum: whether it is made while the updates come in, and not on the host of a list of them.
    """

    is_sum = True

    def reduce(self, totals: GroupTotals) -> tuple[tf.Tensor, ...]:
        """What the server gets for each floating-point weight, in any graph."""
        return compute_group_means(totals)

    def finish(
        self, values: Weights, weight: np.ndarray, counts: Any, sizes: np.ndarray, state: Any, round_num: int
    ) -> Aggregate:
        """The aggregate, on the host.

        Args:
          values: from `reduce`.
          weight: sum of the weights of each group, float32, shape (groups,).
          counts, sizes, state, round_num: as in `aggregate`.
        """
        return Aggregate(values, weight > 0, weight, 1, state, {})

    def aggregate(self, updates, totals, counts, sizes, state, num):
        values = tuple(np.asarray(value) for value in self.reduce(totals))
        return self.finish(values, np.asarray(totals.weight), counts, sizes, state, num)


class ListedMean(SumAggregator):
    """The same mean, of updates that come one by one, where the algorithm looks at them."""

    is_sum = False


@dataclasses.dataclass(frozen=True, eq=False)
class GroupwiseAggregator(Aggregator):
    """The aggregator for a round with groups.

    Its state is that of each group, stacked along axis 0. Its columns are the mean over the groups that have an update,
    NaN without any.

    Attributes:
      inner: what makes one update of a group's.
      shapes: of an update.
      note: what a run says of it.
    """

    inner: ListAggregator
    shapes: tuple[tuple[int, ...], ...]
    note: str

    is_bound_to_shapes = True

    def initialize(self, num_groups: int) -> Any:
        # Stacked, so that a checkpoint has as many leaves whatever the number of groups.
        states = self.inner.initialize(self.shapes, num_groups)
        return tf.nest.map_structure(lambda *leaves: np.stack(leaves), *states) if states else ()

    def copy_groups(self, state: Any, sources: np.ndarray) -> Any:
        return tf.nest.map_structure(lambda leaf: leaf[sources], state)

    def aggregate(self, updates: Sequence[ClientUpdate], totals, counts, sizes, state, num) -> Aggregate:
        combined = np.zeros((len(sizes), count_weights(self.shapes)), np.float32)
        has_update = np.zeros(len(sizes), bool)
        states, columns = [_take(state, group) for group in range(len(sizes))], []
        for group in range(len(sizes)):
            # A rejected update is zeros, which would pull a median or a trimmed mean towards 0.
            members = [each for each in updates if int(each.group) == group and bool(each.result.is_finite)]
            if not members:
                continue
            rows = np.stack([join_update(each.result.weights_delta) for each in members])
            weights = np.array([each.weight for each in members], np.float32)
            combined[group], states[group], measured = self.inner.combine(rows, weights, states[group])
            has_update[group] = True
            columns.append(measured)
        # A table's columns are those of its first row, so a round without an update has them, too.
        names = self._name_columns(columns, state)
        metrics = {name: float(np.mean([each[name] for each in columns])) if columns else np.nan for name in names}
        has_state = not (isinstance(state, tuple) and not state)  # one that is a bare array has no truth value
        next_state = tf.nest.map_structure(lambda *leaves: np.stack(leaves), *states) if has_state else ()
        return Aggregate(
            cut_updates(combined, self.shapes), has_update, np.asarray(totals.weight), 1, next_state, metrics
        )

    def _name_columns(self, columns: Sequence[dict[str, float]], state: Any) -> Sequence[str]:
        """The names of the columns, also in a round without an update: those that a trial gives."""
        if columns:
            return list(columns[0])
        return list(self.inner.combine(*make_trial(self.shapes), _take(state, 0))[2])

    def list_notes(self, state: Any, released: str) -> Sequence[str]:
        return (self.note,)


def _take(state: Any, group: int) -> Any:
    """The state of a group."""
    return tf.nest.map_structure(lambda leaf: leaf[group], state)
