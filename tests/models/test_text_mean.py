"""The mean of words: by hand, its gradients, and what padding does to it."""

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_spec

from datasets.example_format import TextFormat
from models.text_mean import build_text_mean, build_text_mean_teacher

TOKENS = np.array([[2, 3, 2, 0], [4, 1, 0, 0], [0, 0, 0, 0]], np.int32)


def set_by_hand(model):
    """Token t is embedded as t in every place; the hidden layer hands that on, and the only output takes the mean."""
    embedding, *_ = model.get_weights()
    rows, width = embedding.shape
    embedding[:] = np.arange(rows)[:, np.newaxis]
    model.set_weights([embedding, np.eye(width), np.zeros(width), np.full((width, 1), 1 / width), np.zeros(1)])


def test_the_answer_is_that_of_the_mean_of_the_words():
    """(2 + 3 + 2) / 3 and (4 + 1) / 2; a text without a word has a mean of 0, and no NaN."""
    model = build_text_mean((4,), 1, 5)
    set_by_hand(model)
    np.testing.assert_allclose(model(TOKENS), [[7 / 3], [2.5], [0]], rtol=1e-6)
    longer = build_text_mean((6,), 1, 5)
    set_by_hand(longer)
    np.testing.assert_allclose(longer(np.pad(TOKENS, ((0, 0), (0, 2)))), model(TOKENS), rtol=1e-6)


def test_words_share_the_gradient_and_padding_has_none():
    """The mean of n words gives each the n-th part; token 2 stands twice in the first text."""
    model = build_text_mean((4,), 1, 5)
    set_by_hand(model)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(model(TOKENS))
    gradient = tape.gradient(total, model.trainable_weights[0])
    assert isinstance(gradient, tf.IndexedSlices)  # not as large as the vocabulary for each batch
    expected = np.array([0, 1 / 2, 2 / 3, 1 / 3, 1 / 2])[:, np.newaxis] / 32
    np.testing.assert_allclose(tf.convert_to_tensor(gradient), np.broadcast_to(expected, (5, 32)), rtol=1e-5)


@pytest.mark.parametrize(("build", "count"), [(build_text_mean, 65_219), (build_text_mean_teacher, 273_155)])
def test_parameters_are_those_of_the_docstring(build, count):
    assert build((4,), 3, 2002).count_params() == count


def test_it_can_be_called_in_a_loop_inside_a_graph():
    """As pFedMe does: the tokens are of the graph around the loop."""
    spec = make_spec("text_mean", (4,), "int32", takes_tokens=True, text=TextFormat("review", tuple("abcde")))
    with tf.Graph().as_default() as graph:
        model, x = spec.build(), tf.constant(TOKENS)
        total = tf.while_loop(
            lambda step, total: step < 2,
            lambda step, total: (step + 1, total + tf.reduce_sum(model(spec.preprocess(x)))),
            (tf.constant(0), tf.constant(0.0)),
        )[1]
    assert total.graph is graph
