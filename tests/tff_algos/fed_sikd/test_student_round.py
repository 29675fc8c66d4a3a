"""The student's loss, and the mean over clusters, by hand."""

import math

import numpy as np
import pytest
import tensorflow as tf
from small_runs import assert_same

from models.task import build_task
from tff_algos.fed_sikd.student_round import (
    ClusterMeanAggregator,
    average_clusters,
    compute_distillation_losses,
    compute_divergence,
)
from tff_algos.rounds.aggregation import GroupTotals
from tff_algos.rounds.aggregators import SumAggregator

LOG_2, LOG_3 = math.log(2), math.log(3)
# KL of (3/4, 1/4) from the uniform (1/2, 1/2).
KL_THREE_TO_ONE = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)


def compute_loss(student, teacher, label_weight=0.5, temperature=2.0, temperature_squared=False, inputs="logits"):
    """The loss with all labels 0."""
    labels = tf.zeros(len(student), tf.int32)
    student, teacher = tf.constant(student, tf.float32), tf.constant(teacher, tf.float32)
    losses = compute_distillation_losses(
        labels, student, teacher, label_weight, temperature, temperature_squared, inputs
    )
    assert losses.shape == labels.shape and losses.dtype == tf.float32
    return float(tf.reduce_mean(losses))


SHARP = 1 / (1 + math.exp(-1))
LIKE = np.random.default_rng(0).normal(scale=9, size=(5, 3))


@pytest.mark.parametrize(
    ("student", "teacher", "options", "expected"),
    [
        # Student (0, 0): CE ln 2. Teacher (2 ln 3, 0) over T = 2 is (3/4, 1/4).
        ([[0, 0]], [[2 * LOG_3, 0]], {"label_weight": 0.25}, 0.25 * LOG_2 + 0.75 * KL_THREE_TO_ONE),
        (
            [[0, 0]],
            [[2 * LOG_3, 0]],
            {"label_weight": 0.25, "temperature_squared": True},
            0.25 * LOG_2 + 0.75 * 4 * KL_THREE_TO_ONE,
        ),
        # The mean over the batch: the second example has teacher = student = (0, 0) and adds ln 2 of CE only.
        ([[0, 0], [0, 0]], [[2 * LOG_3, 0], [0, 0]], {}, 0.5 * LOG_2 + 0.5 * KL_THREE_TO_ONE / 2),
        # Probabilities are softened again: those of (ln 3, 0) are (3/4, 1/4), whose difference over T = 1/2 is 1.
        (
            [[0, 0]],
            [[LOG_3, 0]],
            {"label_weight": 0, "temperature": 0.5, "inputs": "probabilities"},
            SHARP * math.log(2 * SHARP) + (1 - SHARP) * math.log(2 * (1 - SHARP)),
        ),
        # A student like its teacher has no divergence.
        (LIKE, LIKE, {"label_weight": 0, "temperature_squared": True}, 0),
        (LIKE, LIKE, {"label_weight": 0, "temperature_squared": True, "inputs": "probabilities"}, 0),
    ],
)
def test_losses_by_hand(student, teacher, options, expected):
    assert compute_loss(student, teacher, **options) == pytest.approx(expected, rel=1e-5, abs=0)


def test_divergence_goes_from_teacher_to_student():
    """Teacher (1/2, 1/2), student (3/4, 1/4): KL = ln(2/3)/2 + ln(2)/2, unlike the other direction."""
    divergence = compute_divergence(tf.constant([[LOG_3, 0.0]]), tf.zeros((1, 2)), 1.0, "logits")
    np.testing.assert_allclose(divergence, [0.5 * math.log(2 / 3) + 0.5 * LOG_2], rtol=1e-6)


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
        loss = compute_distillation_losses([0], student, tf.constant([[-1e4, 1e4]]), 0.5, 2.0, False, "logits")
    assert float(loss) == pytest.approx(0.5 * 1e4)
    assert np.all(np.isfinite(tape.gradient(loss, student)))


def compute_task_loss(task, labels, student, teacher, **options):
    options = {"label_weight": 0.25, "temperature": 2.0, "temperature_squared": True, **options}
    student, teacher = tf.constant(student, tf.float32), tf.constant(teacher, tf.float32)
    options |= {"distillation_inputs": "logits", "task": task}
    losses = compute_distillation_losses(tf.constant(labels), student, teacher, **options)
    return float(task.average(losses, tf.constant(labels)))


