"""Weights of examples in a client's training, worked out by hand: each multiplies the whole loss of its example."""

import dataclasses
import math
import types

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_format
from traced_training import train

from datasets.example_format import ExampleWeights, LabelFormat
from models.compilation import compile_spec
from models.model_spec import ModelSpec
from tff_algos.amfl_p.maml import Batch, compute_loss, compute_meta_gradient
from tff_algos.client.client_data import read_split, split_labels
from tff_algos.client.client_evaluation import LOSSES, SCORES, sum_over_examples
from tff_algos.fed_proto.process import Prototypes, build_loss
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.fed_sikd.student_round import build_distillation
from tff_algos.rounds.training_phase import Told
from tff_algos.settings.local_training import LocalTrainingConfig

ONE_STEP = LocalTrainingConfig(epochs=1, optimizer="sgd", batch_size=8)
RATE = 0.6


def build_scalar():
    """Two logits (a x, 0): one trained weight a, input shape (1,). Class 0 has the chance sigmoid(a x)."""
    inputs = tf.keras.Input((1,))
    logit = tf.keras.layers.Dense(1, use_bias=False)(inputs)
    return tf.keras.Model(inputs, tf.keras.layers.Concatenate()([logit, tf.zeros_like(logit)]))


def weigh(mean=1.5):
    return ExampleWeights("w", mean, 0.0, 3.0, 0, 2)


SCALAR = ModelSpec("scalar", build_scalar, make_format((1,), "float32", 2, weights=weigh()))
PLAIN = dataclasses.replace(SCALAR, format=dataclasses.replace(SCALAR.format, weights=None))


def write_client(folder, x, y, weights=None, dtype=np.int32):
    path = str(folder / "client_0")
    np.array(x, np.float32).tofile(f"{path}.train.x")
    np.array(y, dtype).tofile(f"{path}.train.y")
    if weights is not None:
        np.array(weights, np.float32).tofile(f"{path}.train.w")
    return path


def read(path, spec, split="train"):
    """As TFF does: traced with an unknown path."""
    return tf.function(lambda path: read_split(path, split, spec), [tf.TensorSpec((), tf.string)])(tf.constant(path))


def train_scalar(spec, x, y, start=0.0, loss_fn=None):
    return train(spec, ONE_STEP, [np.float32([[start]])], x, y, rate=RATE, loss_fn=loss_fn)


def step(*arguments, **options):
    return float(train_scalar(*arguments, **options).weights_delta[0])


@pytest.mark.parametrize(
    ("labels", "dtype", "y"),
    [
        (LabelFormat(), np.int32, [2, 1]),
        (LabelFormat("binary"), np.int32, [0, 1]),
        (LabelFormat("multi_label", (3,), 3), np.uint8, [[1, 0, 1], [0, 0, 1]]),
        (LabelFormat("regression", (), 1), np.float32, [0.5, -3.25]),
        (LabelFormat("regression", (1,), 1), np.float32, [[0.5], [-3.25]]),
        (LabelFormat("regression", (3,), 3), np.float32, [[0.5, 1, 2], [-3.25, 0, 1]]),
    ],
)
def test_labels_of_each_task_travel_with_their_weights(tmp_path, labels, dtype, y):
    """(2, 1) by their mean 1.5: 4/3 and 2/3. A padded place has none of either."""
    names = ("0", "1") if labels.task == "binary" else ("0", "1", "2") if labels.is_by_class else ()
    example_format = dataclasses.replace(make_format((1,)), class_names=names, labels=labels, weights=weigh())
    spec = ModelSpec("any", lambda: None, example_format)
    path = write_client(tmp_path, [[1.0], [2.0]], y, [2, 1], dtype)
    found, weights = split_labels(read(path, spec)[1], spec.task)
    assert found.dtype == dtype and found.numpy().tolist() == np.array(y, dtype).tolist()
    np.testing.assert_allclose(weights, [4 / 3, 2 / 3], rtol=1e-6)
    nobody, none = split_labels(read("", spec)[1], spec.task)
    assert nobody.shape == (0, *labels.shape) and none.shape == (0,)
    plain = tf.constant(np.array(y, dtype))
    assert split_labels(plain, spec.task) == (plain, None)


