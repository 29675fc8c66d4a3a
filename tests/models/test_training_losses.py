"""What clients minimise: class weights and a loss of one's own, where they enter and where they do not, by hand."""

import dataclasses
import math
import pathlib
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_format

from models.model_spec import ModelSpec
from models.on_device_training import _compute_loss
from models.task import build_task
from tff_algos.amfl_p import maml
from tff_algos.client.local_training import train_locally
from tff_algos.client.training_steps import Batch
from tff_algos.fed_proto.process import Prototypes, build_loss
from tff_algos.fed_sikd.student_round import compute_distillation_losses
from tff_algos.settings.local_training import LocalTrainingConfig

LN2 = math.log(2)
PLAIN = build_task("classification", 2)
WEIGHTED = dataclasses.replace(PLAIN, class_weights=(3.0, 1.0))
ONES = dataclasses.replace(PLAIN, class_weights=(1.0, 1.0))
LABELS, EVEN = tf.constant([0, 1, 1]), tf.zeros((3, 2))
ALGORITHMS = pathlib.Path(__file__).parents[2] / "tff_algos"


def build_scalar():
    """Two logits (a x, 0): one trained weight a."""
    inputs = tf.keras.Input((1,))
    logit = tf.keras.layers.Dense(1, use_bias=False)(inputs)
    return tf.keras.Model(inputs, tf.keras.layers.Concatenate()([logit, tf.zeros_like(logit)]))


def train_weighted():
    """A step of SGD at rate 0.1 from a = 0, pulled to 1, on x = 1 of class 0 and x = 2 of class 1: (change, losses)."""
    spec = ModelSpec("scalar", build_scalar, make_format((1,), "float32", 2), task=WEIGHTED)
    config = LocalTrainingConfig(batch_size=2, epochs=1, optimizer="sgd", proximal_weight=1.0)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        client = tf.constant([[1.0], [2.0]]), tf.constant([0, 1]), tf.constant([1, 2])
        result = train_locally(spec, config, (tf.zeros((1, 1)),), *client, tf.constant(0.1), anchor=(tf.ones((1, 1)),))
        session.run(tf.compat.v1.global_variables_initializer())
        delta, losses = session.run((result.weights_delta[0], result.loss_sum))
    return float(delta[0, 0]), float(losses)


def differentiate(task):
    """(gradient by a, mean loss) of logits (a x, 0) at a = 0 for x = 1 of class 0 and x = 2 of class 1."""
    a = tf.constant(0.0)
    with tf.GradientTape() as tape:
        tape.watch(a)
        loss = task.mean_loss(tf.constant([0, 1]), tf.stack([a * tf.constant([1.0, 2.0]), tf.zeros(2)], axis=1))
    return float(tape.gradient(loss, a)), float(loss)


def test_a_weighted_gradient_by_hand():
    # Both chances are 1/2. The gradients by a are (1/2 - 1) * 1 = -1/2 and 1/2 * 2 = 1, of which the mean is 1/4.
    assert differentiate(PLAIN) == pytest.approx((0.25, LN2))
    # Weighted they are -3/2 and 1; the mean over two examples, not over the sum of weights, is -1/4.
    assert differentiate(WEIGHTED) == pytest.approx((-0.25, 2 * LN2))
    assert differentiate(dataclasses.replace(PLAIN, class_weights=(2.0, 2.0))) == pytest.approx((0.5, 2 * LN2))
    assert differentiate(ONES) == differentiate(PLAIN)


def test_a_client_takes_a_weighted_step_by_hand():
    # The pull of the proximal term, 0 - 1 with a loss of 1/2 for each of two examples, has no weight.
    assert train_weighted() == pytest.approx((0.1 * (0.25 + 1), 4 * LN2 + 1))


def test_weights_of_one_make_the_same_graph():
    def make_graph(task):
        with tf.Graph().as_default() as graph:
            task.mean_loss(tf.constant([0, 1]), tf.constant([[1.0, 2.0], [3.0, 5.0]]))
        return graph.as_graph_def()

    assert make_graph(ONES) == make_graph(PLAIN) != make_graph(WEIGHTED)


