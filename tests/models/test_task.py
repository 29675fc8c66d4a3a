"""Each task's losses and sums against hand-worked numbers, scikit-learn and classification."""

import math

import numpy as np
import pytest
import tensorflow as tf
from sklearn.metrics import f1_score, mean_absolute_error, r2_score, roc_auc_score

from models.model_names import ModelError
from models.task import build_task

LOG_3 = math.log(3.0)  # the logit of 3/4


def finish(task, labels, outputs):
    return task.kind.finish(task.compute_sums(tf.constant(labels, task.label_dtype), tf.constant(outputs)).numpy())


def compute_losses(task, labels, outputs):
    return task.compute_losses(tf.constant(labels, task.label_dtype), tf.constant(outputs, tf.float32)).numpy()


def draw(task, num_examples, seed=0):
    """Labels and outputs."""
    rng = np.random.default_rng(seed)
    outputs = rng.normal(0, 2, (num_examples, *task.output_shape)).astype(np.float32)
    shape = (num_examples, *task.label_shape)
    highest = {"classification": task.num_outputs, "next_token": task.num_outputs}.get(task.kind.name, 2)
    labels = rng.normal(5, 3, shape) if task.kind.name == "regression" else rng.integers(0, highest, shape)
    return labels.astype(task.label_dtype), outputs


TASKS = {
    "classification": build_task("classification", 4),
    "binary": build_task("binary", 1),
    "multi_label": build_task("multi_label", 7, (7,)),
    "regression": build_task("regression", 1, label_offset=(5.0,), label_scale=(3.0,)),
    "regression_of_two": build_task("regression", 2, (2,)),
    "next_token": build_task("next_token", 6, (5,), oov_label=3),
}


def test_classification_is_the_mean_cross_entropy_to_the_last_bit():
    task, (labels, outputs) = TASKS["classification"], draw(TASKS["classification"], 33)
    expected = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs))
    assert task.mean_loss(labels, outputs).numpy().tobytes() == expected.numpy().tobytes()


@pytest.mark.parametrize(
    ("task", "labels", "outputs", "expected"),
    [
        # A logit of log 3 gives 3/4 to "on": losses log 4/3 and log 4.
        (TASKS["binary"], [1, 0], [[LOG_3], [LOG_3]], [math.log(4 / 3), math.log(4)]),
        # The mean over the labels, or over the numbers.
        (
            build_task("multi_label", 2, (2,)),
            [[1, 0], [1, 1]],
            [[LOG_3, LOG_3], [0, 0]],
            [(math.log(4 / 3) + math.log(4)) / 2, math.log(2)],
        ),
        (TASKS["regression_of_two"], [[1, 2]], [[0, 4]], [(1 + 4) / 2]),
    ],
)
def test_losses_by_hand(task, labels, outputs, expected):
    np.testing.assert_allclose(compute_losses(task, labels, outputs), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("loss", "expected"), [("squared", [0.25, 9]), ("absolute", [0.5, 3]), ("huber", [0.125, 2 * (3 - 1)])]
)
def test_regression_losses_are_of_standardised_labels(loss, expected):
    """Labels 6 and 10 are (label - 4) / 2 = 1 and 3, outputs 0.5 and 0; Huber turns at 2: 2 * (3 - 2 / 2) = 4."""
    task = build_task("regression", 1, loss=loss, huber_delta=2.0, label_offset=(4.0,), label_scale=(2.0,))
    np.testing.assert_allclose(compute_losses(task, [6, 10], [[0.5], [0]]), expected)
    np.testing.assert_allclose(task.restore(np.array([[0.5], [0]])), [[5], [4]])


def test_next_token_leaves_padding_out():
    """One token of two classes alike has log 2; a logit of log 3 leaves 1/4 to the other one, which is label 1."""
    task = build_task("next_token", 2, (3,), padding_label=-1)
    labels, outputs = [[1, 1, -1], [-1, -1, -1]], [[[0, 0], [LOG_3, 0], [9, 0]], [[1, 2]] * 3]
    losses = compute_losses(task, labels, outputs)
    np.testing.assert_allclose(losses, [(math.log(2) + math.log(4)) / 2, 0], rtol=1e-6)
    weights = task.compute_weights(tf.constant(labels))
    np.testing.assert_array_equal(weights, [2, 0])
    assert task.mean_loss(tf.constant(labels), tf.constant(outputs, tf.float32)).numpy() == pytest.approx(losses[0])
    values = finish(task, labels, np.array(outputs, np.float32))
    assert values == {"token_accuracy": 0, "token_accuracy_without_oov": 0, "perplexity": pytest.approx(math.sqrt(8))}


def test_tokens_weigh_alike_whatever_example_they_are_in():
    task = TASKS["next_token"]
    labels, outputs = draw(task, 9)
    labels[:4, 1:] = 0  # examples of at most one token
    is_token = labels > 0
    cross_entropies = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs).numpy()
    assert task.mean_loss(labels, outputs).numpy() == pytest.approx(cross_entropies[is_token].mean(), rel=1e-6)
    values = finish(task, labels, outputs)
    assert values["token_accuracy"] == np.mean((outputs.argmax(-1) == labels)[is_token])
    assert values["perplexity"] == pytest.approx(math.exp(cross_entropies[is_token].mean()), rel=1e-6)


