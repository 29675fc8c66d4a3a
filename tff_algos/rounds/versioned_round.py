"""Training from different versions of the global model in one call: each client is handed its own start weights.

There are two computations, since a computation either aggregates or returns per-client values, never both: the graph of
a round that runs in this process has one result of the clients' work. An algorithm that must look at single updates
takes the second, and averages on the host.

Functional types of the computations that the builders return:
  build_versioned_round:  {VersionedInput}@CLIENTS -> VersionedResult@SERVER
  build_versioned_updates: {VersionedInput}@CLIENTS -> {LocalResult}@CLIENTS
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.client.client_data import read_split
from tff_algos.client.cohort import NOBODY, ClientInput, pad_cohort
from tff_algos.client.local_training import LocalResult, train_locally
from tff_algos.late_computation import LateComputation
from tff_algos.protocol import Weights
from tff_algos.rounds.aggregation import (
    ClientUpdate,
    GroupTotals,
    RoundTotals,
    compute_group_means,
    sum_by_group,
    sum_on_host,
    summarize_totals,
)
from tff_algos.seeds import derive_seed
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import build_type


class VersionedInput(NamedTuple):
    """A client's start weights, what it is told, and its slot in the call, int32, counted from 0."""

    start: Weights
    client: ClientInput
    slot: np.int32


class VersionedResult(NamedTuple):
    """The aggregate over the clients of a call.

    Attributes:
      mean_update: weighted mean of the updates that are finite, zeros without any.
      is_finite: 1 in the slots of clients whose update counts, 0 elsewhere, float32, shape (slots,).
      totals: the usual scalars.
    """

    mean_update: tuple[tf.Tensor, ...]
    is_finite: tf.Tensor
    totals: RoundTotals


def _build_blank(start: Weights) -> VersionedInput:
    """The input of an empty slot, which needs a start of the right shapes, though it trains nothing."""
    return VersionedInput(start, NOBODY, np.int32(0))


def _train(model_spec: ModelSpec, training: LocalTrainingConfig, given: VersionedInput) -> LocalResult:
    x, y = read_split(given.client.path, "train", model_spec)
    client = given.client
    return train_locally(model_spec, training, tuple(given.start), x, y, client.seed, client.learning_rate)


def _summarize(totals: GroupTotals, is_finite: tf.Tensor) -> VersionedResult:
    means = tuple(mean[0] for mean in compute_group_means(totals))
    return VersionedResult(means, is_finite, summarize_totals(totals))


def build_versioned_round(
    model_spec: ModelSpec, training: LocalTrainingConfig, template_weights: Weights, num_slots: int
) -> Callable:
    """Each client trains from its own start weights; the server gets the weighted mean of the updates.

    Args:
      model_spec: the model.
      training: local training of each client.
      template_weights: one model's weights, for their shapes and dtypes.
      num_slots: clients of a call, empty slots included.
    """
    return LateComputation(_build_round, model_spec, training, build_type(_build_blank(template_weights)), num_slots)


def _build_round(
    model_spec: ModelSpec, training: LocalTrainingConfig, input_type: tff.Type, num_slots: int
) -> Callable:
    @tff.tensorflow.computation(input_type)
    def client_work(given):
        result = _train(model_spec, training, given)
        # One number a client must reach the host beside the aggregate. It travels as a row with a single entry, and the
        # sum of these rows has the number of each client in its slot.
        is_there = tf.strings.length(given.client.path) > 0
        flag = tf.one_hot(given.slot, num_slots) * tf.cast(result.is_finite & is_there, tf.float32)
        return ClientUpdate(result, tf.constant(0), given.client.weight), flag

    @tff.tensorflow.computation
    def summarize(totals, flags):
        return _summarize(totals, flags)

    @tff.federated_computation(tff.FederatedType(input_type, tff.CLIENTS))
    def run_round(clients):
        updates, flags = tff.federated_map(client_work, clients)
        return tff.federated_map(summarize, (sum_by_group(updates, 1), tff.federated_sum(flags)))

    return run_round


