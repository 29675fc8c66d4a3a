"""Prototypes: made of embeddings, put together at the server, pulled to in training, and turned into a classifier."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from models.embedding import split_outputs
from models.model_spec import ModelSpec
from tff_algos.client.training_steps import Batch, LossFn

_BATCH_SIZE = 500  # bounds the memory of the activations


class Prototypes(NamedTuple):
    """Of each class the mean embedding, float32 (classes, width), and of how many examples, float32 (classes,).

    A class without examples has no prototype: its row is zeros.
    """

    means: np.ndarray | tf.Tensor
    counts: np.ndarray | tf.Tensor


def compute_prototypes(spec: ModelSpec, weights: Sequence[tf.Tensor], x: tf.Tensor, y: tf.Tensor) -> Prototypes:
    """Eq. (3): C_i^(j) = 1 / |D_ij| sum of f_i(x) over the examples of class j; call it while a graph is traced.

    Args:
      spec: of `expose_embedding`.
      weights: of the model.
      x: examples as stored, shape (examples, *input_shape).
      y: labels, int32, shape (examples,).
    """
    model, num_classes = spec.build(), spec.task.num_outputs
    width = model.output_shape[1] - num_classes

    @tf.function
    def add_up(x, y):
        for variable, value in zip(model.weights, weights, strict=True):
            variable.assign(value)
        sums, counts = tf.zeros((num_classes, width)), tf.zeros(num_classes)
        for start in tf.range(0, tf.shape(y)[0], _BATCH_SIZE):
            labels = y[start : start + _BATCH_SIZE]
            outputs = model(spec.preprocess(x[start : start + _BATCH_SIZE]), training=False)
            _, embedding = split_outputs(outputs, num_classes)
            sums += tf.math.unsorted_segment_sum(embedding, labels, num_classes)
            counts += tf.math.unsorted_segment_sum(tf.ones_like(labels, tf.float32), labels, num_classes)
        return Prototypes(tf.math.divide_no_nan(sums, counts[:, tf.newaxis]), counts)

    return add_up(x, y)


def aggregate_prototypes(before: Prototypes, sent: Sequence[Prototypes]) -> Prototypes:
    """Eq. (6): the mean over the clients of a round, by their examples of the class; in float64, on the host.

    A class that no client of the round has keeps its prototype.
    """
    counts = sum((each.counts.astype(np.float64) for each in sent), np.zeros(before.counts.shape))
    sums = sum(
        (each.means.astype(np.float64) * each.counts[:, np.newaxis] for each in sent), np.zeros_like(before.means)
    )
    is_new = counts > 0
    means = np.where(is_new[:, np.newaxis], sums / np.maximum(counts, 1)[:, np.newaxis], before.means)
    return Prototypes(means.astype(np.float32), np.where(is_new, counts, before.counts).astype(np.float32))


def compute_spread(prototypes: Prototypes, sent: Sequence[Prototypes]) -> float:
    """The second sum of Eq. (5): how far the clients' prototypes lie from the global ones, by examples.

    The distance is that of `build_loss`; the mean is over all examples, NaN without any.
    """
    distances = [np.square(each.means - prototypes.means, dtype=np.float64).mean(axis=1) for each in sent]
    total = sum(float(each.counts.sum()) for each in sent)
    pulled = sum(float(each.counts @ distance) for each, distance in zip(sent, distances, strict=True))
    return pulled / total if total else float("nan")


def build_loss(spec: ModelSpec, weight: float, prototypes: Prototypes) -> LossFn:
    """Eq. (7): the task's loss plus lambda times the distance of the embedding to the global prototype of its class.

    The distance is the squared one, divided by the width; 0 where a class has no prototype. Class weights multiply the
    task's loss alone.
    """

    @tf.autograph.experimental.do_not_convert
    def compute_losses(batch: Batch) -> tf.Tensor:
        logits, embedding = split_outputs(batch.logits, spec.task.num_outputs)
        losses = spec.task.compute_training_losses(batch.labels, logits)
        if not weight:  # decided while the graph is made: local training has no such term
            return losses
        distances = tf.reduce_mean(tf.square(embedding - tf.gather(prototypes.means, batch.labels)), axis=1)
        is_known = tf.gather(prototypes.counts, batch.labels) > 0
        return losses + weight * tf.where(is_known, distances, 0.0)

    return compute_losses


def build_nearest_head(prototypes: Prototypes) -> tuple[np.ndarray, np.ndarray]:
    """Eq. (4) as a dense layer, (kernel (width, classes), bias (classes,)): its largest logit is the nearest prototype.

    |z - c|^2 = |z|^2 - (2 z c - |c|^2), and |z|^2 is the same for all classes. A class without a prototype gets the
    logit of one that has one, less 1, so that it is never predicted. There must be one.
    """
    means = prototypes.means
    bias = -np.square(means).sum(axis=1)
    known = np.flatnonzero(prototypes.counts > 0)
    source = np.where(prototypes.counts > 0, np.arange(len(means)), known[0])
    return 2 * means[source].T, (bias[source] - (prototypes.counts == 0)).astype(np.float32)
