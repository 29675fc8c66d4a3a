"""Models that read tokens, and those that normalize, in TFLite: every format answers as Keras does, in any order."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from model_answers import answer_twice, compute_keras
from small_formats import make_format, make_spec

from datasets.example_format import TextFormat
from models.model_names import ModelError
from models.model_spec import ModelSpec
from models.task import build_task
from models.tflite_export import convert_model, find_select_operators, list_operators

POSITIONS, VOCABULARY = 4, 12
LAYERS = tf.keras.layers
SHARES = {"float32": 1e-4, "float16": 0.02, "dynamic": 0.1, "int8": 0.15}  # of the largest output


@functools.cache
def make_text(name):
    """(spec, weights, tokens) of an untrained model with embeddings and attention as marked as in a trained one."""
    task = build_task("next_token", VOCABULARY, (POSITIONS,))
    spec = make_spec(name, (POSITIONS,), "int32", VOCABULARY, takes_tokens=True, task=task)
    tf.keras.utils.set_random_seed(0)
    model = spec.build()
    factors = {"embedding": 20, "query": 8, "value": 4}
    weights = [
        w.numpy() * next((factor for part, factor in factors.items() if part in w.name), 1) for w in model.weights
    ]
    return spec, tuple(weights), np.random.default_rng(0).integers(0, VOCABULARY, (24, POSITIONS)).astype(np.int32)


@functools.cache
def make_words():
    """The same of the model that reads the words of a text, some of which are padding."""
    text = TextFormat("review", tuple(map(str, range(VOCABULARY))))
    spec = make_spec("text_mean", (POSITIONS,), "int32", takes_tokens=True, text=text)
    tf.keras.utils.set_random_seed(0)
    embedding, *rest = spec.build().get_weights()
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (24, POSITIONS)).astype(np.int32)
    tokens[:6, 2:] = tokens[0] = 0
    return spec, (20 * embedding, *rest), tokens


def build_normalizing(shape=(8, 8, 4)):
    inputs = tf.keras.Input(shape)
    x = LAYERS.Conv2D(16, 3, padding="same", name="convolution")(inputs)
    x = LAYERS.ReLU()(LAYERS.GroupNormalization(4, name="normalization")(x))
    return tf.keras.Model(inputs, LAYERS.Dense(3, name="logits")(LAYERS.GlobalAveragePooling2D()(x)))


@functools.cache
def make_normalizing():
    """(spec, weights, examples) of a model whose groups have very different ranges."""
    spec = ModelSpec("own", build_normalizing, make_format((8, 8, 4)))
    tf.keras.utils.set_random_seed(0)
    weights = spec.build().get_weights()
    weights[0] *= np.repeat([0.5, 1.0, 2.0, 4.0], 4).astype(np.float32)
    return spec, tuple(weights), np.random.default_rng(0).normal(size=(40, 8, 8, 4)).astype(np.float32)


def check_answers(content, spec, weights, x, share):
    expected = compute_keras(spec, weights, x)
    there, back = answer_twice(content, x)
    np.testing.assert_array_equal(there, back)
    np.testing.assert_allclose(there, expected, atol=share * np.abs(expected).max())
    assert find_select_operators(content) == ()


@functools.cache
def convert(make, export_format):
    spec, weights, x = make()
    return convert_model(spec, weights, export_format, representative=x)


MAKE = {name: functools.partial(make_text, name) for name in ("char_lstm", "char_gru", "char_transformer")}
MAKE["text_mean"] = make_words
# What is recurrent is written out alike, and each file of it takes seconds.
FILES = [
    *((name, each) for name in ("char_transformer", "text_mean") for each in SHARES),
    ("char_lstm", "float32"),
    ("char_gru", "int8"),
]
SLOW_FILES = [(name, each) for name in ("char_lstm", "char_gru") for each in SHARES if (name, each) not in FILES]


@pytest.mark.parametrize(
    ("name", "export_format"), [*FILES, *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW_FILES)]
)
def test_a_file_that_reads_tokens_answers_as_keras(name, export_format):
    content = convert(MAKE[name], export_format)
    check_answers(content, *MAKE[name](), SHARES[export_format])
    [details] = tf.lite.Interpreter(model_content=content).get_input_details()
    assert (details["dtype"], details["shape"].tolist()) == (np.int32, [1, POSITIONS])


def test_what_comes_later_reaches_no_answer_of_a_file():
    x = make_text("char_transformer")[-1]
    changed = x.copy()
    changed[:, 2:] = 0
    for export_format in ("float32", "int8"):
        content = convert(MAKE["char_transformer"], export_format)
        before, after = answer_twice(content, x)[0], answer_twice(content, changed)[0]
        np.testing.assert_array_equal(before[:, :2], after[:, :2])
        assert np.abs(before[:, 2:] - after[:, 2:]).max() > 0


@pytest.mark.parametrize("export_format", SHARES)
def test_group_norm_answers_as_keras(export_format):
    check_answers(convert(make_normalizing, export_format), *make_normalizing(), SHARES[export_format])


def test_group_norm_leaves_the_convolution_in_integers():
    content = convert(make_normalizing, "int8")
    assert {"CONV_2D", "QUANTIZE", "DEQUANTIZE"} <= list_operators(content).keys()
    tensors = tf.lite.Interpreter(model_content=content, experimental_preserve_all_tensors=True).get_tensor_details()
    kernels = [tensor for tensor in tensors if tensor["shape"].tolist() == [16, 3, 3, 4]]
    assert [kernel["dtype"] for kernel in kernels] == [np.int8]


@pytest.mark.parametrize("make", [make_normalizing, MAKE["char_transformer"]])
def test_integer_inputs_of_what_normalizes_are_refused(make):
    spec, weights, x = make()
    with pytest.raises(ModelError, match=r"^int8 of .*: what normalizes stays in floats.*; leave io=int8 out$"):
        convert_model(spec, weights, "int8", "int8", x)
