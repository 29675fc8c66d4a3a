"""Each kind of task from a client's files through local training and the scores of several models."""

import numpy as np
import pytest
import tensorflow as tf
from small_formats import format_of, make_format
from small_runs import assert_close, assert_same
from traced_training import train

from datasets.arrays import make_array_dataset
from datasets.example_format import LabelFormat
from datasets.federate import PartitionSettings, build_federated_data
from models.model_spec import ModelSpec
from models.task import build_format_task, build_task
from tff_algos.client.client_data import read_split
from tff_algos.client.client_evaluation import LOSSES, build_client_evaluation
from tff_algos.client.fine_tuning import build_fine_tuning_steps
from tff_algos.client.local_training import predict_logits
from tff_algos.settings.fine_tuning import FineTuningConfig
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import add_deltas, stack_models

NUM_EXAMPLES, NUM_TOKENS = 48, 6
NAMES = ("classification", "binary", "multi_label", "regression", "next_token")


def keep(*names):
    """All tasks, the others in the longer tests alone."""
    return [pytest.param(name, marks=[] if name in names else [pytest.mark.slow]) for name in NAMES]


def build_dense(task):
    return tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(task.num_outputs)])


def build_text_model(task):
    """Sees the token at each position alone."""
    x = tf.keras.Input(task.label_shape, dtype="int32")
    return tf.keras.Model(x, tf.keras.layers.Dense(NUM_TOKENS)(tf.keras.layers.Embedding(NUM_TOKENS, 4)(x)))


def make_spec(example_format):
    task = build_format_task(example_format)
    build = build_text_model if example_format.takes_tokens else build_dense
    return ModelSpec(task.kind.name, lambda: build(task), example_format)


