"""The models of the literature are trained by the local loop, in float32 and bfloat16; their loss falls."""

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_format, make_spec
from traced_training import train

from models.model_spec import ModelSpec
from models.task import build_task
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.fed_sikd.process import build_fed_sikd_process
from tff_algos.settings.local_training import LocalTrainingConfig

TEXT = build_task("next_token", 7, (6,))


def build_spec(name, precision="float32"):
    if name == "logistic_regression":
        labels = build_task("multi_label", 3, (3,))
        return make_spec(name, (9,), task=labels, precision=precision)
    if name.startswith("char"):
        return make_spec(name, (6,), "int32", 7, takes_tokens=True, task=TEXT, precision=precision)
    return make_spec(name, (8, 8, 1), "uint8", 2, scale=1 / 16, precision=precision)


def draw(name):
    """Examples that can be learned: what follows a token is the next one, a label is the side that is bright."""
    generator = np.random.default_rng(0)
    if name == "logistic_regression":
        x = generator.normal(size=(64, 9)).astype(np.float32)
        return x, (x[:, :3] > 0).astype(np.uint8)
    if name.startswith("char"):
        tokens = 1 + (generator.integers(0, 6, (64, 1)) + np.arange(7)) % 6
        return tokens[:, :-1].astype(np.int32), tokens[:, 1:].astype(np.int32)
    y = np.arange(64, dtype=np.int32) % 2
    x = generator.integers(0, 5, (64, 8, 8, 1)).astype(np.uint8)
    x[y == 1, :4] += 10
    return x, y


def compute_loss(spec, weights, x, y):
    model = spec.build()
    model.set_weights(weights)
    return float(spec.task.mean_loss(tf.constant(y), model(spec.preprocess(tf.constant(x)), training=False)))


@pytest.mark.parametrize(
    ("name", "precision", "optimizer", "rate"),
    [
        ("logistic_regression", "float32", "sgd", 0.5),
        ("emnist_cnn", "float32", "adam", 0.003),
        ("fedavg_cnn", "bfloat16", "adam", 0.003),
        pytest.param("char_gru", "float32", "adam", 0.005, marks=pytest.mark.slow),
        pytest.param("char_transformer", "bfloat16", "adam", 0.005, marks=pytest.mark.slow),
    ],
)
def test_a_client_learns(name, precision, optimizer, rate):
    spec, (x, y) = build_spec(name, precision), draw(name)
    tf.keras.utils.set_random_seed(0)
    start = spec.build().get_weights()
    config = LocalTrainingConfig(epochs=6, optimizer=optimizer, batch_size=16)
    result = train(spec, config, start, x, y, rate=rate)
    assert result.is_finite
    assert {delta.dtype for delta in result.weights_delta} == {np.dtype(np.float32)}
    trained = [weight + delta for weight, delta in zip(start, result.weights_delta, strict=True)]
    assert compute_loss(spec, trained, x, y) < 0.5 * compute_loss(spec, start, x, y)


def test_tokens_that_were_not_seen_keep_their_embedding():
    """The gradient of an embedding comes as rows; plain steps move those alone that were looked up."""

    def build():
        layers = [tf.keras.layers.Embedding(7, 4), tf.keras.layers.Dense(7)]
        return tf.keras.Sequential([tf.keras.Input((6,), dtype="int32"), *layers])

    spec = ModelSpec("embedded", build, make_format((6,), "int32", 7, takes_tokens=True), task=TEXT)
    x, y = draw("char_gru")
    config = LocalTrainingConfig(epochs=1, optimizer="sgd", batch_size=16)
    result = train(spec, config, spec.build().get_weights(), x, y)
    moved = np.abs(result.weights_delta[0]).max(axis=1) > 0
    assert not moved[0] and moved[1:].all()  # 0 is padding, which these examples do not have


TRAINING = LocalTrainingConfig(epochs=2, batch_size=8)


@pytest.mark.parametrize("algorithm", ["fed_avg", pytest.param("fed_sikd", marks=pytest.mark.slow)])
def test_a_round_is_in_float32_and_repeats(tff_runtime, make_federation, algorithm):
    data = make_federation([9, 12, 30])
    states = []
    for precision in ("bfloat16", "float32"):
        spec = make_spec("perceptron", data.format.input_shape, precision=precision)
        if algorithm == "fed_avg":
            process = build_fed_avg_process(spec, data, FedAvgConfig(training=TRAINING), 0)
        else:
            config = FedSiKDConfig(student=TRAINING, teacher_training=TRAINING, num_clusters=2)
            process = build_fed_sikd_process(spec, data, config, 0)
        states += [process.next(process.initialize()).state for _ in range(1 + (precision == "bfloat16"))]
    first, again, whole = (process.get_models(state)["global"] for state in states)
    assert {array.dtype for array in first} == {np.dtype(np.float32)}
    for a, b, c in zip(first, again, whole, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.array_equal(a, c)
        np.testing.assert_allclose(a, c, atol=0.05)
