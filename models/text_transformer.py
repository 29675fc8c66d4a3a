"""A small causal transformer encoder that reads characters and says after each what comes next, logits out.

Two layers of four heads (Vaswani et al. 2017), each part normalized before it computes. A position attends to itself
and to those before it alone, so that neither what comes next nor padding at the end reaches its answer. Positions have
learned embeddings.

Parameters for a vocabulary of V and P positions, 128 wide:

    embeddings   128 V + 128 P
    attention    4 (128 * 128 + 128) = 66,048      feed-forward   128 * 512 + 512 + 512 * 128 + 128 = 131,712
    layer        66,048 + 131,712 + two LayerNorm of 256 = 198,272
    end          LayerNorm 256, dense 129 V
    sum          396,800 + 257 V + 128 P: 430,170 for V = 90 and P = 80
"""

import tensorflow as tf

from models.precision import build_logits_layer

_WIDTH, _HEADS, _LAYERS, _HIDDEN = 128, 4, 2, 512
_EPSILON = 1e-6  # above 1e-5, Keras takes a fused operation that TFLite lacks


def build_char_transformer(input_shape: tuple[int], vocabulary: int):
    """Tokens (batch, positions) in int32, below `vocabulary`, to logits (batch, positions, vocabulary)."""
    layers = tf.keras.layers
    tokens = tf.keras.Input(input_shape, dtype="int32")
    places = tf.cumsum(tf.ones_like(tokens), axis=1, exclusive=True)  # 0, 1, ... as part of the graph of layers
    x = layers.Add(name="embedding")(
        [
            layers.Embedding(vocabulary, _WIDTH, name="token_embedding")(tokens),
            layers.Embedding(input_shape[0], _WIDTH, name="position_embedding")(places),
        ]
    )
    for number in range(1, _LAYERS + 1):
        x = _add_layer(x, f"layer_{number}")
    x = layers.LayerNormalization(epsilon=_EPSILON, name="normalization")(x)
    return tf.keras.Model(tokens, build_logits_layer(vocabulary)(x))


def _add_layer(x, name: str):
    layers = tf.keras.layers
    inner = layers.LayerNormalization(epsilon=_EPSILON, name=f"{name}_normalization_1")(x)
    attention = layers.MultiHeadAttention(_HEADS, _WIDTH // _HEADS, name=f"{name}_attention")
    x = layers.Add(name=f"{name}_sum_1")([x, attention(inner, inner, use_causal_mask=True)])
    inner = layers.LayerNormalization(epsilon=_EPSILON, name=f"{name}_normalization_2")(x)
    inner = layers.Dense(_HIDDEN, activation="relu", name=f"{name}_hidden")(inner)
    return layers.Add(name=f"{name}_sum_2")([x, layers.Dense(_WIDTH, name=f"{name}_output")(inner)])