def test_other_splits_have_labels_alone(tmp_path):
    path = write_client(tmp_path, [[1.0]], [1], [2])
    for kind in "xy":
        (tmp_path / f"client_0.test.{kind}").write_bytes((tmp_path / f"client_0.train.{kind}").read_bytes())
    assert read(path, SCALAR, "test")[1].numpy().tolist() == [1]


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_weights_2_and_1_make_the_step_that_is_worked_out(tmp_path, compiled):
    """a = 0, x = 1, classes 0 and 1: gradients -1/2 and 1/2. (4/3 (-1/2) + 2/3 (1/2)) / 2 = -1/6; a -> 0.6 / 6."""
    spec = compile_spec(SCALAR) if compiled else SCALAR
    result = train_scalar(spec, *read(write_client(tmp_path, [[1.0], [1.0]], [0, 1], [2, 1]), spec))
    assert float(result.weights_delta[0]) == pytest.approx(0.1, rel=1e-5)
    assert float(result.loss_sum) == pytest.approx((4 / 3 + 2 / 3) * math.log(2), rel=1e-5)
    assert float(result.num_trained) == 2  # the client counts by its examples


def test_weights_that_are_all_alike_change_no_byte(tmp_path):
    """7 by their mean 7 is exactly 1, which no product feels."""
    sevens = dataclasses.replace(SCALAR, format=dataclasses.replace(SCALAR.format, weights=weigh(7.0)))
    path = write_client(tmp_path, [[1.0], [-0.3], [0.7]], [0, 1, 1], [7, 7, 7])
    # How a step is made does not depend on the mean, by which the reader has divided.
    weighted, plain = (
        train_scalar(SCALAR, *read(path, sevens), start=0.4),
        train_scalar(PLAIN, *read(path, PLAIN), start=0.4),
    )
    for found, expected in zip(tf.nest.flatten(weighted), tf.nest.flatten(plain), strict=True):
        assert found.tobytes() == expected.tobytes()


def test_an_example_of_weight_0_teaches_nothing_but_counts_in_the_mean():
    """Of (0, 2) the second alone has a gradient: 2 (1/2) / 2 = 1/2, whatever the first is; a -> -0.6 / 2."""
    for first in (5.0, -70.0):
        y = tf.constant([[0.0, 0.0], [1.0, 2.0]])
        assert step(SCALAR, [[first], [1.0]], y) == pytest.approx(-0.3, rel=1e-5)


def test_a_row_that_stands_there_twice_is_one_of_weight_2(tmp_path):
    path = write_client(tmp_path, [[1.0], [-0.5]], [0, 1], [2, 1])
    once = step(SCALAR, *read(path, SCALAR), start=0.25)
    twice = step(PLAIN, tf.constant([[1.0], [1.0], [-0.5]]), tf.constant([0, 0, 1]), start=0.25)
    assert once == pytest.approx(twice, rel=1e-5)


def test_fedproto_weighs_the_distance_to_prototypes_too():
    """Model (a x, 0, e) with the embedding e = a x of width 1, weight of the term 1; classes 0 and 1 lie at 1 and 3.

    a = 0, x = 1: the losses' gradients are -1/2 and 1/2, those of (e - c)^2 are -2 and -6. The weights 1/2 and 3/2:
    (-2.5 / 2 - 5.5 (3/2)) / 2 = -4.75; a -> 0.6 * 4.75.
    """

    def build():
        inputs = tf.keras.Input((1,))
        logit = tf.keras.layers.Dense(1, use_bias=False)(inputs)
        return tf.keras.Model(inputs, tf.keras.layers.Concatenate()([logit, tf.zeros_like(logit), logit]))

    spec = ModelSpec("proto", build, SCALAR.format)
    prototypes = Prototypes(np.array([[1], [3]], np.float32), np.ones(2, np.float32))
    y = tf.constant([[0.0, 0.5], [1.0, 1.5]])
    found = step(spec, tf.constant([[1.0], [1.0]]), y, loss_fn=build_loss(spec, 1.0, prototypes))
    assert found == pytest.approx(0.6 * 4.75, rel=1e-5)


