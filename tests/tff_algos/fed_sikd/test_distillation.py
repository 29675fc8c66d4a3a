"""The student's loss, by hand."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tff_algos.fed_sikd.distillation import compute_divergence, distillation_loss

LOG_2, LOG_3 = math.log(2), math.log(3)
# KL of (3/4, 1/4) from the uniform (1/2, 1/2).
KL_THREE_TO_ONE = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)


def compute_loss(student, teacher, label_weight=0.5, temperature=2.0, temperature_squared=False, inputs="logits"):
    """The loss with all labels 0."""
    labels = tf.zeros(len(student), tf.int32)
    student, teacher = tf.constant(student, tf.float32), tf.constant(teacher, tf.float32)
    loss = distillation_loss(labels, student, teacher, label_weight, temperature, temperature_squared, inputs)
    assert loss.shape == () and loss.dtype == tf.float32
    return float(loss)


@pytest.mark.parametrize(("temperature_squared", "factor"), [(False, 1), (True, 4)])
def test_hand_worked(temperature_squared, factor):
    """Student (0, 0): CE ln 2. Teacher (2 ln 3, 0) over T = 2 is (3/4, 1/4). w = 1/4, T^2 = 4."""
    loss = compute_loss([[0, 0]], [[2 * LOG_3, 0]], label_weight=0.25, temperature_squared=temperature_squared)
    assert loss == pytest.approx(0.25 * LOG_2 + 0.75 * factor * KL_THREE_TO_ONE, rel=1e-6)


def test_divergence_goes_from_teacher_to_student():
    """Teacher (1/2, 1/2), student (3/4, 1/4): KL = ln(2/3)/2 + ln(2)/2, unlike the other direction."""
    divergence = compute_divergence(tf.constant([[LOG_3, 0.0]]), tf.zeros((1, 2)), 1.0, "logits")
    np.testing.assert_allclose(divergence, [0.5 * math.log(2 / 3) + 0.5 * LOG_2], rtol=1e-6)


def test_mean_over_the_batch():
    """The second example has teacher = student = (0, 0) and adds ln 2 of CE only."""
    loss = compute_loss([[0, 0], [0, 0]], [[2 * LOG_3, 0], [0, 0]])
    assert loss == pytest.approx(0.5 * LOG_2 + 0.5 * KL_THREE_TO_ONE / 2, rel=1e-6)


def test_probabilities_are_softened_again():
    """Teacher (ln 3, 0) has probabilities (3/4, 1/4); over T = 1/2 their difference is 1, so p = 1 / (1 + e^-1)."""
    p = 1 / (1 + math.exp(-1))
    expected = p * math.log(2 * p) + (1 - p) * math.log(2 * (1 - p))
    loss = compute_loss([[0, 0]], [[LOG_3, 0]], label_weight=0, temperature=0.5, inputs="probabilities")
    assert loss == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("inputs", ["logits", "probabilities"])
def test_a_student_like_its_teacher_has_no_divergence(inputs):
    logits = np.random.default_rng(0).normal(scale=9, size=(5, 3))
    assert compute_loss(logits, logits, label_weight=0, temperature_squared=True, inputs=inputs) == 0


def test_gradient():
    """d KL / d student logits = (q - p) / T: q = (1/2, 1/2), p = (3/4, 1/4), T = 2."""
    student = tf.Variable([[0.0, 0.0]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(compute_divergence(student, tf.constant([[2 * LOG_3, 0.0]]), 2.0, "logits"))
    np.testing.assert_allclose(tape.gradient(loss, student), [[-0.125, 0.125]], rtol=1e-6)


def test_extreme_logits_are_finite():
    """Teacher sure of class 1, student of class 0, 20,000 apart: KL = 20,000 / T; the gradient is finite, too."""
    student = tf.Variable([[1e4, -1e4]])
    with tf.GradientTape() as tape:
        loss = distillation_loss([0], student, tf.constant([[-1e4, 1e4]]), 0.5, 2.0, False, "logits")
    assert float(loss) == pytest.approx(0.5 * 1e4)
    assert np.all(np.isfinite(tape.gradient(loss, student)))


def test_half_precision_logits_are_computed_in_float32():
    loss = distillation_loss(
        [0], tf.zeros((1, 2), tf.bfloat16), tf.zeros((1, 2), tf.float32), 0.5, 2.0, False, "logits"
    )
    assert loss.dtype == tf.float32 and float(loss) == pytest.approx(0.5 * LOG_2)
