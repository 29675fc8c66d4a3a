"""FedSiKD's student loss: that of the labels, and divergence from the cluster's teacher (section IV-C).

The paper's divergence is that of two distributions over classes. Tasks of other outputs have the like of it: the mean
over labels of the divergence of two coins (switches), the mean over tokens without padding of that of two distributions
(next token), and of a regression the mean squared distance to the teacher's outputs, which no temperature changes.
"""

import tensorflow as tf

from models.task import CLASSIFICATION, Task


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
