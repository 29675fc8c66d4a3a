"""FedSiKD's student loss: cross-entropy with the labels, and divergence from the cluster's teacher (section IV-C)."""

import tensorflow as tf


def distillation_loss(
    labels: tf.Tensor,
    student_logits: tf.Tensor,
    teacher_logits: tf.Tensor,
    label_weight: float,
    temperature: float,
    temperature_squared: bool,
    distillation_inputs: str,
) -> tf.Tensor:
    """`w * CE(labels, student) + (1 - w) * KL(teacher || student) [* T^2]`, mean over the batch, in any graph.

    The distributions in the KL term are softmax(logits / T), or softmax(softmax(logits) / T) with
    `distillation_inputs='probabilities'`, as in the authors' published code; the paper's text does not say.

    Args:
      labels: int, shape (batch,).
      student_logits: shape (batch, classes).
      teacher_logits: shape (batch, classes).
      label_weight: w in [0, 1], a Python number.
      temperature: T > 0.
      temperature_squared: multiply the KL term by T^2 (Hinton et al. 2015), so that large T does not weaken it.
      distillation_inputs: 'logits' or 'probabilities'.

    Returns:
      float32 scalar.
    """
    student_logits = tf.cast(student_logits, tf.float32)
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, student_logits)
    teacher_logits = tf.cast(teacher_logits, tf.float32)
    divergence = compute_divergence(student_logits, teacher_logits, temperature, distillation_inputs)
    divergence_factor = temperature**2 if temperature_squared else 1.0
    return tf.reduce_mean(label_weight * cross_entropy + (1 - label_weight) * divergence_factor * divergence)


def compute_divergence(
    student_logits: tf.Tensor, teacher_logits: tf.Tensor, temperature: float, distillation_inputs: str
) -> tf.Tensor:
    """KL(teacher || student) of each example's softened predictions, in nats, shape (batch,)."""
    if distillation_inputs == "probabilities":
        student_logits, teacher_logits = tf.nn.softmax(student_logits), tf.nn.softmax(teacher_logits)
    student_log = tf.nn.log_softmax(student_logits / temperature)
    teacher_log = tf.nn.log_softmax(teacher_logits / temperature)
    return tf.reduce_sum(tf.exp(teacher_log) * (teacher_log - student_log), axis=-1)