def test_next_token_of_one_position_is_classification():
    """The masked task of length 1 has the loss, the gradient and the accuracy of classification."""
    classes, tokens = TASKS["classification"], build_task("next_token", 4, (1,), padding_label=-1)
    labels, outputs = draw(classes, 20)
    results = []
    for task, y, shape in ((classes, labels, (20, 4)), (tokens, labels[:, np.newaxis], (20, 1, 4))):
        logits = tf.Variable(outputs.reshape(shape))
        with tf.GradientTape() as tape:
            loss = task.mean_loss(tf.constant(y), logits)
        gradient = tape.gradient(loss, logits).numpy().ravel()
        results.append([loss.numpy(), finish(task, y, logits.numpy())[task.kind.main_metric.name], *gradient])
    np.testing.assert_allclose(*results, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_sums_of_parts_add_up_to_those_of_the_whole(task):
    labels, outputs = draw(task, 30)
    whole = task.compute_sums(labels, outputs).numpy()
    assert whole.dtype == np.float64 and whole.shape == (task.kind.num_sums(task.num_outputs),)
    parts = [task.compute_sums(labels[part], outputs[part]).numpy() for part in (slice(7), slice(7, 7), slice(7, 30))]
    np.testing.assert_allclose(sum(parts), whole, rtol=1e-12)
    assert not parts[1].any()
    groups = tf.constant([0] * 7 + [2] * 23)
    np.testing.assert_allclose(task.compute_sums_by_group(labels, outputs, groups, 3), parts, rtol=1e-12)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_the_mean_loss_is_that_of_the_examples_by_their_weights(task):
    labels, outputs = draw(task, 30)
    losses, weights = compute_losses(task, labels, outputs), task.compute_weights(labels).numpy()
    assert losses.shape == weights.shape == (30,)
    assert task.mean_loss(labels, outputs).numpy() == pytest.approx(np.average(losses, weights=weights), rel=1e-5)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_scores_lie_between_0_and_1_and_grow_with_the_fit(task):
    labels, outputs = draw(task, 30)
    scores = task.compute_scores(labels, outputs).numpy()
    assert scores.dtype == task.score_dtype and scores.shape == (30,)
    assert scores.min() >= 0 and scores.max() <= 1
    if task.kind.is_labelled_by_class:
        assert scores.mean() == finish(task, labels, outputs)[task.kind.main_metric.name]
    else:
        order = np.argsort(compute_losses(task, labels, outputs))
        assert (np.diff(scores[order]) <= 0).all()


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_auc_and_f1_agree_with_scikit_learn(scale):
    """Within the resolution of the bins, for outputs of any size."""
    task = TASKS["multi_label"]
    labels, outputs = draw(task, 400)
    outputs = ((outputs + labels) * scale).astype(np.float32)
    values = finish(task, labels, outputs)
    assert values["auc"] == pytest.approx(roc_auc_score(labels.ravel(), outputs.ravel()), abs=2e-3)
    assert values["f1"] == pytest.approx(f1_score(labels.ravel(), outputs.ravel() > 0))
    recall = tf.keras.metrics.Recall(top_k=5)
    recall.update_state(labels, tf.sigmoid(outputs / scale))  # far from 0 they would all be 1
    assert values["recall_at_5"] == pytest.approx(recall.result().numpy(), abs=1e-6)


def test_binary_metrics_agree_with_scikit_learn():
    labels, outputs = draw(TASKS["binary"], 300)
    values = finish(TASKS["binary"], labels, outputs)
    assert values["auc"] == pytest.approx(roc_auc_score(labels, outputs[:, 0]), abs=3e-3)
    assert values["f1"] == pytest.approx(f1_score(labels, outputs[:, 0] > 0))
    assert values["binary_accuracy"] == np.mean((outputs[:, 0] > 0) == labels)


NAN, INF = math.nan, math.inf
THREE = build_task("classification", 3)
SEVEN_ONES = np.where(np.arange(14).reshape(2, 7) < 7, 1.0, NAN)


@pytest.mark.parametrize(
    ("task", "labels", "outputs", "expected"),
    [
        # The usual padding is label 0, and a token out of the vocabulary (1) counts in accuracy alone.
        (
            build_task("next_token", 4, (4,), oov_label=1),
            [[1, 2, 3, 0]],
            np.eye(4)[[[1, 2, 2, 0]]],
            {"token_accuracy": 2 / 3, "token_accuracy_without_oov": 1 / 2},
        ),
        # Outputs beyond all bins are counted; what is no number counts as 0, above -5.
        (TASKS["binary"], [1, 0, 1, 0], [[INF], [-1e30], [NAN], [-5]], {"auc": 1}),
        # A model that has diverged gives every example the first class, or no, which many examples have: it is right
        # on nothing.
        (THREE, [0, 0, 0, 2], [[NAN, NAN, NAN], [NAN, 3, 1], [3, 1, 0], [0, 1, 9]], {"accuracy": 0.5}),
        (TASKS["binary"], [0, 0, 0, 0], [[NAN], [NAN], [-1], [2]], {"binary_accuracy": 0.25}),
        (TASKS["multi_label"], np.ones((2, 7)), SEVEN_ONES, {"recall_at_5": 5 / 14}),
        (
            build_task("next_token", 3, (2,), padding_label=-1),
            [[0, 0]],
            [[[NAN, NAN, NAN], [1, 0, 0]]],
            {"token_accuracy": 0.5, "perplexity": INF},
        ),
        # Infinite logits are sure answers.
        (THREE, [0, 2], [[INF, 0, 0], [-INF, -INF, 0]], {"accuracy": 1}),
        # NaN would mean that nothing is known: the mean over the clients left out the one whose model had diverged.
        (TASKS["regression"], [5, 8], [[NAN], [1]], {"rmse": INF, "mae": INF, "r2": -INF}),
        # Labels far from 0 keep their R2.
        (
            build_task("regression", 1, label_offset=(1e6,)),
            [1e6 - 1, 1e6, 1e6 + 1],
            [[-1], [0], [1]],
            {"rmse": 0, "mae": 0, "r2": 1},
        ),
    ],
)
def test_values_by_hand(task, labels, outputs, expected):
    values = finish(task, labels, np.array(outputs, np.float32))
    assert {name: values[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize(
    ("task", "labels", "outputs", "expected"),
    [
        (THREE, [0, 0, 0, 2], [[NAN, NAN, NAN], [NAN, 3, 1], [3, 1, 0], [0, 1, 9]], [0, 0, 1, 1]),
        (build_task("next_token", 3, (2,), padding_label=-1), [[0, 0]], [[[NAN, NAN, NAN], [1, 0, 0]]], [0]),
    ],
)
def test_a_diverged_example_has_a_score_of_0(task, labels, outputs, expected):
    scores = task.compute_scores(tf.constant(labels, task.label_dtype), tf.constant(outputs, tf.float32))
    assert scores.numpy().tolist() == expected


@pytest.mark.parametrize("name", ["regression", "regression_of_two"])
def test_regression_metrics_agree_with_scikit_learn_in_the_unit_of_the_labels(name):
    task = TASKS[name]
    labels, outputs = draw(task, 50)
    predictions = np.reshape(task.restore(outputs), labels.shape)
    values = finish(task, labels, outputs)
    assert values["rmse"] == pytest.approx(math.sqrt(np.mean((labels - predictions) ** 2)), rel=1e-5)
    assert values["mae"] == pytest.approx(mean_absolute_error(labels, predictions), rel=1e-5)
    assert values["r2"] == pytest.approx(r2_score(labels, predictions), rel=1e-5)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("ranking", 3), {}, "task=ranking: expected one of classification, binary"),
        (("binary", 2), {}, "num_outputs=2: expected 1"),
        (("multi_label", 3, ()), {}, r"label_shape=\(\): expected \(3,\) for multi_label of 3"),
        (("regression", 2, ()), {}, r"label_shape=\(\): expected \(2,\)"),
        (("classification", 3, (3,)), {}, r"label_shape=\(3,\): expected \(\)"),
        (("regression", 1), {"loss": "hinge"}, "loss=hinge: expected one of squared, absolute, huber for regression"),
        (("regression", 1), {"huber_delta": 0.0}, "huber_delta=0.0: expected a number above 0"),
        (("regression", 1), {"label_scale": (0.0,)}, "label_scale=.*: expected 1 numbers above 0"),
        (("regression", 1), {"label_offset": (1.0, 2.0)}, "label_offset=.*: expected 1 numbers"),
        (("classification", 3), {"class_weights": (1.0, 1.0)}, r"class_weights=\(1.0, 1.0\): expected 3 numbers of at"),
        (("binary", 1), {"class_weights": (1.0,)}, "class_weights=.*: expected 2 numbers"),
        (("classification", 2), {"class_weights": (1.0, -1.0)}, "class_weights=.*: expected 2 numbers of at least 0"),
        (("classification", 2), {"class_weights": (1.0, math.nan)}, "class_weights=.*: expected 2 numbers"),
        (("regression", 2, (2,)), {"class_weights": (1.0, 1.0)}, "class_weights=.*: expected none"),
    ],
)
def test_each_mistake_is_one_line(arguments, options, message):
    with pytest.raises(ModelError, match=message) as error:
        build_task(*arguments, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_a_graph_as_tff_makes_it_computes_the_same(task):
    """There, operators such as `!=` compare tensors as objects, and nothing says so."""
    labels, outputs = draw(task, 12)

    def compute_all(y, x):
        functions = (task.compute_losses, task.compute_scores, task.compute_sums, task.mean_loss)
        return [task.compute_weights(y), *(compute(y, x) for compute in functions)]

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        found = session.run(compute_all(tf.constant(labels), tf.constant(outputs)))
    for values, expected in zip(found, compute_all(labels, outputs), strict=True):
        np.testing.assert_allclose(values, expected, rtol=1e-6)
