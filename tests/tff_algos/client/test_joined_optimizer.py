"""An optimizer on joined vectors takes the steps that it takes on the tensors."""

import numpy as np
import pytest
import tensorflow as tf

from tff_algos.client import joined_optimizer
from tff_algos.client.joined_optimizer import FlatLayout, JoinedOptimizer
from tff_algos.client.training_steps import build_optimizer
from tff_algos.settings.local_training import LocalTrainingConfig

SHAPES = ((5, 7), (7,), (7, 3), (3,))


def take_steps(config, num_steps):
    rng = np.random.default_rng(3)
    variables = [tf.Variable(rng.normal(size=shape).astype(np.float32)) for shape in SHAPES]
    optimizer = JoinedOptimizer(build_optimizer(config, 0.1), variables)
    carried = optimizer.start()
    for _ in range(num_steps):
        carried = optimizer.step(carried, [tf.constant(rng.normal(size=shape).astype(np.float32)) for shape in SHAPES])
    return [variable.numpy() for variable in variables], len(carried.values)


@pytest.mark.parametrize(
    "config",
    [LocalTrainingConfig(optimizer="adam"), LocalTrainingConfig(optimizer="sgd", momentum=0.9)],
    ids=["adam", "momentum"],
)
def test_joined_tensors_take_the_same_steps(monkeypatch, config):
    start, _ = take_steps(config, 0)
    joined, num_joined = take_steps(config, 3)
    monkeypatch.setattr(joined_optimizer, "_JOINED_SIZE", 0)
    apart, num_apart = take_steps(config, 3)
    assert (num_joined, num_apart) == (1, len(SHAPES))
    for first, one, other in zip(start, joined, apart, strict=True):
        assert np.all(one != first)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_only_small_tensors_of_one_dtype_are_joined(monkeypatch):
    """Sizes 2, 3 (float64), 4 (large) and 1: vectors of 2 + 1, 3 and 4 numbers."""
    monkeypatch.setattr(joined_optimizer, "_JOINED_SIZE", 4)
    arrays = [np.float32([1, 2]), np.float64([[3], [4], [5]]), np.float32([[6, 7], [8, 9]]), np.float32(10)]
    layout = FlatLayout([tf.Variable(array) for array in arrays])
    vectors = layout.join([tf.constant(array) for array in arrays])
    assert [vector.numpy().tolist() for vector in vectors] == [[1, 2, 10], [3, 4, 5], [6, 7, 8, 9]]
    tensors = [tensor.numpy() for tensor in layout.split(vectors)]
    assert [(t.dtype, t.shape, t.tolist()) for t in tensors] == [(a.dtype, a.shape, a.tolist()) for a in arrays]
