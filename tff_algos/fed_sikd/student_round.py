"""The students' half of a FedSiKD round, as a TFF computation: the clusters' teachers distilled into the student."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from models.model_spec import ModelSpec
from tff_algos.client.client_data import read_split
from tff_algos.client.cohort import CLIENT_INPUT_TYPE
from tff_algos.client.joined_optimizer import as_written
from tff_algos.client.local_training import predict_logits, train_locally
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.fed_sikd.distillation import distillation_loss
from tff_algos.protocol import Weights
from tff_algos.rounds.aggregation import (
    ClientUpdate,
    GroupTotals,
    RoundTotals,
    compute_group_means,
    sum_by_group,
    summarize_totals,
)
from tff_algos.rounds.private_aggregation import sum_clipped_by_group
from tff_algos.weights import add_deltas, build_model_type, build_stacked_type


class TeacherScore(NamedTuple):
    """How a teacher does on its members' train splits: correct and all examples, float32; summed over clients.

    Where an example is not just right or wrong, it counts by its score, see `Task.compute_scores`.
    """

    num_correct: tf.Tensor
    num_examples: tf.Tensor


class StudentRoundTotals(NamedTuple):
    """Scalars of a student round: the shared ones, and the accuracy of the teachers on their members' train splits."""

    totals: RoundTotals
    teacher_accuracy: tf.Tensor


def compute_global_update(totals: GroupTotals, weighting: str) -> tuple[tf.Tensor, ...]:
    """Mean of the cluster means, over clusters equally as printed, or by their weights.

    A cluster has no say in a round in which none of its members counts.
    """
    weight = totals.weight if weighting == "examples" else tf.cast(totals.weight > 0, tf.float32)
    share = tf.math.divide_no_nan(weight, tf.reduce_sum(weight))
    return tuple(tf.tensordot(share, mean, axes=1) for mean in compute_group_means(totals))


def _build_models_type(student: Weights, teacher: Weights, num_clusters: int) -> tff.StructWithPythonType:
    return tff.StructWithPythonType([build_model_type(student), build_stacked_type(teacher, num_clusters)], tuple)


def _build_client_work(
    model_spec: ModelSpec, config: FedSiKDConfig, models_type: tff.StructWithPythonType, has_teacher: bool
) -> Callable:
    """Steps 2 and 3, (<student, teachers>, ClientInput) -> <ClientUpdate, TeacherScore>."""

    @as_written
    def compute_loss(batch):
        return distillation_loss(
            batch.labels,
            batch.logits,
            batch.targets,  # the teacher's logits
            label_weight=config.label_weight,
            temperature=config.temperature,
            temperature_squared=config.temperature_squared,
            distillation_inputs=config.distillation_inputs,
            task=model_spec.task,
        )

    @tff.tensorflow.computation(models_type, CLIENT_INPUT_TYPE)
    def client_work(models, client):
        start, teachers = models
        x, y = read_split(client.path, "train", model_spec)
        loss_fn, teacher_logits, num_correct = None, None, tf.constant(0.0)
        if has_teacher:
            # The teacher's logits are computed once a round: it does not change while the student trains.
            own_teacher = tuple(stacked[client.group] for stacked in teachers)
            loss_fn, teacher_logits = compute_loss, predict_logits(model_spec.teacher, own_teacher, x)
            num_correct = tf.reduce_sum(tf.cast(model_spec.task.compute_scores(y, teacher_logits), tf.float32))
        result = train_locally(
            model_spec,
            config.student,
            tuple(start),
            x,
            y,
            client.seed,
            client.learning_rate,
            loss_fn=loss_fn,
            targets=teacher_logits,
        )
        score = TeacherScore(num_correct, tf.cast(tf.shape(y)[0], tf.float32))
        return ClientUpdate(result, client.group, client.weight), score

    return client_work


def build_student_round(
    model_spec: ModelSpec, config: FedSiKDConfig, student: Weights, teacher: Weights, num_clusters: int
) -> Callable:
    """The computation of steps 2 to 4 of the round.

    Functional type: (<student, teachers>@SERVER, {ClientInput}@CLIENTS) -> <student@SERVER, StudentRoundTotals@SERVER>.
    With `label_weight` 1 there is no teacher: `teacher` is empty, and the loss is the task's.
    """
    models_type = _build_models_type(student, teacher, num_clusters)
    client_work = _build_client_work(model_spec, config, models_type, bool(teacher))

    @tff.tensorflow.computation
    def server_update(student, totals, score):
        update = compute_global_update(totals, config.weighting)
        accuracy = score.num_correct / score.num_examples
        return add_deltas(student, update), StudentRoundTotals(summarize_totals(totals), accuracy)

    @tff.federated_computation(
        tff.FederatedType(models_type, tff.SERVER), tff.FederatedType(CLIENT_INPUT_TYPE, tff.CLIENTS)
    )
    def run_round(models, clients):
        updates, scores = tff.federated_map(client_work, (tff.federated_broadcast(models), clients))
        totals = sum_by_group(updates, num_clusters)
        return tff.federated_map(server_update, (models[0], totals, tff.federated_sum(scores)))

    return run_round


def build_private_student_sums(
    model_spec: ModelSpec, config: FedSiKDConfig, student: Weights, teacher: Weights, num_clusters: int
) -> Callable:
    """Steps 2 and 3 with private updates: for each cluster the sum of its clients' updates, clipped, without noise.

    Functional type: (<student, teachers>@SERVER, S@SERVER, {ClientInput}@CLIENTS) -> <sums, ClipCounts,
    StudentRoundTotals>@SERVER. A client's weight is as in `private_aggregation.clip_client`.
    """
    models_type = _build_models_type(student, teacher, num_clusters)
    client_work = _build_client_work(model_spec, config, models_type, bool(teacher))

    @tff.tensorflow.computation
    def summarize(totals, counts, score):
        accuracy = score.num_correct / score.num_examples
        return totals.deltas, counts, StudentRoundTotals(summarize_totals(totals), accuracy)

    @tff.federated_computation(
        tff.FederatedType(models_type, tff.SERVER),
        tff.FederatedType(np.float32, tff.SERVER),
        tff.FederatedType(CLIENT_INPUT_TYPE, tff.CLIENTS),
    )
    def compute_sums(models, clip_norm, clients):
        updates, scores = tff.federated_map(client_work, (tff.federated_broadcast(models), clients))
        totals, counts = sum_clipped_by_group(updates, clip_norm, num_clusters)
        return tff.federated_map(summarize, (totals, counts, tff.federated_sum(scores)))

    return compute_sums
