"""A round of AMFL-P as a computation: meta-gradients on the devices, their weighted mean, the server's step.

Steps 2 to 4 of `process`. The functional type is that of `build_round`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from models.model_spec import ModelSpec
from models.stateless_dropout import dropout_seed
from tff_algos.amfl_p.config import AMFLPConfig
from tff_algos.amfl_p.maml import Batch, build_predict, compute_loss, compute_meta_gradient, compute_reptile_gradient
from tff_algos.amfl_p.weighting import compute_unnormalized_weight
from tff_algos.client.client_data import read_split
from tff_algos.client.fine_tuning import build_fine_tuning_steps
from tff_algos.client.local_training import reject_if_not_finite
from tff_algos.protocol import Weights
from tff_algos.rounds.aggregation import ClientUpdate, RoundTotals, compute_group_means, sum_by_group, summarize_totals
from tff_algos.rounds.private_aggregation import sum_clipped_by_group
from tff_algos.weights import build_model_type

SERVER_MOMENTUM = 0.9


class MetaInput(NamedTuple):
    """What a device is told in a round (CLIENTS-placed); it reads its data itself.

    Attributes:
      path: shard path prefix, `ClientShard.path`; "" in an empty place.
      seed: int32, shape (2,).
      resource: R_i, float32.
      learning_rate: alpha, float32.
      num_steps: N_i, int32, and
      fine_tuning_rate: alpha_i, float32; both are read only if the fine-tuned model is judged.
    """

    path: str
    seed: np.ndarray
    resource: np.float32
    learning_rate: np.float32
    num_steps: np.int32
    fine_tuning_rate: np.float32


META_INPUT_TYPE = tff.StructWithPythonType(
    [
        ("path", np.str_),
        ("seed", tff.TensorType(np.int32, (2,))),
        ("resource", np.float32),
        ("learning_rate", np.float32),
        ("num_steps", np.int32),
        ("fine_tuning_rate", np.float32),
    ],
    MetaInput,
)
NOBODY = MetaInput("", np.zeros(2, np.int32), *map(np.float32, (0, 0)), np.int32(0), np.float32(0))


class RoundResult(NamedTuple):
    """What the server learns: the usual totals, and the sums of the unnormalized weights and of their squares."""

    totals: RoundTotals
    weight: tf.Tensor
    squared_weight: tf.Tensor


def build_server_optimizer(config: AMFLPConfig) -> tff.learning.optimizers.Optimizer:
    """The optimizer of step 4, at rate beta."""
    if config.server_optimizer == "adam":
        return tff.learning.optimizers.build_adam(config.meta_learning_rate)
    momentum = SERVER_MOMENTUM if config.server_optimizer == "momentum" else None
    return tff.learning.optimizers.build_sgdm(config.meta_learning_rate, momentum=momentum)


def build_client_update(model_spec: ModelSpec, config: AMFLPConfig) -> Callable:
    """Steps 1 to 3 as a function (weights, MetaInput) -> ClientUpdate with the negative meta-gradient as update.

    Q_i is that of the model after the inner steps or, with `quality_model` = fine_tuned, of theta_i (section 3.3).
    """
    predict, task = build_predict(model_spec), model_spec.task
    train = build_fine_tuning_steps(model_spec, config.fine_tuning)

    def fine_tune(weights, x, y, client):
        seed = tf.random.experimental.stateless_fold_in(client.seed, 1)
        return train(weights, x, y, seed, client.fine_tuning_rate, client.num_steps)

    def draw_batches(x, y, seed) -> tuple[Batch, Batch]:
        order = tf.random.experimental.stateless_shuffle(tf.range(tf.shape(y)[0]), seed)
        # Without replacement, so that no example is in both batches.
        drawn = order[: config.support_size + config.query_size]
        if config.query_after_support:  # examples in order of time: the query batch is the later part of the draw
            drawn = tf.sort(drawn)
        support, query = drawn[: config.support_size], drawn[config.support_size :]
        return Batch(tf.gather(x, support), tf.gather(y, support)), Batch(tf.gather(x, query), tf.gather(y, query))

    def update(weights, client) -> ClientUpdate:
        # One seed for all batches of the round, since the model is traced once for each shape of a batch.
        with dropout_seed(tf.random.experimental.stateless_fold_in(client.seed, 2)):
            return update_seeded(weights, client)

    def update_seeded(weights, client) -> ClientUpdate:
        x, y = read_split(client.path, "train", model_spec)
        support, query = draw_batches(x, y, client.seed)
        arguments = (predict, weights, support, query, config.inner_steps, client.learning_rate)
        if config.reptile:
            meta = compute_reptile_gradient(*arguments, task=task)
        else:
            meta = compute_meta_gradient(*arguments, first_order=config.first_order, task=task)
        validation = Batch(*read_split(client.path, "validation", model_spec))
        has_validation = tf.shape(validation.y)[0] > 0
        judged = fine_tune(weights, x, y, client) if config.judges_fine_tuned else meta.adapted
        loss = tf.where(has_validation, compute_loss(predict, judged, validation, task), meta.query_loss)
        num_train = tf.cast(tf.shape(y)[0], tf.float32)
        num_query = tf.reduce_sum(task.compute_weights(query.y))  # examples, or what the task weighs them by
        weight = compute_unnormalized_weight(config.weighting, loss, client.resource, num_train)
        # Updates point downhill, as in all algorithms; `server_update` turns the sign back for its optimizer.
        result = reject_if_not_finite([-g for g in meta.gradient], meta.query_loss * num_query, num_query)
        is_there = tf.cast(tf.shape(y)[0] > 0, tf.float32)  # a padded place in the cohort has no weight
        return ClientUpdate(result, tf.constant(0), weight * is_there)

    return update


def step_server(config: AMFLPConfig, optimizer_state, model, leaves, gradient) -> tuple[tuple, tuple]:
    """Step 4, in any graph: (the next model, the leaves of the optimizer's next state)."""
    state = tf.nest.pack_sequence_as(optimizer_state, leaves)
    new_state, stepped = build_server_optimizer(config).next(state, model, gradient)
    return tuple(stepped), tuple(tf.nest.flatten(new_state))


def build_round(model_spec: ModelSpec, config: AMFLPConfig, template_weights: Weights, optimizer_state) -> Callable:
    """({model, optimizer state}@SERVER, {MetaInput}@CLIENTS) -> <model, optimizer state, RoundResult>@SERVER."""
    update_client = build_client_update(model_spec, config)
    model_type = build_model_type(template_weights)
    leaves_type = build_model_type(tf.nest.flatten(optimizer_state))  # arrays, too
    server_type = tff.StructWithPythonType([model_type, leaves_type], tuple)

    @tff.tensorflow.computation(model_type, META_INPUT_TYPE)
    def client_work(model, client):
        update = update_client(tuple(model), client)
        weight = tf.where(update.result.is_finite, update.weight, 0.0)
        return update, tf.square(weight)

    @tff.tensorflow.computation
    def server_update(server, totals, squared_weight):
        gradient = tuple(-mean[0] for mean in compute_group_means(totals))
        stepped, leaves = step_server(config, optimizer_state, tuple(server[0]), tuple(server[1]), gradient)
        return stepped, leaves, RoundResult(summarize_totals(totals), totals.weight[0], squared_weight)

    @tff.federated_computation(
        tff.FederatedType(server_type, tff.SERVER), tff.FederatedType(META_INPUT_TYPE, tff.CLIENTS)
    )
    def run_round(server, clients):
        updates, squared = tff.federated_map(client_work, (tff.federated_broadcast(server[0]), clients))
        return tff.federated_map(server_update, (server, sum_by_group(updates, 1), tff.federated_sum(squared)))

    return run_round


def build_private_round(model_spec: ModelSpec, config: AMFLPConfig, template_weights: Weights) -> Callable:
    """Steps 1 to 3 with private updates: the sum of the negative meta-gradients, clipped, without noise.

    (model@SERVER, S@SERVER, {MetaInput}@CLIENTS) -> <sums, ClipCounts, RoundResult>@SERVER; the sums are stacked alone.
    """
    update_client = build_client_update(model_spec, config)
    model_type = build_model_type(template_weights)

    @tff.tensorflow.computation(model_type, META_INPUT_TYPE)
    def client_work(model, client):
        return update_client(tuple(model), client)

    @tff.tensorflow.computation
    def summarize(totals, counts):
        # All weigh 1, so that the sum of the weights is that of their squares, too.
        weight = totals.weight[0]
        return totals.deltas, counts, RoundResult(summarize_totals(totals), weight, weight)

    @tff.federated_computation(
        tff.FederatedType(model_type, tff.SERVER),
        tff.FederatedType(np.float32, tff.SERVER),
        tff.FederatedType(META_INPUT_TYPE, tff.CLIENTS),
    )
    def compute_sums(model, clip_norm, clients):
        updates = tff.federated_map(client_work, (tff.federated_broadcast(model), clients))
        return tff.federated_map(summarize, sum_clipped_by_group(updates, clip_norm, 1))

    return compute_sums