def make_examples(name):
    """(x, y, label format, class names): labels that the features or the token before tell."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(NUM_EXAMPLES, 3)).astype(np.float32)
    if name == "next_token":
        x = rng.integers(1, NUM_TOKENS, (NUM_EXAMPLES, 4), np.int32)
        y = x % (NUM_TOKENS - 1) + 1
        # Texts of unlike lengths, the rest being padding.
        y[::3, 2:] = 0
        return x, y, LabelFormat(name, (4,), NUM_TOKENS), ()
    return {
        "classification": (x, x.argmax(axis=1), LabelFormat(), ("a", "b", "c")),
        "binary": (x, x[:, 0] > 0, LabelFormat("binary"), ("off", "on")),
        "multi_label": (x, x > 0, LabelFormat("multi_label", (3,), 3), ("a", "b", "c")),
        "regression": (x, 100 + 20 * x[:, 0], LabelFormat("regression", (), 1, (100.0,), (20.0,)), ()),
    }[name]


@pytest.fixture
def make_data(tmp_path):
    """A function (task name) -> (spec, federation of three clients)."""

    def make(name):
        x, y, labels, class_names = make_examples(name)
        example_format = format_of(x, class_names, labels=labels, takes_tokens=name == "next_token")
        arrays = make_array_dataset("toy", (x, y), (x, y), example_format)
        settings = PartitionSettings(partition="iid", num_clients=3, validation_fraction=0.25)
        data = build_federated_data(arrays, settings, str(tmp_path / "shards"))
        return make_spec(data.format), data

    return make


def draw_weights(spec, seed=1):
    rng = np.random.default_rng(seed)
    return tuple(tf.constant(rng.normal(0, 0.5, weight.shape), tf.float32) for weight in spec.build().weights)


def read(spec, data, split="train"):
    return read_split(tf.constant(data.clients[0].path), split, spec)


@pytest.mark.parametrize("name", NAMES)
def test_a_client_reads_its_labels_and_learns_them(make_data, name):
    spec, data = make_data(name)
    (x, y), expected = read(spec, data), data.read_split(data.clients[0], "train")
    assert_same((x, y), expected)
    assert y.dtype == expected[1].dtype == spec.task.label_dtype
    config = LocalTrainingConfig(epochs=40, optimizer="sgd", batch_size=5, momentum=0.5, weight_decay=1e-4)
    weights = draw_weights(spec)
    result = train(spec, config, weights, x, y)
    trained = add_deltas(weights, result.weights_delta)
    before, after = (spec.task.mean_loss(y, predict_logits(spec, each, x)) for each in (weights, trained))
    assert after < 0.6 * before and result.is_finite
    counted = (expected[1] > 0).sum() if name == "next_token" else len(y)
    assert float(result.num_trained) == 40 * counted
    empty = read_split(tf.constant(""), "train", spec)
    assert empty[1].shape == (0, *spec.task.label_shape)
    assert predict_logits(spec, weights, empty[0]).shape == (0, *spec.task.output_shape)


def test_a_step_on_one_batch_goes_down_the_mean_over_tokens(make_data):
    """The loss that is summed is that of the tokens, so that a mean of it weighs by tokens."""
    spec, data = make_data("next_token")
    x, y = read(spec, data)
    model, weights = spec.build(), draw_weights(spec)
    model.set_weights([weight.numpy() for weight in weights])
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x))
        total = tf.reduce_sum(losses * tf.cast(y > 0, tf.float32))
        loss = total / float((y.numpy() > 0).sum())
    gradients = tape.gradient(loss, model.trainable_variables)
    config = LocalTrainingConfig(epochs=1, batch_size=len(y), optimizer="sgd")
    result = train(spec, config, weights, x, y, rate=0.5)
    for delta, gradient in zip(result.weights_delta, gradients, strict=True):
        np.testing.assert_allclose(delta, -0.5 * tf.convert_to_tensor(gradient), atol=1e-6)
    assert float(result.loss_sum) == pytest.approx(float(total), rel=1e-5)


def test_masked_tokens_of_length_1_train_as_classification(make_data):
    _, data = make_data("classification")
    x, y = data.read_split(data.clients[0], "train")
    classes = make_spec(make_format((3,)))

    def build():
        inputs = tf.keras.Input((3,))
        return tf.keras.Model(inputs, tf.keras.layers.Reshape((1, 3))(tf.keras.layers.Dense(3)(inputs)))

    tokens = ModelSpec("tokens", build, make_format((3,)), task=build_task("next_token", 3, (1,), padding_label=-1))
    weights = draw_weights(classes)
    config = LocalTrainingConfig(epochs=3, batch_size=5)
    first, second = train(classes, config, weights, x, y), train(tokens, config, weights, x, y[:, np.newaxis])
    assert_close(first.weights_delta, second.weights_delta, atol=1e-6)
    assert float(first.loss_sum) == pytest.approx(float(second.loss_sum), rel=1e-5)


@pytest.mark.parametrize("name", keep("classification", "regression", "next_token"))
def test_models_are_scored_by_the_task(tff_runtime, make_data, name):
    """Counts of correct examples where there is right and wrong, else sums of scores; 0 where nobody asked."""
    spec, data = make_data(name)
    models = [tuple(weight.numpy() for weight in draw_weights(spec, seed)) for seed in range(2)]
    evaluate = build_client_evaluation(spec, models[0], 2, "validation")
    found = evaluate(stack_models(models), data.clients[:2], np.array([[True, True], [False, True]]))
    assert found.dtype == (np.int64 if name in ("classification", "binary") else np.float64) and found[1, 0] == 0
    for client, model in ((0, 0), (0, 1), (1, 1)):
        x, y = data.read_split(data.clients[client], "validation")
        scores = spec.task.compute_scores(y, predict_logits(spec, models[model], tf.constant(x)))
        assert len(y) and found[client, model] == pytest.approx(float(tf.reduce_sum(scores)), rel=1e-5)


def test_losses_are_summed_by_their_weights(tff_runtime, make_data):
    """Of a text by its tokens, so that the sum has its least where the mean that training steps down has it."""
    spec, data = make_data("next_token")
    model = tuple(weight.numpy() for weight in draw_weights(spec))
    evaluate = build_client_evaluation(spec, model, 1, "validation", LOSSES)
    found = evaluate(stack_models([model]), data.clients[:1], np.ones((1, 1), bool))
    x, y = data.read_split(data.clients[0], "validation")
    expected = spec.task.mean_loss(y, predict_logits(spec, model, tf.constant(x)))
    expected *= tf.reduce_sum(spec.task.compute_weights(y))
    assert found.dtype == np.float64 and found[0, 0] == pytest.approx(float(expected), rel=1e-5)


def test_fine_tuning_takes_the_task(make_data):
    spec, data = make_data("regression")
    x, y = read(spec, data)
    weights = draw_weights(spec)
    tune = build_fine_tuning_steps(spec, FineTuningConfig(batch_size=5))
    tuned = tune(weights, x, y, tf.constant([1, 2]), tf.constant(0.1), tf.constant(60))
    before, after = (spec.task.mean_loss(y, predict_logits(spec, each, x)) for each in (weights, tuned))
    assert after < 0.6 * before
