"""What a device does in a round of AMFL-P: steps 1 to 3 of `process`."""

import functools
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from models.model_spec import ModelSpec
from models.stateless_dropout import dropout_seed
from tff_algos.amfl_p.config import USES_QUALITY, USES_RESOURCE, AMFLPConfig
from tff_algos.amfl_p.maml import Batch, build_predict, compute_loss, compute_meta_gradient, compute_reptile_gradient
from tff_algos.client.client_data import read_split, split_labels
from tff_algos.client.fine_tuning import build_fine_tuning_steps
from tff_algos.client.local_training import reject_if_not_finite, reject_unless
from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.rounds.training_phase import LocalWork, Sent, Told


class MetaInput(NamedTuple):
    """What a device is told beside the usual.

    Attributes:
      resource: R_i, float32.
      num_steps: N_i, int32, and
      fine_tuning_rate: alpha_i, float32; both are read only if the fine-tuned model is judged.
    """

    resource: np.float32 = np.float32(0)
    num_steps: np.int32 = np.int32(0)
    fine_tuning_rate: np.float32 = np.float32(0)


def compute_quality(validation_loss: tf.Tensor) -> tf.Tensor:
    """Q_i = exp(-L_i), L_i the mean cross-entropy of the adapted model on the device's validation split; in (0, 1]."""
    return tf.exp(-validation_loss)


def compute_unnormalized_weight(
    weighting: str, validation_loss: tf.Tensor, resource: tf.Tensor, num_examples: tf.Tensor
) -> tf.Tensor:
    """The numerator of w_i = Q_i R_i / sum_j Q_j R_j (section 3.4), float32.

    A device computes its own, and the server only sums, so it needs nobody's loss or data. Each factor can be left out,
    or both replaced by the number of examples.

    Args:
      weighting: "adaptive" (Q_i R_i), "resource" (R_i), "quality" (Q_i), "examples" (those of its train split) or
        "equal" (1).
      validation_loss: L_i.
      resource: R_i.
      num_examples: float32.
    """
    if weighting == "examples":
        return num_examples
    weight = tf.ones_like(resource)
    if weighting in USES_QUALITY:
        weight *= compute_quality(validation_loss)
    if weighting in USES_RESOURCE:
        weight *= resource
    return weight


class WeightSums(NamedTuple):
    """The sums of the devices' unnormalized weights and of their squares, float32."""

    weight: tf.Tensor
    squared_weight: tf.Tensor


def build_meta_training(model_spec: ModelSpec, config: AMFLPConfig) -> LocalWork:
    """Steps 1 to 3, with the negative meta-gradient as the update, and `WeightSums` beside it.

    What is sent is the model alone; a device's learning rate is alpha. Q_i is that of the model after the inner steps
    or, with `quality_model` = fine_tuned, of theta_i (section 3.3).
    """
    predict, task = build_predict(model_spec), model_spec.task
    train = build_fine_tuning_steps(model_spec, config.fine_tuning) if config.judges_fine_tuned else None
    num_support, num_drawn = config.support_size, config.support_size + config.query_size
    is_in_order, inner_steps, weighting = config.query_after_support, config.inner_steps, config.weighting
    compute_gradient = functools.partial(compute_meta_gradient, first_order=config.first_order)
    if config.reptile:
        compute_gradient = compute_reptile_gradient

    def fine_tune(weights, x, y, seed, own: MetaInput):
        seed = tf.random.experimental.stateless_fold_in(seed, 1)
        return train(weights, x, y, seed, own.fine_tuning_rate, own.num_steps)

    def draw_batches(x, y, seed) -> tuple[Batch, Batch]:
        order = tf.random.experimental.stateless_shuffle(tf.range(tf.shape(y)[0]), seed)
        drawn = order[:num_drawn]  # without replacement, so that no example is in both batches
        if is_in_order:  # examples in order of time: the query batch is the later part of the draw
            drawn = tf.sort(drawn)
        support, query = drawn[:num_support], drawn[num_support:]
        return Batch(tf.gather(x, support), tf.gather(y, support)), Batch(tf.gather(x, query), tf.gather(y, query))

    def work(told: Told) -> Sent:
        # One seed for all batches of the round, since the model is traced once for each shape of a batch.
        with dropout_seed(tf.random.experimental.stateless_fold_in(told.client.seed, 2)):
            update = compute_update(tuple(told.models), told.client, told.own)
        weight = tf.where(update.result.is_finite, update.weight, 0.0)
        return Sent(update, WeightSums(weight, tf.square(weight)))

    def compute_update(weights, client, own: MetaInput) -> ClientUpdate:
        x, y = read_split(client.path, "train", model_spec)
        support, query = draw_batches(x, y, client.seed)
        meta = compute_gradient(predict, weights, support, query, inner_steps, client.learning_rate, task=task)
        validation = Batch(*read_split(client.path, "validation", model_spec))
        has_validation = tf.shape(validation.y)[0] > 0
        judged = fine_tune(weights, x, y, client.seed, own) if train else meta.adapted
        loss = tf.where(has_validation, compute_loss(predict, judged, validation, task), meta.query_loss)
        num_train = tf.cast(tf.shape(y)[0], tf.float32)
        query_labels, _ = split_labels(query.y, task)
        num_query = tf.reduce_sum(task.compute_weights(query_labels))  # examples, or what the task weighs them by
        weight = compute_unnormalized_weight(weighting, loss, own.resource, num_train)
        # Updates point downhill, as in all algorithms.
        result = reject_if_not_finite([-g for g in meta.gradient], meta.query_loss * num_query, num_query)
        # The judged model can have diverged where the update has not, and a weight of NaN would make the sum NaN.
        is_judged = tf.math.is_finite(weight)
        weight = tf.where(is_judged & (tf.shape(y)[0] > 0), weight, 0.0)  # a padded place in the cohort has none
        return ClientUpdate(reject_unless(is_judged, result), tf.constant(0), weight)

    return work
