"""The order of examples that travels is the one of local training, batch by batch."""

import numpy as np
import pytest
import tensorflow as tf

from launch.live import orders
from launch.live.orders import MOST_BYTES, count_most_examples, order_all
from tff_algos.client.local_training import count_examples_trained
from tff_algos.seeds import derive_seed
from tff_algos.settings.local_training import LocalTrainingConfig

SEED = derive_seed(0, "training", 3, 1)


@pytest.mark.parametrize(
    ("settings", "num_examples", "steps", "epochs"),
    [
        ({"epochs": 2, "batch_size": 4}, 10, 6, 2),
        ({"steps": 7, "batch_size": 4}, 10, 7, 3),
        ({"steps": 2, "batch_size": 4}, 3, 2, 2),
        ({"epochs": 2, "batch_size": 4}, 0, 0, 0),
        ({"steps": 5, "batch_size": 4}, 0, 0, 0),
    ],
)
def test_it_has_the_shuffles_of_local_training(settings, num_examples, steps, epochs):
    training = LocalTrainingConfig(**settings)
    [found] = order_all(training, [num_examples], [SEED])
    assert (found.steps, found.order.shape, found.order.dtype) == (steps, (epochs, num_examples), np.uint16)
    for epoch, order in enumerate(found.order):
        seed = tf.random.experimental.stateless_fold_in(SEED, epoch)
        shuffled = tf.random.experimental.stateless_shuffle(tf.range(num_examples), seed)
        np.testing.assert_array_equal(order, shuffled)
    # As the protocol has it, the steps take as many examples as local training trains on.
    size, per = training.batch_size, max(-(-num_examples // training.batch_size), 1)
    batches = [found.order[k // per][k % per * size : (k % per + 1) * size] for k in range(steps)]
    if num_examples:
        assert sum(map(len, batches)) == count_examples_trained(training, num_examples)


@pytest.mark.parametrize(("num_examples", "dtype"), [(2**16, np.uint16), (2**16 + 1, np.uint32)])
def test_indices_have_four_bytes_where_two_do_not_reach(num_examples, dtype):
    [(_, order)] = order_all(LocalTrainingConfig(epochs=1), [num_examples], [SEED])
    assert order.dtype == dtype and order.max() == num_examples - 1


def test_an_order_has_its_bound_in_bytes():
    for options in ({"epochs": 1}, {"epochs": 5}, {"steps": 3}, {"steps": 1000, "epochs": 1}):
        training = LocalTrainingConfig(batch_size=32, **options)
        number = count_most_examples(training)
        per_epoch = -(-number // 32)
        rows = -(-(training.steps or training.epochs * per_epoch) // per_epoch)
        assert MOST_BYTES / 2 <= 4 * rows * number <= MOST_BYTES


def test_many_are_ordered_at_once_as_each_alone(monkeypatch):
    """Of different sizes, some without examples, in groups of at most 30 entries and a client's own."""
    monkeypatch.setattr(orders, "_MADE_AT_ONCE", 30)
    training, numbers = LocalTrainingConfig(epochs=2, batch_size=4), [10, 0, 3, 40, 0, 1, 7, 7, 7, 2]
    seeds = [derive_seed(0, "training", 3, client) for client in range(len(numbers))]
    found = list(order_all(training, numbers, seeds))
    assert [each.order.shape for each in found] == [(2 if number else 0, number) for number in numbers]
    for (steps, order), number, seed in zip(found, numbers, seeds, strict=True):
        [alone] = order_all(training, [number], [seed])
        assert steps == alone.steps
        np.testing.assert_array_equal(order, alone.order)
    assert list(order_all(training, [], [])) == []
