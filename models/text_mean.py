"""Networks that read the words of a text and give one answer, logits out: the mean of their embeddings, and layers.

Tokens of 0 are padding and have no part in the mean, so that the answer does not depend on how far a text is filled up.
A text of padding alone has a mean of 0.

Parameters for a vocabulary of V, embeddings of width E, a hidden layer of width H and C outputs:
V E + (E + 1) H + (H + 1) C. For V = 2,002 and C = 3: text_mean (32, 32) 64,064 + 1,056 + 99 = 65,219, its teacher
(128, 128) 256,256 + 16,512 + 387 = 273,155.
"""

import functools

import tensorflow as tf

from models.precision import build_logits_layer


def _build_text_mean(input_shape: tuple[int], num_outputs: int, vocabulary: int, width: int) -> tf.keras.Model:
    """Tokens (batch, positions) in int32, below `vocabulary`, to logits (batch, num_outputs)."""
    layers = tf.keras.layers
    tokens = tf.keras.Input(input_shape, dtype="int32")
    embedded = layers.Embedding(vocabulary, width, name="embedding")(tokens)
    # A mask of Keras would divide by 0 for a text without a word.
    is_word = tf.expand_dims(tf.cast(tf.not_equal(tokens, 0), embedded.dtype), axis=-1)
    total = tf.reduce_sum(embedded * is_word, axis=1)
    x = total / tf.maximum(tf.reduce_sum(is_word, axis=1), 1)
    x = layers.Dense(width, activation="relu", name="hidden")(x)
    return tf.keras.Model(tokens, build_logits_layer(num_outputs)(x))


build_text_mean = functools.partial(_build_text_mean, width=32)  # the student
build_text_mean_teacher = functools.partial(_build_text_mean, width=128)
