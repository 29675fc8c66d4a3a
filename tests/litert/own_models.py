"""Models of a user's own, of all kinds of layers that docs/models.md names, for the table of models by format.

Each function takes the shape of an example and the number of outputs, as `--model=own_models:build_dense_skips` has it.
"""

import tensorflow as tf

from models.stateless_dropout import StatelessDropout

LAYERS = tf.keras.layers


def build_dense_skips(input_shape, num_outputs):
    """Dense layers with skip connections, BatchNorm, and activations that have slopes of their own."""
    inputs = tf.keras.Input(input_shape)
    x = LAYERS.Normalization(mean=0.1, variance=1.5)(inputs)
    for units in (24, 16):
        inner = LAYERS.BatchNormalization(momentum=0.9)(LAYERS.Dense(units, use_bias=False)(x))
        inner = LAYERS.Concatenate()([LAYERS.PReLU()(inner), LAYERS.LeakyReLU(0.2)(inner)])
        x = LAYERS.Concatenate()([x, inner])
    gate = LAYERS.Dense(x.shape[-1], activation="sigmoid")(x)
    return tf.keras.Model(inputs, LAYERS.Dense(num_outputs)(LAYERS.Multiply()([x, gate])))


def build_regularized(input_shape, num_outputs):
    """Regularizers, constraints, dropout, and layers that are frozen, BatchNorm among them."""
    constant = tf.keras.initializers.Constant
    return tf.keras.Sequential(
        [
            tf.keras.Input(input_shape),
            LAYERS.Flatten(),
            LAYERS.Dense(32, activation="gelu", kernel_regularizer=tf.keras.regularizers.L2(1e-3)),
            LAYERS.Dense(24, activation="selu", trainable=False),
            LAYERS.BatchNormalization(
                trainable=False,
                gamma_initializer=constant(1.5),
                moving_mean_initializer=constant(0.1),
                moving_variance_initializer=constant(0.7),
            ),
            StatelessDropout(0.2),
            LAYERS.Dense(16, activation="relu6", kernel_constraint=tf.keras.constraints.MaxNorm(2.0)),
            LAYERS.ActivityRegularization(l2=1e-4),
            LAYERS.Dense(num_outputs, bias_constraint=tf.keras.constraints.NonNeg()),
        ]
    )


def build_categories(input_shape, num_outputs):
    """Two columns of categories that are looked up, beside numbers."""
    inputs = tf.keras.Input(input_shape)
    embedded = [
        LAYERS.Flatten()(LAYERS.Embedding(rows, 4)(tf.cast(inputs[:, place : place + 1], "int32")))
        for place, rows in enumerate((7, 4))
    ]
    x = LAYERS.Concatenate()([*embedded, inputs[:, 2:]])
    x = LAYERS.Dense(24, activation="swish")(x)
    return tf.keras.Model(inputs, LAYERS.Dense(num_outputs)(LAYERS.ELU()(LAYERS.Dense(16)(x))))


def build_sensor_convolutions(input_shape, num_outputs):
    """Convolutions over time: causal, dilated, separable and strided ones, with BatchNorm and poolings."""
    return tf.keras.Sequential(
        [
            tf.keras.Input(input_shape),
            LAYERS.Conv1D(16, 3, padding="causal", activation="relu"),
            LAYERS.BatchNormalization(momentum=0.9),
            LAYERS.Conv1D(16, 3, padding="same", dilation_rate=2, activation="swish"),
            LAYERS.MaxPooling1D(2),
            LAYERS.SeparableConv1D(16, 3, activation="gelu"),
            LAYERS.AveragePooling1D(2, padding="same"),
            LAYERS.GlobalMaxPooling1D(),
            LAYERS.Dense(num_outputs),
        ]
    )


def build_image_convolutions(input_shape, num_outputs):
    """Convolutions with BatchNorm, depthwise, separable and dilated ones, paddings and activations."""
    return tf.keras.Sequential(
        [
            tf.keras.Input(input_shape),
            LAYERS.Rescaling(2.0, -1.0),
            LAYERS.ZeroPadding2D(1),
            LAYERS.Conv2D(12, 3, strides=2, use_bias=False),
            LAYERS.BatchNormalization(momentum=0.9),
            LAYERS.ReLU(6.0, negative_slope=0.1),
            LAYERS.DepthwiseConv2D(3, padding="same", depth_multiplier=2),
            LAYERS.PReLU(shared_axes=(1, 2)),
            LAYERS.SeparableConv2D(16, 3, padding="same", activation="swish"),
            LAYERS.Conv2D(16, 3, padding="same", dilation_rate=2, activation="elu"),
            LAYERS.AveragePooling2D(2),
            LAYERS.Flatten(),
            LAYERS.Dense(num_outputs),
        ]
    )


def build_residual(input_shape, num_outputs):
    """Residual blocks with GroupNorm and LayerNorm, a grouped convolution, and channels that are weighted."""
    inputs = tf.keras.Input(input_shape)
    x = LAYERS.Conv2D(16, 3, padding="same")(inputs)
    for normalize in (LAYERS.GroupNormalization(4), LAYERS.LayerNormalization(epsilon=1e-6)):
        inner = LAYERS.ReLU()(normalize(x))
        inner = LAYERS.Conv2D(16, 3, padding="same", groups=2)(inner)
        weights = LAYERS.Dense(4, activation="relu")(LAYERS.GlobalAveragePooling2D(keepdims=True)(inner))
        inner = LAYERS.Multiply()([inner, LAYERS.Dense(16, activation="hard_sigmoid")(weights)])
        x = LAYERS.MaxPooling2D(2)(LAYERS.Add()([x, inner]))
    return tf.keras.Model(inputs, LAYERS.Dense(num_outputs)(LAYERS.GlobalAveragePooling2D()(x)))