def test_switches_are_distilled_as_coins():
    """A teacher of 3/4 after softening, a student of 1/2: KL = 3/4 log(3/2) + 1/4 log(1/2), and 0 for the other one.

    The student's own loss is log 2 at each label.
    """
    task = build_task("multi_label", 2, (2,))
    divergence = (0.75 * math.log(1.5) + 0.25 * math.log(0.5)) / 2
    loss = compute_task_loss(task, np.array([[1, 0]], np.uint8), [[0, 0]], [[2 * LOG_3, 0]])
    assert loss == pytest.approx(0.25 * math.log(2) + 0.75 * 4 * divergence, rel=1e-5)
    switch = compute_task_loss(build_task("binary", 1), np.array([1]), [[0]], [[2 * LOG_3]], label_weight=0)
    assert switch == pytest.approx(4 * 2 * divergence, rel=1e-5)


def test_a_switch_is_distilled_as_two_classes_are():
    """The logits z and 0 of two classes say what one logit z of a switch says."""
    options = {"label_weight": 0.3, "temperature": 1.5}
    switch = compute_task_loss(build_task("binary", 1), np.array([1, 0]), [[0.7], [-1]], [[2], [0.1]], **options)
    student, teacher = [[0, 0.7], [0, -1]], [[0, 2], [0, 0.1]]
    classes = compute_task_loss(build_task("classification", 2), np.array([1, 0]), student, teacher, **options)
    assert switch == pytest.approx(classes, rel=1e-5)


def test_a_regression_is_drawn_to_the_teachers_outputs_whatever_the_temperature():
    """Label (6 - 4) / 2 = 1 and teacher 3, student 0: 0.25 * 1 + 0.75 * 9."""
    task = build_task("regression", 1, label_offset=(4.0,), label_scale=(2.0,))
    for temperature in (1.0, 2.0):
        loss = compute_task_loss(task, np.array([6.0], np.float32), [[0]], [[3]], temperature=temperature)
        assert loss == 0.25 + 0.75 * 9


def test_tokens_are_distilled_by_position_and_padding_is_not():
    """Three tokens in two rows, each with the loss of a classification; the padded position has a mad teacher."""
    classes, tokens = build_task("classification", 2), build_task("next_token", 2, (2,), padding_label=-1)
    student, teacher = np.array([[0.3, 0], [1, -1], [0, 2]]), np.array([[2, 0], [0, 1], [1, 1]])
    expected = compute_task_loss(classes, np.array([1, 0, 1]), student, teacher)
    pad = lambda values, fill: np.concatenate([values, [[fill, -fill]]]).reshape(2, 2, 2)
    loss = compute_task_loss(tokens, np.array([[1, 0], [1, -1]]), pad(student, 5.0), pad(teacher, -50.0))
    assert loss == pytest.approx(expected, rel=1e-5)


def average(deltas, weights, weighting):
    """The mean over clusters with these sums of weight * update and these sums of weights."""
    nothing = tf.constant(0.0)
    totals = GroupTotals(
        deltas=tuple(tf.constant(delta) for delta in deltas),
        weight=tf.constant(weights),
        squared_norm=tf.zeros(len(weights)),
        loss_sum=nothing,
        num_trained=nothing,
        num_rejected=tf.constant(0),
    )
    sizes = np.ones(len(weights), np.int64)
    by_cluster, joined = (
        aggregator.aggregate([], totals, (), sizes, (), 1)
        for aggregator in (SumAggregator(), ClusterMeanAggregator(weighting))
    )
    mean = average_clusters(by_cluster.update, by_cluster.weight, weighting)
    # Whether the aggregator or the server averages the clusters, which it does with a single row, too.
    assert_same(mean, average_clusters(joined.update, joined.weight, weighting))
    assert joined.has_update.tolist() == [sum(weights) > 0]
    return mean


@pytest.mark.parametrize(("weighting", "expected"), [("equal", 3.0), ("examples", 3.5)])
def test_a_cluster_without_members_has_no_say(weighting, expected):
    """Means 2 / 1 = 2 and 12 / 3 = 4: equally (2 + 4) / 2 = 3, by examples (1 * 2 + 3 * 4) / 4 = 3.5."""
    (update,) = average([[[2.0], [12.0], [0.0]]], [1.0, 3.0, 0.0], weighting)
    np.testing.assert_allclose(update, [expected])


def test_every_weight_keeps_its_shape():
    """Means (1, 2; 3, 4) and (5, 6; 7, 8) of the first weight, 1 and -1 of the second."""
    matrices = np.float32([[[1, 2], [3, 4]], [[10, 12], [14, 16]]])
    kernel, scalar = average([matrices, np.float32([1, -2])], [1.0, 2.0], "equal")
    np.testing.assert_allclose(kernel, [[3, 4], [5, 6]])
    np.testing.assert_allclose(scalar, 0)


@pytest.mark.parametrize("weighting", ["equal", "examples"])
def test_if_nobody_counts_nothing_moves(weighting):
    (update,) = average([[[0.0], [0.0]]], [0.0, 0.0], weighting)
    np.testing.assert_array_equal(update, [0.0])
