"""Files of recurrent models answer as Keras does, whatever they were asked before; what cannot be so is refused.

Keras traces an LSTM and a GRU with their gradients each time it builds them, so that where any layer will do it is
`SimpleRNN`.
"""

import functools

import numpy as np
import pytest
import tensorflow as tf
from model_answers import answer_twice, compute_keras
from small_formats import make_format

from models.model_names import ModelError
from models.model_spec import ModelSpec
from models.recurrent_layers import find_loops, use_loops, write_out_steps
from models.tflite_export import convert_model, convert_training_module

LAYERS = tf.keras.layers
SHAPE = (2, 3)
NUM_CLASSES = 4


def end(x):
    return LAYERS.Dense(NUM_CLASSES, name="logits")(x)


def functional(body):
    def build(shape=SHAPE):
        inputs = tf.keras.Input(shape)
        return tf.keras.Model(inputs, end(body(inputs)))

    return build


class Subclassed(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.first = LAYERS.LSTM(5, return_sequences=True)
        self.second = LAYERS.GRU(5)
        self.logits = LAYERS.Dense(NUM_CLASSES)

    def call(self, inputs, training=False):
        return self.logits(self.second(self.first(inputs)))


def build_subclassed(shape=SHAPE):
    model = Subclassed()
    model(np.zeros((1, *shape), np.float32))
    return model


def nest(x):
    inner = tf.keras.Sequential([tf.keras.Input(SHAPE), LAYERS.SimpleRNN(5)])
    return inner(x)


def embed(x):
    """Tokens that are stored as floats; 0 is no token."""
    tokens = LAYERS.Lambda(lambda x: tf.cast(x[..., 0], tf.int32))(x)
    return LAYERS.LSTM(5)(LAYERS.Embedding(10, 4, mask_zero=True)(tokens))


BODIES = {
    "lstm": lambda x: LAYERS.LSTM(5)(x),
    "gru": lambda x: LAYERS.GRU(5)(x),
    "simple_rnn": lambda x: LAYERS.SimpleRNN(5)(x),
    "bidirectional": lambda x: LAYERS.LSTM(4)(LAYERS.Bidirectional(LAYERS.LSTM(3, return_sequences=True))(x)),
    "cells": lambda x: LAYERS.RNN([LAYERS.LSTMCell(4), LAYERS.GRUCell(3)])(x),
    "masked_gru": lambda x: LAYERS.GRU(5)(LAYERS.Masking()(x)),
    "embedding": embed,
    "convolution": lambda x: LAYERS.Flatten()(LAYERS.Conv1D(3, 2)(LAYERS.LSTM(4, return_sequences=True)(x))),
    "nested": nest,
    "time_distributed": lambda x: LAYERS.LSTM(4)(LAYERS.TimeDistributed(LAYERS.Dense(3))(x)),
}
BUILDERS = {**{name: functional(body) for name, body in BODIES.items()}, "subclassed": build_subclassed}


def read_both_ways(x):
    return LAYERS.SimpleRNN(3)(LAYERS.Bidirectional(LAYERS.SimpleRNN(3, return_sequences=True), name="both")(x))


MASKED_OUTPUTS = functional(lambda x: read_both_ways(LAYERS.Masking()(x)))
CONVOLVED = functional(
    lambda x: LAYERS.Flatten()(LAYERS.ConvLSTM1D(3, 2, name="convolved")(LAYERS.Reshape((*SHAPE, 1))(x)))
)


@functools.cache
def make(build, shape=SHAPE):
    """(spec, weights) of a model that was not trained."""
    tf.keras.utils.set_random_seed(0)
    spec = ModelSpec("own", lambda: build(shape), make_format(shape, "float32", NUM_CLASSES))
    return spec, tuple(spec.build().get_weights())


def draw(shape=SHAPE, num=12):
    """Examples of different lengths, the rest of each zeros; the first value of a step can be a token."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(num, *shape)).astype(np.float32)
    x[..., 0] = generator.integers(1, 10, x.shape[:-1])
    for row, length in enumerate(generator.integers(1, shape[0] + 1, num)):
        x[row, length:] = 0
    return x


# What these have is in others, too: masks in `embedding`, and in int8.
SLOW = ("gru", "masked_gru", "simple_rnn", "convolution", "time_distributed")
CASES = [
    *((name, "float32") for name in BUILDERS if name not in SLOW),
    *(pytest.param(name, "float32", marks=pytest.mark.slow) for name in SLOW),
    ("lstm", "dynamic"),
    pytest.param("lstm", "float16", marks=pytest.mark.slow),
    *((name, "int8") for name in ("lstm", "masked_gru")),
    *(pytest.param(name, "int8", marks=pytest.mark.slow) for name in ("gru", "subclassed")),
]


@pytest.mark.parametrize(("name", "export_format"), CASES)
def test_a_file_answers_as_keras_in_any_order(name, export_format):
    spec, weights = make(BUILDERS[name])
    x = draw()
    there, back = answer_twice(convert_model(spec, weights, export_format, representative=x), x)
    np.testing.assert_array_equal(there, back)
    expected = compute_keras(spec, weights, x)
    share = {"float32": 1e-4, "float16": 0.02, "dynamic": 0.1, "int8": 0.3}[export_format]
    np.testing.assert_allclose(there, expected, atol=share * np.abs(expected).max())


def test_outputs_that_are_masked_stay_right():
    """Keras computes them otherwise where steps are written out; so float files have loops, and there is no int8."""
    spec, weights = make(MASKED_OUTPUTS)
    x = draw()
    there, back = answer_twice(convert_model(spec, weights, "float32"), x)
    np.testing.assert_array_equal(there, back)
    np.testing.assert_allclose(there, compute_keras(spec, weights, x), atol=1e-5)
    x[:] = np.where(x == 0, 1, x)  # none of which shows it
    check_refused(
        spec, weights, x, "int8 of own: layer both/backward_simple_rnn.* computes in a loop.*masked steps.*dynamic$"
    )


def check_refused(spec, weights, x, message):
    with pytest.raises(ModelError, match=message) as error:
        convert_model(spec, weights, "int8", representative=x)
    assert "\n" not in str(error.value)


def test_long_sequences_are_loops_in_float_files_and_refused_in_int8():
    shape = (1001, 3)
    spec, weights = make(functional(lambda x: LAYERS.SimpleRNN(5, name="reader")(x)), shape)
    x = draw(shape, 3)
    content = convert_model(spec, weights, "float32")
    assert len(content) < 15_000  # written out, it would have over a million
    there, back = answer_twice(content, x)
    np.testing.assert_array_equal(there, back)
    np.testing.assert_allclose(there, compute_keras(spec, weights, x), atol=1e-4)
    check_refused(spec, weights, x, "layer reader computes .*reader has 1,001 steps, 1,000 in all can be written out")


@pytest.mark.parametrize(
    ("build", "layer"),
    [
        (CONVOLVED, "convolved"),
        (
            functional(lambda x: LAYERS.Lambda(lambda x: tf.scan(lambda h, t: h + t, x)[:, 0], name="own")(x)),
            "own/scan",
        ),
    ],
    ids=["convolutional", "lambda"],
)
def test_a_loop_of_another_kind_is_refused_in_int8(build, layer):
    """The converter would crash. It is seen in the graph, not by the layer's class."""
    spec, weights = make(build)
    check_refused(spec, weights, draw(), f"int8 of own: layer {layer}.* computes in a loop, which cannot be quantized")


def test_steps_are_counted_over_all_layers():
    spec, _ = make(functional(read_both_ways))
    model = spec.build()
    use_loops(model)
    function = tf.function(model).get_concrete_function(tf.TensorSpec((1, *SHAPE)))
    assert len(find_loops(function)) == 3
    [left] = write_out_steps(model, draw(), max_steps=5)
    assert left.endswith("has 2 steps, 5 in all can be written out")
    function = tf.function(lambda x: model(x)).get_concrete_function(tf.TensorSpec((1, *SHAPE)))
    assert len(find_loops(function)) == 1


def test_a_stateful_layer_is_refused():
    def build(shape):
        inputs = tf.keras.Input(shape, batch_size=1)
        return tf.keras.Model(inputs, end(LAYERS.GRU(3, stateful=True, name="keeper")(inputs)))

    spec, weights = make(build)
    for export_format in ("float32", "int8"):
        with pytest.raises(ModelError, match=f"{export_format} of own: layer keeper is stateful"):
            convert_model(spec, weights, export_format, representative=draw())
    with pytest.raises(ModelError, match="layer keeper is stateful"):
        convert_training_module(spec, weights, 1)


def test_a_training_file_of_an_lstm_needs_no_select_operators():
    spec, weights = make(BUILDERS["lstm"])
    x = draw(num=16)
    file = convert_training_module(spec, weights, 16, examples=x)
    assert file.select_operators == ()
    interpreter = tf.lite.Interpreter(model_content=file.content)
    infer, train = (interpreter.get_signature_runner(name) for name in ("infer", "train"))
    expected = compute_keras(spec, weights, x)
    for row in (*range(16), *reversed(range(16))):
        np.testing.assert_allclose(infer(x=x[row : row + 1])["logits"][0], expected[row], atol=1e-5)
    y = np.arange(16, dtype=np.int32) % NUM_CLASSES
    losses = [float(train(x=x, y=y, learning_rate=np.float32(0.1))["loss"]) for _ in range(5)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]
