"""Weighted means of client updates by group, in one federated aggregation, and the scalars of a round.

A *group* is a row of the aggregate: the only one (FedAvg), a cluster (FedSiKD, FL+HC) or a model (FedCD). Each client's
weighted update is added to the row of its group. A client whose update is not finite, or an empty slot in the cohort,
adds zeros and no weight, so the mean is over the clients that count. BatchNorm's moving statistics are averaged like
trained weights.

Updates are accumulated one after another, in the order of the clients. A round then needs the memory of its updates and
of one row for each group. A sum of per-client values would need one row for each group and client.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_algos.client.local_training import LocalResult
from tff_algos.protocol import BYTES_DOWN, BYTES_UP, NUM_CLIENTS, NUM_REJECTED, TRAIN_LOSS, VIRTUAL_TIME_S, ClientWork

# In a stack of updates, which is added at once: 2 MB, which a core's cache holds; larger ones took longer.
_STACKED_WEIGHTS = 2**19


class ClientUpdate(NamedTuple):
    """What a client sends: its local result, the row that this is added to, int32, and its weight there, float32."""

    result: LocalResult
    group: tf.Tensor
    weight: tf.Tensor


class GroupTotals(NamedTuple):
    """The sum of the clients' updates.

    Attributes:
      deltas: sum of weight * update for each floating-point weight, shape (groups, *shape).
      weight: sum of the weights, float32, shape (groups,).
      squared_norm: sum of weight * squared norm of the update, float32, shape (groups,).
      loss_sum: loss over all trained examples, float32.
      num_trained: trained examples, each epoch counted, float32.
      num_rejected: clients whose update was not finite, int32.
    """

    deltas: tuple[tf.Tensor, ...]
    weight: tf.Tensor
    squared_norm: tf.Tensor
    loss_sum: tf.Tensor
    num_trained: tf.Tensor
    num_rejected: tf.Tensor


class RoundTotals(NamedTuple):
    """Scalars of a round: loss and examples as in GroupTotals, and the drift of the updates (see `compute_drift`)."""

    loss_sum: tf.Tensor
    num_trained: tf.Tensor
    num_rejected: tf.Tensor
    within_group_drift: tf.Tensor
    total_drift: tf.Tensor


class RunningTotals(NamedTuple):
    """GroupTotals in the making: the same fields, but with the deltas as `rows`.

    Attributes:
      rows: for each group the sum of its deltas, float32, all weights in one vector. The groups are separate tensors,
        so that adding a client's update moves the memory of one model, however many groups there are.
    """

    rows: tuple[tf.Tensor, ...]
    weight: tf.Tensor
    squared_norm: tf.Tensor
    loss_sum: tf.Tensor
    num_trained: tf.Tensor
    num_rejected: tf.Tensor


def add_to_group(totals: RunningTotals, update: ClientUpdate) -> RunningTotals:
    """The totals with one more client: its weighted update in the row of its group."""
    # A rejected update is all zeros already; without its weight it does not dilute the mean either.
    result, weight = update.result, tf.where(update.result.is_finite, update.weight, 0.0)
    # One vector, so that a row is added to in a single op however many tensors the model has.
    weighted = tf.concat([tf.reshape(weight * delta, [-1]) for delta in result.weights_delta], axis=0)

    # A branch, not a multiplication by a one-hot mask: the mask would touch every row for every client, and a huge
    # update of another group would cost this row its small values.
    def add_if_own(group, row):
        return tf.cond(tf.equal(update.group, group), lambda: row + weighted, lambda: row)

    # Scalars are few, so these vectors over the groups are simply copied.
    def add_scalar(total, value):
        return tf.tensor_scatter_nd_add(total, [[update.group]], (weight * value)[tf.newaxis])

    return RunningTotals(
        rows=tuple(add_if_own(group, row) for group, row in enumerate(totals.rows)),
        weight=add_scalar(totals.weight, 1.0),
        squared_norm=add_scalar(totals.squared_norm, result.squared_norm),
        loss_sum=totals.loss_sum + result.loss_sum,
        num_trained=totals.num_trained + result.num_trained,
        num_rejected=totals.num_rejected + tf.cast(~result.is_finite, tf.int32),
    )


def build_zero_totals(shapes: Sequence[tuple[int, ...]], num_groups: int) -> RunningTotals:
    """The totals before any client is added, for updates of these shapes."""
    num_weights = sum(math.prod(shape) for shape in shapes)
    return RunningTotals(
        rows=tuple(tf.zeros(num_weights) for _ in range(num_groups)),
        weight=tf.zeros(num_groups),
        squared_norm=tf.zeros(num_groups),
        loss_sum=tf.constant(0.0),
        num_trained=tf.constant(0.0),
        num_rejected=tf.constant(0),
    )


def finish_totals(totals: RunningTotals, shapes: Sequence[tuple[int, ...]]) -> GroupTotals:
    """The totals with the rows cut into tensors of these shapes, stacked over the groups."""
    rows = tf.stack(totals.rows)
    # Cut once at the end: while clients are added a row stays one vector.
    parts = tf.split(rows, [math.prod(shape) for shape in shapes], axis=1)
    deltas = tuple(tf.reshape(part, (len(totals.rows), *shape)) for part, shape in zip(parts, shapes, strict=True))
    return GroupTotals(deltas, *totals[1:])


def sum_by_group(updates: tff.Value, num_groups: int) -> tff.Value:
    """{ClientUpdate}@CLIENTS -> GroupTotals@SERVER, inside a federated computation."""
    update_type = updates.type_signature.member
    shapes = [tuple(tensor.shape) for tensor in update_type.result.weights_delta]

    @tff.tensorflow.computation
    def zero():
        return build_zero_totals(shapes, num_groups)

    totals_type = zero.type_signature.result

    @tff.tensorflow.computation(totals_type, update_type)
    def accumulate(totals, update):
        return add_to_group(totals, update)

    # Joins totals that were accumulated apart, as the shares of a Ray cluster are.
    @tff.tensorflow.computation(totals_type, totals_type)
    def merge(first, second):
        return tf.nest.map_structure(tf.add, first, second)

    @tff.tensorflow.computation(totals_type)
    def report(totals):
        return finish_totals(totals, shapes)

    return tff.federated_aggregate(updates, zero(), accumulate, merge, report)


def sum_on_host(updates: Sequence[ClientUpdate], shapes: Sequence[tuple[int, ...]], num_groups: int) -> GroupTotals:
    """The totals of updates that have come back: the same sums in the same order as in a computation, to the bit.

    Args:
      updates: of the clients, in their order.
      shapes: of an update.
      num_groups: rows of the aggregate.
    """
    # A GPU would add a scatter's rows in any order.
    with tf.device("/CPU:0"):
        return finish_totals(_sum_in_order(updates, build_zero_totals(shapes, num_groups)), shapes)


def _sum_in_order(updates: Sequence[ClientUpdate], zeros: RunningTotals) -> RunningTotals:
    results = [each.result for each in updates]
    groups = np.array([each.group for each in updates], np.int32)
    is_finite = np.array([each.is_finite for each in results], bool)
    weights = tf.where(is_finite, np.array([each.weight for each in updates], np.float32), 0.0)
    squared_norms, losses, numbers = (
        np.array([getattr(each, name) for each in results], np.float32)
        for name in ("squared_norm", "loss_sum", "num_trained")
    )
    rows = []
    for group, row in enumerate(zeros.rows):
        members = np.flatnonzero(groups == group)
        size = max(_STACKED_WEIGHTS // max(len(row), 1), 1)
        for part in (members[start : start + size] for start in range(0, len(members), size)):
            stacked = np.empty((len(part), len(row)), np.float32)
            for index, vector in zip(part, stacked, strict=True):
                np.concatenate(results[index].weights_delta, axis=None, out=vector)
            row = _add_in_order(row, tf.gather(weights, part)[:, tf.newaxis] * stacked)
        rows.append(row)
    return RunningTotals(
        rows=tuple(rows),
        weight=_add_in_order(zeros.weight, weights, groups),
        squared_norm=_add_in_order(zeros.squared_norm, weights * squared_norms, groups),
        loss_sum=_add_in_order(zeros.loss_sum, losses),
        num_trained=_add_in_order(zeros.num_trained, numbers),
        num_rejected=tf.constant(np.count_nonzero(~is_finite), tf.int32),
    )


def _add_in_order(total: tf.Tensor, values: tf.Tensor, places: np.ndarray | None = None) -> tf.Tensor:
    """Adds values, stacked along axis 0, one after another: to the total, or each to the entry of it at its place."""
    # A scatter adds in order, by TensorFlow's float32 arithmetic. Sums of TensorFlow and NumPy add pairwise or in
    # lanes; and NumPy keeps numbers below 1e-38, which TensorFlow's kernels take for 0.
    if places is not None:
        return tf.tensor_scatter_nd_add(total, places[:, np.newaxis], values)
    return tf.tensor_scatter_nd_add(total[tf.newaxis], np.zeros((len(values), 1), np.int32), values)[0]


def _scale_rows(values: tf.Tensor, factors: tf.Tensor) -> tf.Tensor:
    """Multiplies row g of `values` (or its only row) by `factors[g]`."""
    return values * tf.reshape(factors, (-1, *[1] * (len(values.shape) - 1)))


def compute_group_means(totals: GroupTotals) -> tuple[tf.Tensor, ...]:
    """Mean update of each group, shape (groups, *shape); zeros for a group without a client that counts."""
    # 0 in place of 1 / 0: the sum of an empty group is 0 already, and must not become NaN.
    return tuple(_scale_rows(delta, tf.math.divide_no_nan(1.0, totals.weight)) for delta in totals.deltas)


def compute_drift(totals: GroupTotals) -> tuple[tf.Tensor, tf.Tensor]:
    """How far the clients' updates lie apart (FedSiKD, Theorem 1: sigma_k^2 and sigma^2).

    With client weights p_i that sum to 1, update d_i, mean m_g of its group g and mean m of all:
    within = sum_i p_i |d_i - m_g|^2 = sum_i p_i |d_i|^2 - sum_g p_g |m_g|^2, and total likewise with m. This form needs
    only sums, so the server never sees a single update. Rounding can make the differences negative, hence the floor at
    0.

    Returns:
      (within-group drift, total drift), float32 scalars, squared length in weight space; 0 without clients.
    """
    share = tf.math.divide_no_nan(totals.weight, tf.reduce_sum(totals.weight))
    mean_square = tf.math.divide_no_nan(tf.reduce_sum(totals.squared_norm), tf.reduce_sum(totals.weight))
    means = compute_group_means(totals)
    group_square = tf.add_n([tf.reduce_sum(tf.square(m), axis=range(1, len(m.shape))) for m in means])
    # The mean of all is the mean of the group means, by the groups' shares of the weight.
    all_square = tf.add_n([tf.reduce_sum(tf.square(tf.reduce_sum(_scale_rows(m, share), axis=0))) for m in means])
    # The subtraction of two nearly equal sums can end below 0.
    within = tf.maximum(mean_square - tf.reduce_sum(share * group_square), 0.0)
    return within, tf.maximum(mean_square - all_square, 0.0)


def summarize_totals(totals: GroupTotals) -> RoundTotals:
    """The scalars of a round."""
    return RoundTotals(totals.loss_sum, totals.num_trained, totals.num_rejected, *compute_drift(totals))


def build_common_metrics(
    totals: RoundTotals, virtual_time_s: float, num_clients: int, bytes_down: int, bytes_up: int
) -> dict[str, float]:
    """The values of `protocol.COMMON_METRICS`; without a trained example the loss is NaN.

    Args:
      totals: the round's aggregate.
      virtual_time_s: since the start of the run.
      num_clients: clients that took part.
      bytes_down: sent by the server in this round, to all clients together.
      bytes_up: sent by the clients in this round.
    """
    # Python's numbers, since metrics go into JSON.
    num_trained = float(totals.num_trained)
    return {
        VIRTUAL_TIME_S: float(virtual_time_s),
        NUM_CLIENTS: num_clients,
        NUM_REJECTED: int(totals.num_rejected),
        BYTES_DOWN: int(bytes_down),
        BYTES_UP: int(bytes_up),
        TRAIN_LOSS: float(totals.loss_sum) / num_trained if num_trained else float(np.nan),
    }


def sum_bytes(works: Sequence[ClientWork]) -> tuple[int, int]:
    """(down, up): what all clients together receive and send in these parts of a round."""
    down = sum(_sum_over_clients(work.bytes_down, work) for work in works)
    up = sum(_sum_over_clients(work.bytes_up, work) for work in works)
    return round(down), round(up)


def _sum_over_clients(num_bytes: np.ndarray | float, work: ClientWork) -> float:
    # In float64: a float32 sum would lose bytes from 16 MB on.
    return float(np.broadcast_to(num_bytes, work.clients.shape).sum(dtype=np.float64))
