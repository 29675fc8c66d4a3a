"""The equations of FedProto, worked out by hand."""

import numpy as np
import pytest
import tensorflow as tf

from models.embedding import expose_embedding
from tff_algos.client.training_steps import Batch
from tff_algos.fed_proto.process import (
    Prototypes,
    aggregate_prototypes,
    build_loss,
    build_nearest_head,
    compute_prototypes,
    compute_spread,
)


def make(means, counts):
    return Prototypes(np.array(means, np.float32), np.array(counts, np.float32))


BEFORE = make([[9, 9], [7, 7], [0, 0]], [5, 4, 0])


def test_a_prototype_is_the_mean_embedding_of_a_class(linear_spec):
    """The embedding of a model of one layer is its input, whatever its weights; more examples than a batch holds."""
    spec = expose_embedding(linear_spec)
    x = np.repeat(np.array([[1, 2, 3, 4], [3, 2, 1, 0], [5, 0, 0, 0]], np.float32), 300, axis=0)
    y = np.repeat(np.array([0, 0, 2], np.int32), 300)
    weights = spec.build().get_weights()
    means, counts = compute_prototypes(spec, weights, x, y)
    np.testing.assert_allclose(means, [[2, 2, 2, 2], [0, 0, 0, 0], [5, 0, 0, 0]], rtol=1e-6)
    np.testing.assert_array_equal(counts, [600, 0, 300])
    nothing = compute_prototypes(spec, weights, x[:0], y[:0])
    assert not np.any(nothing.means) and not np.any(nothing.counts)


def test_the_server_averages_by_the_examples_of_the_class():
    """(2 * 3 + 1 * 0) / 3 = 2 and (2 * 0 + 1 * 6) / 3 = 2; class 1, which nobody has, stays; class 2 is of one."""
    sent = [make([[3, 0], [0, 0], [0, 0]], [2, 0, 0]), make([[0, 6], [0, 0], [4, 1]], [1, 0, 3])]
    after = aggregate_prototypes(BEFORE, sent)
    np.testing.assert_allclose(after.means, [[2, 2], [7, 7], [4, 1]])
    np.testing.assert_array_equal(after.counts, [3, 4, 3])
    assert after.means.dtype == after.counts.dtype == np.float32
    for same, before in zip(aggregate_prototypes(BEFORE, []), BEFORE, strict=True):
        np.testing.assert_array_equal(same, before)


def test_the_spread_is_over_all_examples_and_by_width():
    """Distances to (2, 2): (1 + 4) / 2 and (4 + 16) / 2; of class 2 0. (2 * 2.5 + 1 * 10 + 3 * 0) / 6 = 2.5."""
    sent = [make([[3, 0], [0, 0], [0, 0]], [2, 0, 0]), make([[0, 6], [0, 0], [4, 1]], [1, 0, 3])]
    assert compute_spread(make([[2, 2], [7, 7], [4, 1]], [3, 4, 3]), sent) == pytest.approx(2.5)
    assert np.isnan(compute_spread(BEFORE, [])) and np.isnan(compute_spread(BEFORE, [make(np.zeros((3, 2)), [0] * 3)]))


@pytest.mark.parametrize(("weight", "pulled"), [(2.0, [2 * 2.5, 0.0, 2 * 1.0]), (0.0, [0.0, 0.0, 0.0])])
def test_the_loss_pulls_to_the_prototypes_of_known_classes(linear_spec, weight, pulled):
    """Three equal logits have the loss log 3. (1 + 4) / 2 = 2.5 from class 0, (1 + 1) / 2 = 1 from class 1."""
    prototypes = make([[0, 0], [2, 3], [5, 5]], [3, 1, 0])
    embedding = np.array([[1, 2], [9, 9], [1, 2]], np.float32)
    outputs = tf.concat([tf.zeros((3, 3)), embedding], axis=1)
    batch = Batch(tf.constant([0, 2, 1]), outputs, None, (), ())
    losses = build_loss(linear_spec, weight, Prototypes(*map(tf.constant, prototypes)))(batch)
    np.testing.assert_allclose(losses, np.log(3) + np.array(pulled), rtol=1e-6)


def test_the_nearest_prototype_is_the_largest_logit_of_a_dense_layer():
    """2 z c - |c|^2: of z = (1.1, 0) it is 0 for c = (0, 0), 4.4 - 4 for (2, 0), and 0 - 1 for none."""
    kernel, bias = build_nearest_head(make([[0, 0], [2, 0], [1.1, 0]], [3, 1, 0]))
    assert kernel.dtype == bias.dtype == np.float32
    np.testing.assert_allclose(np.array([1.1, 0]) @ kernel + bias, [0, 0.4, -1], atol=1e-6)
    z, means = np.random.default_rng(0).normal(size=(50, 2)), [[0, 0], [0.5, -1], [-1, 0.2]]
    kernel, bias = build_nearest_head(make(means, [1, 1, 1]))
    distances = np.square(z[:, np.newaxis] - np.array(means)).sum(axis=2)
    np.testing.assert_array_equal((z @ kernel + bias).argmax(axis=1), distances.argmin(axis=1))
