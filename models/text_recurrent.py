"""Recurrent networks that read tokens and say after each what comes next, logits out.

`char_lstm` is McMahan et al.'s for Shakespeare and TensorFlow Federated's (`tff.simulation.baselines.shakespeare`), and
`char_gru` the same with GRU. `word_lstm` is Reddi et al.'s for Stack Overflow and TensorFlow Federated's.

These mask tokens of 0; ours do not, so that a vocabulary may use the 0. Padding stands at the end, where no earlier
position sees it, and has no loss: at all other positions the answers and gradients are the same.

Parameters for a vocabulary of V. An LSTM of u units on inputs of size i has 4u(i + u + 1), a GRU 3u(i + u + 2):

                 embedding   first layer   second layer   dense             sum
    char_lstm    8 V         271,360       525,312        257 V             796,672 + 265 V: 820,522 for V = 90
    char_gru     8 V         204,288       394,752        257 V             599,040 + 265 V: 622,890 for V = 90
    word_lstm    96 V        2,055,560     none           64,416 and 97 V   2,119,976 + 193 V: 4,050,748 for V = 10,004
"""

import functools

import tensorflow as tf

from models.precision import build_logits_layer

_CHAR_EMBEDDING, _CHAR_UNITS = 8, 256
_WORD_EMBEDDING, _WORD_UNITS = 96, 670


def build_word_lstm(input_shape: tuple[int], vocabulary: int):
    """An LSTM layer: tokens (batch, positions) in int32 to logits (batch, positions, vocabulary)."""
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input(input_shape, dtype="int32"),
            layers.Embedding(vocabulary, _WORD_EMBEDDING, name="embedding"),
            layers.LSTM(_WORD_UNITS, return_sequences=True, name="recurrent"),
            layers.Dense(_WORD_EMBEDDING, name="projection"),
            build_logits_layer(vocabulary),
        ]
    )


def _build_char_model(input_shape: tuple[int], vocabulary: int, layer: type[tf.keras.layers.RNN]):
    """Two recurrent layers: tokens (batch, positions) in int32 to logits (batch, positions, vocabulary)."""
    options = {"kernel_initializer": "he_normal", "return_sequences": True}
    return tf.keras.Sequential(
        [
            tf.keras.Input(input_shape, dtype="int32"),
            tf.keras.layers.Embedding(vocabulary, _CHAR_EMBEDDING, name="embedding"),
            layer(_CHAR_UNITS, **options, name="recurrent_1"),
            layer(_CHAR_UNITS, **options, name="recurrent_2"),
            build_logits_layer(vocabulary),
        ]
    )


build_char_lstm = functools.partial(_build_char_model, layer=tf.keras.layers.LSTM)
build_char_gru = functools.partial(_build_char_model, layer=tf.keras.layers.GRU)
