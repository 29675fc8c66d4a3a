"""Recurrent networks, and a transformer, that read tokens and say after each what comes next, logits out.

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


# A small causal transformer encoder that reads characters and says after each what comes next, logits out.
#
# Two layers of four heads (Vaswani et al. 2017), each part normalized before it computes. A position attends to itself
# and to those before it alone, so that neither what comes next nor padding at the end reaches its answer. Positions
# have learned embeddings.
#
# Parameters for a vocabulary of V and P positions, 128 wide:
#
#     embeddings   128 V + 128 P
#     attention    4 (128 * 128 + 128) = 66,048      feed-forward   128 * 512 + 512 + 512 * 128 + 128 = 131,712
#     layer        66,048 + 131,712 + two LayerNorm of 256 = 198,272
#     end          LayerNorm 256, dense 129 V
#     sum          396,800 + 257 V + 128 P: 430,170 for V = 90 and P = 80

_WIDTH, _HEADS, _LAYERS, _HIDDEN = 128, 4, 2, 512
_EPSILON = 1e-6  # above 1e-5, Keras takes a fused operation that TFLite lacks


def build_char_transformer(input_shape: tuple[int], vocabulary: int):
    """Tokens (batch, positions) in int32, below `vocabulary`, to logits (batch, positions, vocabulary)."""
    layers = tf.keras.layers
    tokens = tf.keras.Input(input_shape, dtype="int32")
    positions = tf.cumsum(tf.ones_like(tokens), axis=1, exclusive=True)  # 0, 1, ... as part of the graph of layers
    x = layers.Add(name="embedding")(
        [
            layers.Embedding(vocabulary, _WIDTH, name="token_embedding")(tokens),
            layers.Embedding(input_shape[0], _WIDTH, name="position_embedding")(positions),
        ]
    )
    for number in range(1, _LAYERS + 1):
        name = f"layer_{number}"
        inner = layers.LayerNormalization(epsilon=_EPSILON, name=f"{name}_normalization_1")(x)
        attention = layers.MultiHeadAttention(_HEADS, _WIDTH // _HEADS, name=f"{name}_attention")
        x = layers.Add(name=f"{name}_sum_1")([x, attention(inner, inner, use_causal_mask=True)])
        inner = layers.LayerNormalization(epsilon=_EPSILON, name=f"{name}_normalization_2")(x)
        inner = layers.Dense(_HIDDEN, activation="relu", name=f"{name}_hidden")(inner)
        x = layers.Add(name=f"{name}_sum_2")([x, layers.Dense(_WIDTH, name=f"{name}_output")(inner)])
    x = layers.LayerNormalization(epsilon=_EPSILON, name="normalization")(x)
    return tf.keras.Model(tokens, build_logits_layer(vocabulary)(x))
