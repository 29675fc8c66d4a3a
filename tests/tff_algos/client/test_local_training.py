"""The local training loop against hand-worked steps and against Keras, and what a model predicts."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_format
from traced_training import train

from models.model_spec import ModelSpec
from models.stateless_dropout import StatelessDropout
from tff_algos.client import training_steps
from tff_algos.client.local_training import count_examples_trained, predict_logits
from tff_algos.settings.local_training import LocalTrainingConfig


def build_scalar():
    """Two logits (a x, 0): one trained weight a, input shape (1,)."""
    inputs = tf.keras.Input((1,))
    logit = tf.keras.layers.Dense(1, use_bias=False)(inputs)
    return tf.keras.Model(inputs, tf.keras.layers.Concatenate()([logit, tf.zeros_like(logit)]))


def build_dropping():
    layers = [tf.keras.Input((16,)), StatelessDropout(0.5), tf.keras.layers.Dense(16, use_bias=False)]
    return tf.keras.Sequential(layers)


SCALAR = ModelSpec("scalar", build_scalar, make_format((1,), "float32", 2))
DROPPING = ModelSpec("dropping", build_dropping, make_format((16,), "float32", 16))


def square_loss(batch):
    """(a x - y)^2 / 2, so that gradients are easy by hand."""
    return tf.square(batch.logits[:, 0] - tf.cast(batch.labels, tf.float32)) / 2


def sgd(epochs=1, batch_size=1, **settings):
    return LocalTrainingConfig(optimizer="sgd", epochs=epochs, batch_size=batch_size, **settings)


START = (np.array([[1.0]], np.float32),)


TWO, ONE = ([[2.0], [1.0]], [0, 3]), ([[1.0]], [0])  # examples (x, y)


@pytest.mark.parametrize(
    ("settings", "examples", "moved", "loss_sum"),
    [
        # Gradient mean of (a x - y) x = (4 - 2) / 2 = 1; squares 2^2 and (1 - 3)^2, halved, summed.
        ({"batch_size": 2, "epochs": 1}, TWO, -0.1, (4 + 4) / 2),
        # Velocities 1 and 0.9 * 1 + 0.9 = 1.8; a = 1 - 0.1 - 0.18.
        ({"momentum": 0.9}, ONE, -0.28, (1 + 0.9**2) / 2),
        # Gradients 1 + 0.5 and 0.85 + 0.425; a = 1 - 0.15 = 0.85, then 0.85 - 0.1275. The loss is that of the examples.
        ({"weight_decay": 0.5}, ONE, -0.2775, (1 + 0.85**2) / 2),
        # Decay before momentum: velocities 1.5 and 0.9 * 1.5 + 1.275 = 2.625; a = 1 - 0.15 - 0.2625.
        ({"weight_decay": 0.5, "momentum": 0.9}, ONE, -0.4125, (1 + 0.85**2) / 2),
        # Second step from a = 0.9: gradient 0.9 + mu (0.9 - 1) = 0.9 - 0.2 with mu = 2; a = 0.9 - 0.07.
        ({"proximal_weight": 2.0}, ONE, -0.17, (1 + 0.9**2) / 2 + 0.1**2),
    ],
    ids=["one step", "momentum", "weight decay", "weight decay and momentum", "proximal term"],
)
def test_steps_by_hand(settings, examples, moved, loss_sum):
    """From a = 1, one batch of (x, y) = (2, 0), (1, 3), or two epochs of one example (1, 0), at the rate 0.1."""
    config = LocalTrainingConfig(**{"optimizer": "sgd", "epochs": 2, "batch_size": 1, **settings})
    result = train(SCALAR, config, START, *examples, loss_fn=square_loss)
    np.testing.assert_allclose(result.weights_delta[0], [[moved]], rtol=1e-5)
    np.testing.assert_allclose(result.loss_sum, loss_sum, rtol=1e-6)
    assert float(result.num_trained) == 2 and bool(result.is_finite)


def pulled_loss(batch):
    return square_loss(batch) + tf.reduce_sum(tf.abs(batch.trained[0] - batch.anchor[0]))


@pytest.mark.parametrize(
    ("weight", "anchor", "loss_fn", "moved", "loss_sum"),
    [
        (2.0, 4.0, square_loss, 0.5, 9.5),  # gradient 1 + mu (1 - 4) = -5; 1 / 2 + mu / 2 (1 - 4)^2
        (0.0, 4.0, square_loss, -0.1, 0.5),  # without a weight an anchor pulls nothing
        (2.0, 1.0, square_loss, -0.1, 0.5),  # the start, which is the anchor if none is given
        (0.0, 4.0, pulled_loss, 0.0, 0.5 + 3.0),  # a loss's own pull, |a - 4|, of gradient -1
    ],
)
def test_an_anchor_takes_the_place_of_the_start_by_hand(weight, anchor, loss_fn, moved, loss_sum):
    """One step from a = 1, where the gradient of the squares is 1."""
    result = train(SCALAR, sgd(proximal_weight=weight), START, *ONE, loss_fn=loss_fn, anchor=(np.float32([[anchor]]),))
    np.testing.assert_allclose(result.weights_delta[0], [[moved]], atol=1e-7)
    np.testing.assert_allclose(result.loss_sum, loss_sum, rtol=1e-6)


@pytest.mark.parametrize(("x", "rate"), [(np.inf, 0.1), (1.0, 1e25)])
def test_an_update_whose_square_is_not_finite_is_zeroed_and_flagged(x, rate):
    """One example (1, 3) from a = 1 at rate 1e25: a moves by 2e25, which float32 holds, but not its square."""
    result = train(SCALAR, sgd(), START, [[x]], [3], rate=rate, loss_fn=square_loss)
    assert not bool(result.is_finite) and not result.weights_delta[0].any()
    assert float(result.squared_norm) == float(result.loss_sum) == float(result.num_trained) == 0


def test_autograph_rewrites_the_loop_and_the_users_layers_and_no_more(monkeypatch):
    """Rewriting the optimizer and the loss as well took a second a run."""
    seen = {}

    def note(name):
        seen[name] = tf.__internal__.autograph.control_status_ctx().status.name

    class OwnLayer(tf.keras.layers.Layer):
        def call(self, x):
            note("layer")
            if tf.reduce_sum(x) > 1e9:  # a branch on a tensor, which only AutoGraph can make
                x = x + 1.0
            return x

    def build():
        return tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(2, use_bias=False), OwnLayer()])

    class OwnOptimizer:
        def initialize(self, specs):
            return ()

        def next(self, state, weights, gradients):
            note("optimizer")
            return state, weights

    # An optimizer of Python, which can say how it was traced.
    monkeypatch.setattr(training_steps, "build_optimizer", lambda *_: OwnOptimizer())
    spec = ModelSpec("own", build, make_format((1,), "float32", 2))
    config = LocalTrainingConfig(epochs=1, batch_size=2)
    train(spec, config, (np.ones((1, 2), np.float32),), [[2.0], [1.0]], [0, 1])
    assert seen == {"layer": "ENABLED", "optimizer": "DISABLED"}


def test_kernels_decay_and_biases_and_scales_do_not():
    """A loss without a gradient for any weight: what changes is what decays, by rate * decay * weight."""

    def build():
        inputs = tf.keras.Input((2,))
        hidden = tf.keras.layers.BatchNormalization()(tf.keras.layers.Dense(3)(inputs))
        return tf.keras.Model(inputs, tf.keras.layers.Dense(2)(hidden))

    spec = ModelSpec("normalized", build, make_format((2,), "float32", 2))
    names = [variable.name.split("/")[-1].split(":")[0] for variable in spec.build().weights]
    start = [np.full(weight.shape, 2.0, np.float32) for weight in spec.build().weights]

    def flat_loss(batch):
        return 0.0 * tf.reduce_sum(batch.logits, axis=1)

    result = train(
        spec, sgd(batch_size=4, weight_decay=0.25), start, np.ones((4, 2), np.float32), np.zeros(4), loss_fn=flat_loss
    )
    changes = dict(zip(names, (np.abs(delta).max() for delta in result.weights_delta), strict=True))
    assert changes["kernel"] == pytest.approx(0.1 * 0.25 * 2)
    assert [changes[name] for name in ("bias", "gamma", "beta")] == [0, 0, 0]


def test_adam_equals_keras(linear_spec):
    """One full-batch epoch a call, three epochs: the same weights as Keras's Adam on the same loss."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 4)).astype(np.float32), rng.integers(0, 3, 12)
    model = linear_spec.build()
    start = model.get_weights()
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.05, epsilon=1e-7), loss)
    model.fit(x, y, batch_size=12, epochs=3, verbose=0)
    expected = model.get_weights()
    config = LocalTrainingConfig(optimizer="adam", epochs=3, batch_size=12)
    result = train(linear_spec, config, start, x, y, rate=0.05)
    for delta, after, before in zip(result.weights_delta, expected, start, strict=True):
        np.testing.assert_allclose(delta, after - before, atol=2e-5)
    kernel, bias = (np.sum(delta**2) for delta in result.weights_delta)
    assert result.squared_norm == pytest.approx(kernel + bias, rel=1e-5) and bias > 0.01 * kernel


