"""An aggregator that sees single updates, at work on every group apart from the others."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.rounds.aggregators import Aggregate, Aggregator
from tff_algos.rounds.list_aggregator import ListAggregator, cut_updates, join_update


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
        states = self.inner.initialize(self.shapes, num_groups)
        return tf.nest.map_structure(lambda *leaves: np.stack(leaves), *states) if states else ()

    def copy_groups(self, state: Any, sources: np.ndarray) -> Any:
        return tf.nest.map_structure(lambda leaf: leaf[sources], state)

    def aggregate(self, updates: Sequence[ClientUpdate], totals, counts, sizes, state, num) -> Aggregate:
        combined, has_update = np.zeros((len(sizes), self.num_weights), np.float32), np.zeros(len(sizes), bool)
        states, columns = [_take(state, group) for group in range(len(sizes))], []
        for group in range(len(sizes)):
            members = [each for each in updates if int(each.group) == group and bool(each.result.is_finite)]
            if not members:
                continue
            rows = np.stack([join_update(each.result.weights_delta) for each in members])
            weights = np.array([each.weight for each in members], np.float32)
            combined[group], states[group], measured = self.inner.combine(rows, weights, states[group])
            has_update[group] = True
            columns.append(measured)
        names = self._name_columns(columns, state)
        metrics = {name: float(np.mean([each[name] for each in columns])) if columns else np.nan for name in names}
        has_state = not (isinstance(state, tuple) and not state)  # one that is a bare array has no truth value
        next_state = tf.nest.map_structure(lambda *leaves: np.stack(leaves), *states) if has_state else ()
        return Aggregate(
            cut_updates(combined, self.shapes), has_update, np.asarray(totals.weight), 1, next_state, metrics
        )

    @property
    def num_weights(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.shapes)

    def _name_columns(self, columns: Sequence[dict[str, float]], state: Any) -> Sequence[str]:
        """The names of the columns, also in a round without an update: those that a trial gives."""
        if columns:
            return list(columns[0])
        trial = np.zeros((1, self.num_weights), np.float32), np.ones(1, np.float32)
        return list(self.inner.combine(*trial, _take(state, 0))[2])

    def list_notes(self, state: Any, released: str) -> Sequence[str]:
        return (self.note,)


def _take(state: Any, group: int) -> Any:
    """The state of a group."""
    return tf.nest.map_structure(lambda leaf: leaf[group], state)
