"""The students' half of a FedSiKD round: teachers are distilled into the student, then the clusters are averaged.

FedSiKD's student loss: that of the labels, and divergence from the cluster's teacher (section IV-C).

The paper's divergence is that of two distributions over classes. Tasks of other outputs have the like of it: the mean
over labels of the divergence of two coins (switches), the mean over tokens without padding of that of two distributions
(next token), and of a regression the mean squared distance to the teacher's outputs, which no temperature changes.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from models.model_spec import ModelSpec
from models.task import CLASSIFICATION, Task
from tff_algos.client.client_data import read_split, split_labels
from tff_algos.client.joined_optimizer import as_written
from tff_algos.client.local_training import predict_logits, train_locally
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.rounds.aggregation import ClientUpdate, GroupTotals, compute_group_means
from tff_algos.rounds.aggregators import Aggregate, SumAggregator
from tff_algos.rounds.training_phase import LocalWork, Sent, Told


def compute_distillation_losses(
    labels: tf.Tensor,
    student_logits: tf.Tensor,
    teacher_logits: tf.Tensor,
    label_weight: float,
    temperature: float,
    temperature_squared: bool,
    distillation_inputs: str,
    task: Task = CLASSIFICATION,
) -> tf.Tensor:
    """`w * loss(labels, student) + (1 - w) * KL(teacher || student) [* T^2]` of each example, in any graph.

    The distributions in the KL term are softmax(logits / T), or softmax(softmax(logits) / T) with
    `distillation_inputs='probabilities'`, as in the authors' published code; the paper's text does not say. The loss of
    labels is `Task.compute_training_losses`, with class weights or a loss of the user's own; the KL term has neither.

    Args:
      labels: in the task's dtype, shape (batch, *label_shape).
      student_logits: the student's outputs, shape (batch, *output_shape).
      teacher_logits: the teacher's.
      label_weight: w in [0, 1], a Python number.
      temperature: T > 0.
      temperature_squared: multiply the KL term by T^2 (Hinton et al. 2015), so that large T does not weaken it.
      distillation_inputs: 'logits' or 'probabilities'.
      task: what the labels are.

    Returns:
      float32, shape (batch,).
    """
    student_logits = tf.cast(student_logits, tf.float32)
    losses = task.compute_training_losses(labels, student_logits)
    teacher_logits = tf.cast(teacher_logits, tf.float32)
    divergence = _compute_task_divergence(
        task, labels, student_logits, teacher_logits, temperature, distillation_inputs
    )
    # T^2 makes up for logits that were divided by T, which a regression's are not.
    has_temperature = task.kind.activation != "identity"
    divergence_factor = temperature**2 if temperature_squared and has_temperature else 1.0
    return label_weight * losses + (1 - label_weight) * divergence_factor * divergence


def _compute_task_divergence(task: Task, labels, student, teacher, temperature, distillation_inputs) -> tf.Tensor:
    """Of each example, shape (batch,)."""
    if task.kind.activation == "identity":
        return tf.reduce_mean(tf.square(teacher - student), axis=-1)
    if task.kind.activation == "sigmoid":
        return compute_switch_divergence(student, teacher, temperature, distillation_inputs)
    divergence = compute_divergence(student, teacher, temperature, distillation_inputs)
    return task.average_tokens(divergence, labels) if task.kind.weighs_examples else divergence


def compute_divergence(
    student_logits: tf.Tensor, teacher_logits: tf.Tensor, temperature: float, distillation_inputs: str
) -> tf.Tensor:
    """KL(teacher || student) of softened predictions of one class, in nats, shape (..., classes) to (...)."""
    if distillation_inputs == "probabilities":
        student_logits, teacher_logits = tf.nn.softmax(student_logits), tf.nn.softmax(teacher_logits)
    student_log = tf.nn.log_softmax(student_logits / temperature)
    teacher_log = tf.nn.log_softmax(teacher_logits / temperature)
    return tf.reduce_sum(tf.exp(teacher_log) * (teacher_log - student_log), axis=-1)


def compute_switch_divergence(
    student_logits: tf.Tensor, teacher_logits: tf.Tensor, temperature: float, distillation_inputs: str
) -> tf.Tensor:
    """KL(teacher || student) of softened predictions of labels that are on or off, in nats.

    The mean over the labels: shape (batch, labels) to (batch,).
    """
    if distillation_inputs == "probabilities":
        student_logits, teacher_logits = tf.sigmoid(student_logits), tf.sigmoid(teacher_logits)
    student, teacher = student_logits / temperature, teacher_logits / temperature
    on = tf.sigmoid(teacher) * (tf.math.log_sigmoid(teacher) - tf.math.log_sigmoid(student))
    off = tf.sigmoid(-teacher) * (tf.math.log_sigmoid(-teacher) - tf.math.log_sigmoid(-student))
    return tf.reduce_mean(on + off, axis=-1)


class TeacherScore(NamedTuple):
    """How a teacher does on its members' train splits: correct and all examples, float32; summed over clients.

    Where an example is not just right or wrong, it counts by its score, see `Task.compute_scores`.
    """

    num_correct: tf.Tensor
    num_examples: tf.Tensor


def build_distillation(model_spec: ModelSpec, config: FedSiKDConfig) -> LocalWork:
    """Steps 2 and 3 of the round, what a client does with `(student, teachers stacked by cluster)`.

    Beside its update it sends a `TeacherScore`. With `label_weight` 1 there is no teacher: `teachers` is empty, and the
    loss is the task's.
    """

    training, trains_teacher = config.student, config.trains_teacher
    names = "label_weight", "temperature", "temperature_squared", "distillation_inputs"
    options = {name: getattr(config, name) for name in names}

    @as_written
    def compute_losses(batch):
        # The targets are the teacher's logits.
        return compute_distillation_losses(batch.labels, batch.logits, batch.targets, task=model_spec.task, **options)

    def work(told: Told) -> Sent:
        client, (student, teachers) = told.client, told.models
        x, y = read_split(client.path, "train", model_spec)
        loss_fn, teacher_logits, num_correct = None, None, tf.constant(0.0)
        if trains_teacher:
            # The teacher's logits are computed once a round: it does not change while the student trains.
            own_teacher = tuple(stacked[client.group] for stacked in teachers)
            loss_fn, teacher_logits = compute_losses, predict_logits(model_spec.teacher, own_teacher, x)
            labels, _ = split_labels(y, model_spec.task)
            num_correct = tf.reduce_sum(tf.cast(model_spec.task.compute_scores(labels, teacher_logits), tf.float32))
        result = train_locally(
            model_spec,
            training,
            tuple(student),
            x,
            y,
            client.seed,
            client.learning_rate,
            loss_fn=loss_fn,
            targets=teacher_logits,
        )
        score = TeacherScore(num_correct, tf.cast(tf.shape(y)[0], tf.float32))
        return Sent(ClientUpdate(result, client.group, client.weight), score)

    return work


def average_clusters(
    updates: Sequence[tf.Tensor | np.ndarray], weight: tf.Tensor | np.ndarray, weighting: str
) -> tuple[tf.Tensor, ...]:
    """The mean of the clusters' updates, over clusters equally as printed, or by their weights, in any graph.

    A cluster without an update has no say; if none has one, the mean is zero.

    Args:
      updates: float32, stacked by cluster.
      weight: of each cluster, 0 without an update, float32, shape (clusters,).
      weighting: "equal" or "examples".
    """
    weight = weight if weighting == "examples" else tf.cast(weight > 0, tf.float32)
    share = tf.math.divide_no_nan(weight, tf.reduce_sum(weight))
    return tuple(tf.tensordot(share, update, axes=1) for update in updates)


@dataclasses.dataclass(frozen=True, eq=False)
class ClusterMeanAggregator(SumAggregator):
    """The mean of the clusters' means, in one row; made in the graph, so that one model comes back, not one a cluster.

    Attributes:
      weighting: see `average_clusters`.
    """

    weighting: str

    def reduce(self, totals: GroupTotals) -> tuple[tf.Tensor, ...]:
        means = average_clusters(compute_group_means(totals), totals.weight, self.weighting)
        return tuple(mean[tf.newaxis] for mean in means)

    def finish(self, values, weight, counts, sizes, state, round_num) -> Aggregate:
        return super().finish(values, weight.sum(keepdims=True), counts, sizes, state, round_num)