def test_every_example_is_seen_once_an_epoch_and_the_last_batch_is_partial():
    """With rate ~0 and inputs 1..5, the loss sums show which examples were seen: each once an epoch."""
    x = np.arange(1.0, 6.0, dtype=np.float32)[:, np.newaxis]
    result = train(SCALAR, sgd(epochs=2, batch_size=2), START, x, np.zeros(5), rate=1e-12, loss_fn=square_loss)
    np.testing.assert_allclose(result.loss_sum, 2 * (1 + 4 + 9 + 16 + 25) / 2)
    assert float(result.num_trained) == 10


def test_steps_count_batches_across_epochs():
    """5 examples in batches of 2, 2, 1: steps 1, 3, 4, 7 see 2, 5, 7, 12 examples."""
    config = LocalTrainingConfig(optimizer="sgd", steps=7, batch_size=2)
    counted = [count_examples_trained(dataclasses.replace(config, steps=steps), 5) for steps in (1, 3, 4, 7)]
    assert counted == [2, 5, 7, 12]
    x, y = np.ones((5, 1), np.float32), np.zeros(5)
    assert float(train(SCALAR, config, START, x, y, loss_fn=square_loss).num_trained) == 12
    for steps, expected in zip((1, 3, 4), counted, strict=False):
        given = {"loss_fn": square_loss, "num_steps": np.int32(steps)}
        assert float(train(SCALAR, config, START, x, y, **given).num_trained) == expected