def test_fedsikd_weighs_what_teachers_say_too_and_counts_them_unweighted(tmp_path):
    """The teacher is undecided about both examples, as is the student, so only the labels' half moves it.

    With the label's share 1/2: (4/3 (-1/2) + 2/3 (1/2)) / 4 = -1/12. Undecided is right about class 0 alone.
    """
    spec = dataclasses.replace(SCALAR, teacher=SCALAR)
    config = FedSiKDConfig(student=ONE_STEP, label_weight=0.5)
    path = write_client(tmp_path, [[1.0], [1.0]], [0, 1], [2, 1])
    model = (tf.constant([[0.0]]),)
    client = types.SimpleNamespace(
        path=tf.constant(path), seed=tf.constant([1, 2]), group=0, weight=1.0, learning_rate=tf.constant(RATE)
    )
    sent = build_distillation(spec, config)(Told(client, (model, ([model[0]],)), (), ()))
    assert float(sent.update.result.weights_delta[0]) == pytest.approx(0.6 / 12, rel=1e-5)
    assert (float(sent.sums.num_correct), float(sent.sums.num_examples)) == (1, 2)


def predict(weights, x):
    return tf.concat([x @ weights[0], tf.zeros_like(x)], axis=1)


def test_amfl_p_weighs_support_and_query():
    """As worked out above, at the rate 0.6 from a = 0: support to a = 0.1, where class 0 has the chance s.

    The query's loss is that of class 0 times 2 and that of class 1 times 0, over 2 examples.
    """
    x, labels = tf.constant([[1.0], [1.0]]), [[0.0], [1.0]]
    support, query = (
        Batch(x, tf.constant(np.hstack([labels, w]), tf.float32)) for w in ([[4 / 3], [2 / 3]], [[2], [0]])
    )
    start = (tf.constant([[0.0]]),)
    meta = compute_meta_gradient(predict, start, support, query, 1, tf.constant(RATE), True, SCALAR.task)
    chance = 1 / (1 + math.exp(-0.1))
    assert float(meta.adapted[0]) == pytest.approx(0.1, rel=1e-5)
    assert float(meta.query_loss) == pytest.approx(-math.log(chance), rel=1e-5)
    assert float(meta.gradient[0]) == pytest.approx(-(1 - chance), rel=1e-5)
    assert float(compute_loss(predict, start, Batch(x[:0], query.y[:0]), SCALAR.task)) == 0


def test_the_loss_that_chooses_a_cluster_is_that_of_training_and_scores_are_not_weighed():
    """a = 0: both examples have log 2, of weights 3 and 1/2; the model says class 0 and is right once.

    Classes may weigh 4 and 1 besides; an own loss, 2 each, takes the place of the task's.
    """
    x, y = tf.constant([[1.0], [1.0]]), tf.constant([[0.0, 3.0], [1.0, 0.5]])
    stacked, asked = [tf.zeros((1, 1, 1))], tf.constant([True])
    for changes, expected in (
        ({}, 3.5 * math.log(2)),
        ({"class_weights": (4.0, 1.0)}, 12.5 * math.log(2)),
        ({"own_loss": lambda labels, outputs: outputs[:, 0] * 0 + 2}, 7),
    ):
        spec = dataclasses.replace(SCALAR, task=dataclasses.replace(SCALAR.task, **changes))
        losses = sum_over_examples(spec, stacked, asked, x, y, LOSSES)
        assert float(losses[0]) == pytest.approx(expected, rel=1e-5)
    assert int(sum_over_examples(SCALAR, stacked, asked, x, y, SCORES)[0]) == 1