def test_tests_and_scores_have_no_weights():
    own = dataclasses.replace(WEIGHTED, own_loss=lambda labels, outputs: outputs[:, 0])
    for task in (WEIGHTED, own):
        np.testing.assert_allclose(task.compute_losses(LABELS, EVEN), [LN2] * 3, rtol=1e-6)
        assert task.compute_scores(LABELS, EVEN).numpy().tolist() == [1, 0, 0]
        np.testing.assert_array_equal(task.compute_weights(LABELS), [1, 1, 1])
    np.testing.assert_allclose(WEIGHTED.compute_training_losses(LABELS, EVEN), [3 * LN2, LN2, LN2], rtol=1e-6)


def test_binary_weights_are_of_two_classes():
    task = build_task("binary", 1, class_weights=(1.0, 4.0))
    losses = task.compute_training_losses(tf.constant([0, 1]), tf.zeros((2, 1)))
    np.testing.assert_allclose(losses, [LN2, 4 * LN2], rtol=1e-6)


def test_distillation_weighs_the_loss_of_labels_alone():
    teacher = tf.constant([[1.0, 0.0]] * 3)
    options = {"temperature": 2.0, "temperature_squared": True, "distillation_inputs": "logits"}

    def distill(task, label_weight):
        return compute_distillation_losses(LABELS, EVEN, teacher, label_weight, task=task, **options).numpy()

    np.testing.assert_array_equal(distill(WEIGHTED, 0.0), distill(PLAIN, 0.0))
    np.testing.assert_allclose(distill(WEIGHTED, 0.5) - distill(PLAIN, 0.5), [LN2, 0, 0], rtol=1e-5, atol=1e-7)


def test_prototypes_have_no_weights():
    batch = Batch(LABELS, tf.concat([EVEN, tf.constant([[1.0], [1.0], [3.0]])], 1), None, (), ())
    prototypes = Prototypes(tf.constant([[0.0], [2.0]]), tf.constant([5.0, 5.0]))
    losses = build_loss(SimpleNamespace(task=WEIGHTED), 10.0, prototypes)(batch)
    np.testing.assert_allclose(losses, [3 * LN2 + 10, LN2 + 10, LN2 + 10], rtol=1e-6)


def test_support_and_query_losses_are_weighted():
    batch = maml.Batch(tf.zeros((3, 2)), LABELS)
    assert float(maml.compute_loss(lambda weights, x: x, (), batch, WEIGHTED)) == pytest.approx(5 / 3 * LN2)
    empty = maml.Batch(tf.zeros((0, 2)), LABELS[:0])
    assert float(maml.compute_loss(lambda weights, x: x, (), empty, WEIGHTED)) == 0


def test_a_phone_trains_by_the_same_loss():
    labels = tf.constant([0, 1, 1, -1])  # the last row is no example
    outputs = tf.concat([EVEN, [[70.0, 9.0]]], 0)
    assert float(_compute_loss(labels, outputs, PLAIN)) == pytest.approx(LN2)
    assert float(_compute_loss(labels, outputs, WEIGHTED)) == pytest.approx(5 / 3 * LN2)
    own = dataclasses.replace(WEIGHTED, own_loss=lambda labels, outputs: outputs[:, 1] + 6)
    assert float(_compute_loss(labels, outputs, own)) == pytest.approx((18 + 6 + 6) / 3)
    assert float(_compute_loss(labels[3:], outputs[3:], own)) == 0


def test_an_own_loss_gets_labels_as_they_are_trained_on():
    seen = build_task("regression", 1, label_offset=(10.0,), label_scale=(5.0,))
    task = dataclasses.replace(seen, own_loss=lambda labels, outputs: labels[:, 0] + outputs[:, 0])
    losses = task.compute_training_losses(tf.constant([10.0, 20.0]), tf.constant([[0.5], [0.5]]))
    np.testing.assert_allclose(losses, [0.5, 2.5])
    np.testing.assert_allclose(task.compute_losses(tf.constant([20.0]), tf.constant([[0.5]])), [2.25])


def test_clients_minimise_nothing_else():
    """No algorithm calls the loss of tests, not even to choose among models by train examples."""
    callers = [path.name for path in ALGORITHMS.rglob("*.py") if "task.compute_losses(" in path.read_text()]
    assert not callers