def test_a_client_without_examples_returns_zeros():
    for config in (LocalTrainingConfig(), LocalTrainingConfig(steps=3)):
        result = train(SCALAR, config, START, np.zeros((0, 1), np.float32), np.zeros(0))
        np.testing.assert_array_equal(result.weights_delta[0], [[0.0]])
        assert float(result.num_trained) == 0 and bool(result.is_finite)


def test_integer_weights_are_not_in_the_update():
    def build():
        model = build_scalar()
        model.layers[1].add_weight(name="counter", shape=(), dtype=tf.int32, initializer="zeros", trainable=False)
        return model

    spec = ModelSpec("counting", build, make_format((1,), "float32", 2))
    start = [np.float32([[1.0]]), np.int32(5)]
    result = train(spec, sgd(batch_size=2), start, [[2.0], [1.0]], [0, 3], loss_fn=square_loss)
    (delta,) = result.weights_delta
    np.testing.assert_allclose(delta, [[-0.1]], rtol=1e-6)


SEEN = []


def recording_loss(batch):
    tf.numpy_function(lambda logits: SEEN.append(logits[0].copy()), [batch.logits], [])
    return square_loss(batch)


def record_logits(spec, weights, x, seed):
    """The logits of each step of three epochs, one example a step, at a rate that moves nothing."""
    # One traced function serves all calls, so what it has seen is global.
    SEEN.clear()
    train(spec, sgd(epochs=3), weights, x, np.zeros(len(x)), seed=seed, rate=1e-30, loss_fn=recording_loss)
    assert len(SEEN) == 3 * len(x)
    return np.array(SEEN).reshape(3, len(x), -1)