def build_upsampling(input_shape, num_outputs):
    """Transposed convolutions, upsampling and cropping, and back."""
    inputs = tf.keras.Input(input_shape)
    x = LAYERS.Conv2D(8, 3, strides=2, padding="same", activation="relu")(inputs)
    x = LAYERS.Conv2DTranspose(8, 3, strides=2, padding="same", activation="tanh")(x)
    x = LAYERS.UpSampling2D(2, interpolation="bilinear")(LAYERS.Cropping2D(1)(x))
    x = LAYERS.UpSampling2D(2)(LAYERS.Conv2D(8, 3, strides=2, activation="softplus")(x))
    x = LAYERS.Maximum()([LAYERS.MaxPooling2D(2)(x), LAYERS.AveragePooling2D(2)(x)])
    return tf.keras.Model(inputs, LAYERS.Dense(num_outputs)(LAYERS.Flatten()(LAYERS.Permute((3, 1, 2))(x))))


def build_masked_recurrent(input_shape, num_outputs):
    """GRU and LSTM in both directions, of sequences whose padding is masked."""
    return tf.keras.Sequential(
        [
            tf.keras.Input(input_shape),
            LAYERS.Masking(),
            LAYERS.Bidirectional(LAYERS.GRU(8, return_sequences=True)),
            LAYERS.TimeDistributed(LAYERS.Dense(8, activation="tanh")),
            LAYERS.Bidirectional(LAYERS.LSTM(8), merge_mode="sum"),
            LAYERS.Dense(num_outputs),
        ]
    )


def build_recurrent_cells(input_shape, num_outputs):
    """Recurrent layers of all kinds one after the other, backwards and made of cells, too."""
    return tf.keras.Sequential(
        [
            tf.keras.Input(input_shape),
            LAYERS.LSTM(8, return_sequences=True, recurrent_activation="hard_sigmoid"),
            LAYERS.GRU(8, return_sequences=True, reset_after=False, go_backwards=True),
            LAYERS.SimpleRNN(8, return_sequences=True),
            LAYERS.RNN([LAYERS.LSTMCell(8), LAYERS.GRUCell(8)]),
            LAYERS.Dense(num_outputs),
        ]
    )


def build_attention(input_shape, num_outputs):
    """Attention over the steps, with positions that are learned, LayerNorm, and a log-softmax at the end."""
    inputs = tf.keras.Input(input_shape)
    # Part of the graph of layers: what is looked up by a constant would be one, too, drawn anew by each call of this.
    places = tf.cumsum(tf.ones_like(inputs[:, :, 0]), axis=1, exclusive=True)
    x = LAYERS.Dense(16)(inputs) + LAYERS.Embedding(input_shape[0], 16)(places)
    x = LAYERS.Add()([x, LAYERS.MultiHeadAttention(2, 8)(x, x)])
    x = LAYERS.LayerNormalization(epsilon=1e-6)(x)
    x = LAYERS.Add()([x, LAYERS.Dense(16)(LAYERS.Dense(32, activation="gelu")(x))])
    logits = LAYERS.Dense(num_outputs)(LAYERS.GlobalAveragePooling1D()(x))
    return tf.keras.Model(inputs, tf.nn.log_softmax(logits))


class OwnModel(tf.keras.Model):
    """A subclass with a loss of its own, a nested model and a Lambda."""

    def __init__(self, num_outputs):
        super().__init__()
        self.inner = tf.keras.Sequential([LAYERS.Dense(16, activation="tanh"), LAYERS.Dense(16)])
        self.scale = LAYERS.Lambda(lambda x: tf.math.l2_normalize(x, axis=-1) * 4)
        self.head = LAYERS.Dense(num_outputs)

    def call(self, inputs):
        """Logits (batch, outputs)."""
        inner = self.inner(LAYERS.Flatten()(inputs))
        self.add_loss(1e-3 * tf.reduce_mean(tf.square(inner)))
        return self.head(self.scale(inner))


def build_subclass(input_shape, num_outputs):
    """An OwnModel, built by a call."""
    model = OwnModel(num_outputs)
    model(tf.zeros((1, *input_shape)))
    return model


def build_token_classes(input_shape, num_outputs):
    """Tokens with one class an example: an embedding that masks the token 0, and an LSTM."""
    tokens = tf.keras.Input(input_shape, dtype="int32")
    x = LAYERS.Embedding(20, 8, mask_zero=True)(tokens)
    x = LAYERS.Concatenate()([LAYERS.LSTM(8)(x), LAYERS.GlobalAveragePooling1D()(x)])
    return tf.keras.Model(tokens, LAYERS.Dense(num_outputs)(x))


def build_many_labels(input_shape, num_outputs):
    """Several labels an example, from a recurrent layer of images' rows."""
    return tf.keras.Sequential(
        [
            tf.keras.Input(input_shape),
            LAYERS.Reshape((input_shape[0], -1)),
            LAYERS.SimpleRNN(16, activation="relu"),
            LAYERS.Dense(num_outputs),
        ]
    )


def build_regression(input_shape, num_outputs):
    """Numbers, from convolutional LSTM cells over windows of a sequence."""
    inputs = tf.keras.Input(input_shape)
    windows = LAYERS.Reshape((input_shape[0] // 5, 5, input_shape[1], 1))(inputs)
    x = LAYERS.ConvLSTM2D(4, 3, padding="same")(windows)
    return tf.keras.Model(inputs, LAYERS.Dense(num_outputs)(LAYERS.Flatten()(x)))
