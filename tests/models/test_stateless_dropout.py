"""Dropout from a seed: reproducible, unbiased, without variables, in and out of graphs."""

import numpy as np
import pytest
import tensorflow as tf

from models.stateless_dropout import StatelessDropout, dropout_seed

SEED = np.array([3, 7], np.int32)
ONES = tf.ones((40, 50))


def drop(seed=SEED, salt=0, rate=0.25, x=ONES):
    with dropout_seed(tf.constant(seed, tf.int32)):
        return StatelessDropout(rate, salt)(x, training=True).numpy()


@pytest.mark.parametrize("other", [{"seed": [3, 8]}, {"seed": [4, 7]}, {"salt": 1}])
def test_seed_and_salt_decide_the_mask(other):
    np.testing.assert_array_equal(drop(), drop())
    assert (drop() != drop(**other)).mean() > 0.2  # two independent masks differ in 2 * 0.25 * 0.75 = 0.375


def test_zero_or_scaled_and_expectation_preserved():
    values = drop(x=tf.ones(100_000))
    assert set(np.unique(values)) == {np.float32(0), np.float32(1 / 0.75)}
    # one value has variance 0.25 / 0.75 = 1/3, so the mean's standard deviation is 0.0018
    assert abs(values.mean() - 1) < 5 * 0.0018


@pytest.mark.parametrize(
    ("rate", "training", "expected"),
    [
        (0.25, False, ONES.numpy),
        (0.25, None, ONES.numpy),
        (0.25, tf.constant(False), ONES.numpy),
        (0.25, tf.constant(True), drop),
        (0.0, True, ONES.numpy),
    ],
)
def test_values_are_dropped_in_training_alone(rate, training, expected):
    with dropout_seed(SEED):
        np.testing.assert_array_equal(StatelessDropout(rate)(ONES, training=training), expected())


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_rate_out_of_range(rate):
    with pytest.raises(ValueError, match=r"rate=.*below 1"):
        StatelessDropout(rate)


def test_gradient_is_the_mask():
    layer = StatelessDropout(0.25)
    with tf.GradientTape() as tape, dropout_seed(SEED):
        tape.watch(ONES)
        y = layer(ONES * 2.0, training=True)
    np.testing.assert_allclose(tape.gradient(y, ONES), 2 * drop())


def test_the_innermost_context_counts_and_ends_on_an_error():
    layer = StatelessDropout(0.25)
    with dropout_seed(SEED):
        with pytest.raises(KeyError), dropout_seed(np.array([9, 9], np.int32)):
            np.testing.assert_array_equal(layer(ONES, training=True), drop(seed=[9, 9]))
            raise KeyError
        np.testing.assert_array_equal(layer(ONES, training=True), drop())


def test_without_context_ordinary_dropout():
    layer = StatelessDropout(0.25)
    first, second = layer(ONES, training=True).numpy(), layer(ONES, training=True).numpy()
    assert (first != second).any()
    assert 0.2 < (first == 0).mean() < 0.3


def test_symbolic_seed_in_a_loop():
    """Each step of a `while_loop` folds its number into the seed; the graph gives what eager execution gives."""
    layer = StatelessDropout(0.25, salt=2)

    @tf.function(input_signature=[tf.TensorSpec((2,), tf.int32)])
    def run(seed):
        masks = tf.TensorArray(tf.float32, 3)
        for step in tf.range(3):
            with dropout_seed(tf.random.experimental.stateless_fold_in(seed, step)):
                masks = masks.write(step, layer(ONES, training=True))
        return masks.stack()

    seeds = [tf.random.experimental.stateless_fold_in(SEED, step) for step in range(3)]
    np.testing.assert_array_equal(run(SEED), np.stack([drop(seed=seed, salt=2) for seed in seeds]))


def test_a_model_of_a_notebook_has_no_further_variables_and_is_written_and_read(tmp_path):
    model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(8), StatelessDropout(0.5, salt=5)])
    model.compile("sgd", "mse")
    assert np.isfinite(model.fit(np.ones((16, 8)), np.ones((16, 8)), verbose=0).history["loss"]).all()
    assert [tuple(weight.shape) for weight in model.weights] == [(8, 8), (8,)]
    model.save(tmp_path / "m.keras")
    layer = tf.keras.models.load_model(tmp_path / "m.keras").layers[-1]
    assert (type(layer), layer.rate, layer.salt) == (StatelessDropout, 0.5, 5)