def build_versioned_inputs(
    clients: FederatedData,
    chosen: np.ndarray,
    starts: Sequence[Weights],
    weights: np.ndarray,
    training: LocalTrainingConfig,
    seed: int,
    round_nums: np.ndarray,
    min_slots: int = 1,
    start_numbers: np.ndarray | None = None,
) -> list[VersionedInput]:
    """What clients are told, padded (see `cohort.pad_cohort`); a client that is chosen twice gets two seeds.

    Args:
      clients: the federation.
      chosen: indices of the clients of the call, shape (members,).
      starts: the weights that each starts from.
      weights: the weight of each in the mean, shape (members,).
      training: gives the learning rate.
      seed: the run's.
      round_nums: what each one's learning rate and seed are derived from, 1-based, shape (members,).
      min_slots: the smallest number of slots.
      start_numbers: of devices that count by their starts, which of its starts each one's is, from 1 on; its seed is
        then derived from that, shape (members,).
    """
    inputs = []
    for index, (client, start, weight, round_num) in enumerate(
        zip(chosen, starts, weights, round_nums.tolist(), strict=True)
    ):
        # A fast device can be chosen twice in one call; the slot keeps its two trainings apart.
        told_seed = derive_seed(seed, "training", round_num, client, slot=np.sum(chosen[:index] == client))
        if start_numbers is not None:
            told_seed = derive_start_seed(seed, client, start_numbers[index])
        told = ClientInput(
            clients.clients[client].path,
            told_seed,
            np.int32(0),
            np.float32(weight),
            np.float32(training.round_learning_rate(round_num)),
        )
        inputs.append(VersionedInput(start, told, np.int32(index)))
    return pad_cohort(inputs, min_slots, _build_blank(starts[0]))


def derive_start_seed(seed: int, client: int, start_number: int) -> np.ndarray:
    """The seed of a device's start number 1, 2, ..., which its own training can go by; int32, shape (2,)."""
    return derive_seed(seed, "training", start_number, client)


def spoil(inputs: list[VersionedInput], is_rejected: np.ndarray) -> list[VersionedInput]:
    """The same inputs, of which those in these slots make updates that are not finite.

    Args:
      inputs: see `build_versioned_inputs`.
      is_rejected: of the members, bool, shape (members,).
    """
    inputs = list(inputs)
    for slot in np.flatnonzero(is_rejected).tolist():
        # A step of a rate that is no number leads to no number.
        client = inputs[slot].client._replace(learning_rate=np.float32(np.nan))
        inputs[slot] = inputs[slot]._replace(client=client)
    return inputs


def build_versioned_updates(
    model_spec: ModelSpec, training: LocalTrainingConfig, template_weights: Weights
) -> Callable:
    """Each client trains from its own start weights; all results come back, in the order of the clients."""
    return LateComputation(_build_updates, model_spec, training, build_type(_build_blank(template_weights)))


def _build_updates(model_spec: ModelSpec, training: LocalTrainingConfig, input_type: tff.Type) -> Callable:
    @tff.tensorflow.computation(input_type)
    def client_work(given):
        return _train(model_spec, training, given)

    @tff.federated_computation(tff.FederatedType(input_type, tff.CLIENTS))
    def compute_updates(clients):
        return tff.federated_map(client_work, clients)

    return compute_updates


def compute_update_norms(results: Sequence[LocalResult]) -> np.ndarray:
    """The norms of updates, Eq. (11), NaN where one is not finite; float32, shape (updates,)."""
    return np.array([np.sqrt(each.squared_norm) if each.is_finite else np.nan for each in results], np.float32)


def average_updates(results: Sequence[LocalResult], weights: np.ndarray) -> VersionedResult:
    """The result of `build_versioned_round`, from updates that have come back: the same sums in the same order.

    The same functions do the sums, so that a run that looks at updates first gives the same bytes as one that does not.

    Args:
      results: from the computation of `build_versioned_updates`, at least one.
      weights: of each in the mean, shape (updates,).
    """
    # On the host by TensorFlow's arithmetic, for the same bytes as in a computation.
    shapes = [np.shape(delta) for delta in results[0].weights_delta]
    pairs = zip(results, np.asarray(weights, np.float32), strict=True)
    totals = sum_on_host([ClientUpdate(result, np.int32(0), weight) for result, weight in pairs], shapes, 1)
    return _summarize(totals, tf.constant([float(each.is_finite) for each in results]))