def record_orders(seed):
    """Which of six examples each step sees, shape (3, 6): the first logit is the example itself."""
    x = np.arange(6, dtype=np.float32)[:, np.newaxis]
    return record_logits(SCALAR, START, x, seed)[:, :, 0].astype(int)


def test_each_epoch_has_an_order_of_its_own_decided_by_the_seed():
    orders = record_orders(seed=(1, 2))
    np.testing.assert_array_equal(np.sort(orders), [range(6)] * 3)
    assert len(np.unique(orders, axis=0)) == 3
    np.testing.assert_array_equal(orders, record_orders(seed=(1, 2)))
    assert not np.array_equal(orders, record_orders(seed=(1, 3)))


def add_mark(x, seed):
    """The examples with a number drawn from the seed added, in steps of 1, so that the example can be told still."""
    return x + 100.0 * tf.cast(tf.random.stateless_uniform((), seed, 0, 10**4, tf.int32), tf.float32)


def test_augmentation_has_a_seed_of_its_own_in_every_step_and_changes_no_order():
    x = np.arange(6, dtype=np.float32)[:, np.newaxis]
    spec = dataclasses.replace(SCALAR, augment=add_mark)
    first, again, other = (record_logits(spec, START, x, seed)[:, :, 0] for seed in ((1, 2), (1, 2), (1, 3)))
    marks, examples = np.divmod(first, 100)
    assert len(np.unique(marks)) == marks.size and not np.intersect1d(marks, other // 100).size
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(examples, record_orders(seed=(1, 2)))


def test_only_training_augments():
    """Predictions, which the server or a teacher makes, are of the examples as they are."""
    spec = dataclasses.replace(SCALAR, augment=lambda x, seed: 10 * x)
    logits = predict_logits(spec, tuple(map(tf.constant, START)), tf.constant([[2.0]]))
    np.testing.assert_allclose(logits, [[2.0, 0.0]])
    result = train(spec, sgd(), START, [[2.0]], [0], loss_fn=square_loss)
    np.testing.assert_allclose(result.loss_sum, 20**2 / 2)


def test_dropout_masks_differ_by_step_and_epoch_and_repeat_with_the_seed():
    """Each of 16 ones is dropped or doubled; nine masks agree by chance in one of about 2,000 runs."""

    def record_masks(spec, seed=(1, 2)):
        return record_logits(spec, [np.eye(16, dtype=np.float32)], np.ones((3, 16), np.float32), seed).round()

    masks = record_masks(DROPPING)
    assert set(masks.ravel().tolist()) == {0.0, 2.0} and len(np.unique(masks.reshape(9, 16), axis=0)) == 9
    tripled = dataclasses.replace(DROPPING, augment=lambda x, seed: 3 * x)
    np.testing.assert_array_equal(record_masks(tripled), 3 * masks)
    assert not np.array_equal(masks, record_masks(DROPPING, seed=(1, 3)))


def test_targets_follow_their_examples():
    """The target of an example is its own input: any mismatch of rows would make the loss positive."""

    def mismatch(batch):
        return tf.square(batch.logits[:, 0] - batch.targets[:, 0])

    x = np.arange(7.0, dtype=np.float32)[:, np.newaxis]
    result = train(SCALAR, sgd(batch_size=3), START, x, np.zeros(7), loss_fn=mismatch, targets=x)
    np.testing.assert_allclose(result.loss_sum, 0.0, atol=1e-9)


def test_predicted_logits_equal_the_model_in_batches(linear_spec):
    model = linear_spec.build()
    x = np.random.default_rng(0).normal(size=(1203, 4)).astype(np.float32)
    weights = tuple(tf.constant(w.numpy()) for w in model.weights)
    logits = predict_logits(linear_spec, weights, tf.constant(x))
    np.testing.assert_allclose(logits, model(x), rtol=1e-5, atol=1e-5)
    assert predict_logits(linear_spec, weights, tf.constant(x[:0])).shape == (0, 3)
