"""Each format against the Keras model that it comes from, in TFLite's interpreter; and what is refused."""

import functools
import logging.handlers
import tempfile
import warnings

import numpy as np
import pytest
import tensorflow as tf
from model_answers import compute_keras
from small_formats import make_format, make_spec

from models.model_names import EXPORT_FORMATS, ModelError
from models.model_spec import ModelSpec
from models.quantization import build_quantized_spec
from models.tflite_converter import describe_refusal
from models.tflite_export import convert_model, convert_training_module, find_reference, list_operators

NUM_EXAMPLES = 200
LAYERS = tf.keras.layers


def build_batch_norm_model():
    return tf.keras.Sequential(
        [
            tf.keras.Input((8, 8, 1)),
            LAYERS.Conv2D(8, 3, name="convolution"),
            LAYERS.BatchNormalization(name="normalization"),
            LAYERS.ReLU(name="relu"),
            LAYERS.GlobalAveragePooling2D(name="pooling"),
            LAYERS.Dense(4, name="logits"),
        ]
    )


SPECS = {
    "image_student": make_spec("auto", (8, 8, 1), "uint8", 10, scale=1 / 16, offset=-0.25),
    "sensor_student": make_spec("auto", (16, 3), "float32", 6),
    "image_cnn10": make_spec("image_cnn10", (8, 8, 1), "uint8", 10, scale=1 / 16, width=0.125),
    "batch_norm": ModelSpec("batch_norm", build_batch_norm_model, make_format((8, 8, 1), "uint8", 4, scale=1 / 16)),
}
# Each file takes seconds: all formats of one model, and of the others what their layers make a difference to.
FILES = [
    *(("image_student", each) for each in EXPORT_FORMATS),
    *(("sensor_student", each) for each in ("float32", "qat_int8")),
    *(("batch_norm", each) for each in ("float32", "int8", "qat_int8")),
]
SLOW_FILES = [
    *((name, each) for name in ("sensor_student", "batch_norm") for each in ("float16", "dynamic")),
    *(("image_cnn10", each) for each in ("float32", "qat_int8")),
    ("sensor_student", "int8"),
]
# Largest difference of the logits as a share of their range, and smallest top-1 agreement.
TOLERANCES = {
    "float32": (1e-5, 1.0),
    "float16": (0.005, 0.99),
    "dynamic": (0.03, 0.97),
    "int8": (0.06, 0.96),
    "qat_int8": (0.02, 0.98),
}
# What may be missing from the agreement: the logits of this untrained model lie so close that the CPU settles ties.
CLOSE_LOGITS = {("image_cnn10", "qat_int8"): 0.03}


@functools.cache
def draw_examples(name):
    """Stored examples, at random."""
    generator = np.random.default_rng(0)
    shape = (NUM_EXAMPLES, *SPECS[name].format.input_shape)
    if SPECS[name].format.input_dtype == "uint8":
        return generator.integers(0, 17, shape).astype(np.uint8)
    return generator.normal(size=shape).astype(np.float32)


@functools.cache
def train_ranges(name):
    """(quantization-aware spec, weights) whose ranges and BatchNorm statistics have followed data."""
    tf.keras.utils.set_random_seed(0)
    generator = np.random.default_rng(0)
    spec = build_quantized_spec(SPECS[name])
    model = spec.build()
    for variable in model.weights:
        if "gamma" in variable.name or "beta" in variable.name:
            variable.assign(generator.uniform(0.5, 2, variable.shape))
    step = tf.function(lambda x: model(spec.preprocess(x), training=True))
    for _ in range(60):
        step(draw_examples(name))
    return spec, tuple(model.get_weights())


@functools.cache
def convert(name, export_format, io="float32"):
    representative = draw_examples(name) if export_format == "int8" else None
    return convert_model(*train_ranges(name), export_format, io, representative)


def run_file(content, x):
    """Logits of preprocessed examples, through int8 inputs and outputs if the file has them."""
    interpreter = tf.lite.Interpreter(model_content=content)
    run = interpreter.get_signature_runner()
    (input_details,), (output_details,) = run.get_input_details().values(), run.get_output_details().values()
    if input_details["dtype"] == np.int8:
        scale, zero_point = input_details["quantization"]
        x = np.clip(np.round(x / scale + zero_point), -128, 127).astype(np.int8)
    logits = np.concatenate([run(x=example[None])["logits"] for example in x])
    if output_details["dtype"] == np.int8:
        scale, zero_point = output_details["quantization"]
        logits = (logits.astype(np.float32) - zero_point) * np.float32(scale)
    return logits


def list_folders(path):
    """TensorFlow's generated source files lie beside them until the process ends."""
    return [inner.name for inner in path.iterdir() if inner.is_dir()]


def check_agreement(name, export_format, io="float32"):
    spec, weights = find_reference(*train_ranges(name), export_format)
    x = draw_examples(name)
    ours = run_file(convert(name, export_format, io), spec.preprocess(x).numpy())
    keras = compute_keras(spec, weights, x)
    largest, agreement = TOLERANCES[export_format]
    assert np.abs(ours - keras).max() <= largest * np.ptp(keras)
    agreement -= CLOSE_LOGITS.get((name, export_format), 0)
    assert np.mean(ours.argmax(1) == keras.argmax(1)) >= agreement
    run = tf.lite.Interpreter(model_content=convert(name, export_format, io)).get_signature_runner()
    [(x, taken)], [(logits, given)] = run.get_input_details().items(), run.get_output_details().items()
    assert (x, logits, taken["dtype"], given["dtype"]) == ("x", "logits", np.dtype(io), np.dtype(io))
    shapes = (1, *spec.format.input_shape), (1, spec.task.num_outputs)
    assert (tuple(taken["shape"]), tuple(given["shape"])) == shapes


@pytest.mark.parametrize(
    ("name", "export_format"),
    [*FILES, *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW_FILES)],
)
def test_agrees_with_keras(name, export_format):
    check_agreement(name, export_format)


def build_lookup_model():
    """Logits (row[c] + x, 0) of a category c, beside a number x, with row[c] = c."""
    inputs = tf.keras.Input((2,))
    rows = LAYERS.Embedding(
        60, 1, embeddings_initializer=tf.keras.initializers.Constant(np.arange(60.0)[:, np.newaxis])
    )
    found = LAYERS.Flatten()(rows(inputs[:, :1]))
    logits = LAYERS.Dense(2, kernel_initializer=tf.keras.initializers.Constant([[1.0, 0.0], [1.0, 0.0]]))
    return tf.keras.Model(inputs, logits(LAYERS.Concatenate()([found, inputs[:, 1:]])))


def test_int8_looks_up_the_row_that_keras_looks_up():
    """In 8 bits, the first column from 0 to 59 had steps of 0.23, and a 6 that became 5.99 was row 5."""
    x = np.stack([np.arange(60), np.zeros(60)], axis=1).astype(np.float32)
    spec = ModelSpec("lookup", build_lookup_model, make_format((2,), num_classes=2))
    weights = tuple(spec.build().get_weights())
    rows = run_file(convert_model(spec, weights, "int8", "float32", x), x)[:, 0]
    assert np.abs(rows - np.arange(60)).max() < 0.5
    with pytest.raises(ModelError, match=r"what leads to whole numbers stays in floats.*; leave io=int8 out"):
        convert_model(spec, weights, "int8", "int8", x)


def attend_with_mask(x):
    masked = LAYERS.Masking()(x)
    return LAYERS.Attention()([LAYERS.Dense(5)(masked), LAYERS.Dense(5)(masked)])


def attend_by_hand(x):
    """Each step sees itself and those before it."""
    queries, keys = LAYERS.Dense(5)(x), LAYERS.Dense(5)(x)
    is_seen = tf.linalg.band_part(tf.ones((12, 12)), -1, 0) > 0
    scores = tf.where(is_seen, tf.matmul(queries, keys, transpose_b=True), -1e4)
    return tf.matmul(tf.nn.softmax(scores), x)


def attend_to_all(x):
    return LAYERS.Attention()([x, x])


def build_attention_spec(attend):
    def build():
        x = tf.keras.Input((12, 4))
        return tf.keras.Model(x, LAYERS.Dense(4)(LAYERS.GlobalAveragePooling1D()(attend(x))))

    return ModelSpec("attention", build, make_format((12, 4), num_classes=4))


@pytest.mark.parametrize("attend", [attend_with_mask, attend_by_hand])
def test_scores_that_are_hidden_leave_int8_the_others(attend):
    """A range of 1e9 or 1e4 in 8 bits made one number of all scores: a difference of a third of the range and more."""
    tf.keras.utils.set_random_seed(0)
    spec, x = build_attention_spec(attend), np.random.default_rng(0).normal(size=(100, 12, 4)).astype(np.float32)
    x[:, 6:] *= np.arange(100)[:, np.newaxis, np.newaxis] % 2
    weights = tuple(spec.build().get_weights())
    keras = compute_keras(spec, weights, x)
    assert np.abs(run_file(convert_model(spec, weights, "int8", "float32", x), x) - keras).max() < 0.05 * np.ptp(keras)
    with pytest.raises(ModelError, match=r"what normalizes stays in floats.*; leave io=int8 out"):
        convert_model(spec, weights, "int8", "int8", x)


def test_a_softmax_without_a_mask_is_computed_in_integers():
    tf.keras.utils.set_random_seed(0)
    spec, x = build_attention_spec(attend_to_all), np.random.default_rng(0).normal(size=(8, 12, 4)).astype(np.float32)
    content = convert_model(spec, tuple(spec.build().get_weights()), "int8", "int8", x)
    assert "SOFTMAX" in list_operators(content) and not {"QUANTIZE", "DEQUANTIZE"} & list_operators(content).keys()


@pytest.mark.parametrize(
    ("name", "export_format"),
    [
        ("image_student", "int8"),
        ("sensor_student", "qat_int8"),
        pytest.param("batch_norm", "qat_int8", marks=pytest.mark.slow),
    ],
)
def test_integers_in_and_out(name, export_format):
    check_agreement(name, export_format, io="int8")
    assert not {"QUANTIZE", "DEQUANTIZE"} & list_operators(convert(name, export_format, "int8")).keys()


@pytest.mark.parametrize("name", ["image_student", pytest.param("sensor_student", marks=pytest.mark.slow)])
def test_order_of_sizes(name):
    size = {export_format: len(convert(name, export_format)) for export_format in EXPORT_FORMATS}
    assert 0.49 * size["float32"] < size["float16"] < 0.6 * size["float32"]
    for export_format in ("dynamic", "int8", "qat_int8"):
        assert size[export_format] < 0.4 * size["float32"]


@pytest.mark.parametrize(
    ("name", "num_convolutions", "export_format"),
    [
        *(("batch_norm", 1, export_format) for export_format in ("float32", "int8", "qat_int8")),
        *(pytest.param("image_cnn10", 9, each, marks=pytest.mark.slow) for each in ("float32", "qat_int8")),
    ],
)
def test_batch_norm_is_folded(name, num_convolutions, export_format):
    """Nothing of it is left, a MUL or an ADD; what is left computes on the integers of the rest."""
    operators = list_operators(convert(name, export_format))
    around = {} if export_format == "float32" else {"QUANTIZE": 1, "DEQUANTIZE": 1}
    assert operators == {"CONV_2D": num_convolutions, "MEAN": 1, "FULLY_CONNECTED": 1, **around}


@pytest.mark.parametrize("name", ["image_student", "sensor_student", "batch_norm"])
def test_no_operation_is_about_shapes(name):
    assert not {"SHAPE", "PACK", "STRIDED_SLICE"} & list_operators(convert(name, "float32")).keys()


@pytest.mark.parametrize("export_format", [pytest.param("float32", marks=pytest.mark.slow), "int8"])
def test_float_formats_start_from_the_float_model(export_format):
    """With ranges of no use the fake-quant model is far from the float one, which these formats keep to."""
    spec = build_quantized_spec(SPECS["image_student"])
    tf.keras.utils.set_random_seed(0)
    weights = tuple(spec.build().get_weights())
    x = draw_examples("image_student")
    float_spec, float_weights = find_reference(spec, weights, export_format)
    assert float_spec is SPECS["image_student"]
    keras, fake_quant = compute_keras(float_spec, float_weights, x), compute_keras(spec, weights, x)
    assert np.abs(fake_quant - keras).max() > 0.2 * np.ptp(keras)
    content = convert_model(spec, weights, export_format, representative=x)
    ours = run_file(content, spec.preprocess(x).numpy())
    assert np.abs(ours - keras).max() < 0.06 * np.ptp(keras)


def check_error(message, *arguments, **options):
    with pytest.raises(ModelError, match=message) as error:
        convert_model(*arguments, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("float32", "int8"), "io=int8 with float32: only int8 and qat_int8"),
        (("int8",), "int8: expected representative examples, got none"),
        (("int8", "float32", np.zeros((0, 8, 8, 1), np.uint8)), "expected representative examples"),
        (("int4",), "format int4: expected one of float32, float16"),
        (("int8", "uint8"), "io=uint8: expected one of float32, int8"),
    ],
)
def test_bad_requests(arguments, message):
    check_error(message, *train_ranges("image_student"), *arguments)


def test_reference():
    spec, weights = train_ranges("image_student")
    assert find_reference(spec, weights, "qat_int8") == (spec, weights)
    floats = find_reference(spec, weights, "int8")
    assert find_reference(*floats, "int8") == floats
    check_error("qat_int8: image_student is a float model; train it with --quantize=qat", *floats, "qat_int8")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite(value):
    """int8 would make a number of NaN, and infinity end the process of the interpreter."""
    spec, weights = find_reference(*train_ranges("image_student"), "float32")
    broken = (np.full_like(weights[0], value), *weights[1:])
    check_error("float32 of image_student: expected finite weights", spec, broken, "float32")
    with pytest.raises(ModelError, match="on-device training of image_student: expected finite weights"):
        convert_training_module(spec, broken, 4)


def test_an_operation_that_the_converter_lacks(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    layer = LAYERS.Lambda(lambda x: tf.math.betainc(x, x, x), name="beta")
    spec = ModelSpec("own", lambda: tf.keras.Sequential([tf.keras.Input((4,)), layer]), make_format((4,), "float32", 4))
    refusal = "of own: the TFLite converter refuses layer beta: 'tf.Betainc' op is neither a custom op nor a flex op; "
    check_error(f"float32 {refusal}write it with other operations, in float32, or do it before", spec, (), "float32")
    assert list_folders(tmp_path) == []


class Untracked(LAYERS.Layer):
    """Keeps a variable where Keras does not look for weights."""

    def build(self, shape):
        factor = tf.Variable(tf.fill(shape[1:], 3.0), trainable=False)
        self.find = lambda: factor

    def call(self, x):
        return x * self.find()


class InABatch(LAYERS.Layer):
    def call(self, x):
        if x.shape[0] == 1:
            return tf.matmul(tf.squeeze(x), tf.eye(4))
        return x


class OnAValue(LAYERS.Layer):
    def call(self, x):
        return x if tf.reduce_sum(x) > 0 else -x


def make_own_spec(*layers):
    """A specification of a dense layer of ones and these."""

    def build():
        dense = LAYERS.Dense(4, kernel_initializer="ones", name="dense")
        return tf.keras.Sequential([tf.keras.Input((4,)), dense, *(layer() for layer in layers)])

    spec = ModelSpec("own", build, make_format((4,), "float32", 4))
    return spec, tuple(build().get_weights())


def test_a_variable_that_keras_does_not_know_is_in_the_file():
    content = convert_model(*make_own_spec(Untracked), "float32")
    np.testing.assert_allclose(run_file(content, np.float32([[1, 2, 3, 4]])), [[30] * 4], rtol=1e-5)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (lambda: LAYERS.Lambda(look_up, name="words"), r"layer words/\w+ looks up in a table, .* look up before the"),
        (InABatch, r"layer in_a_batch\w* \(InABatch\) fails as a file calls it: ValueError: Shape must be "
         "rank 2 but is rank 1; a file takes one example at a time"),
    ],
)  # fmt: skip
def test_a_layer_that_no_file_can_have_is_named(layer, message):
    """Both ended in a traceback, the first one of TensorFlow's about an 'untracked' resource."""
    spec, weights = make_own_spec(layer)
    check_error(f"float32 of own: {message}", spec, weights, "float32")
    with pytest.raises(ModelError, match=f"^on-device training of own: {message}"):
        convert_training_module(spec, weights, 2)


def look_up(x):
    table = LAYERS.IntegerLookup(vocabulary=[5, 7])
    return x + tf.cast(table(tf.cast(x, "int64")), "float32")


def test_a_branch_that_a_training_file_cannot_have():
    message = r"layer on_a_value\w* \(OnAValue\) fails as a file calls it: .*; write it with tf.where, [^\n]*$"
    with pytest.raises(ModelError, match=message):
        convert_training_module(*make_own_spec(OnAValue), 2)


def test_counts_have_a_way_out_of_their_own():
    text = '<unknown>:0: error: loc(fused["DenseBincount:", "net/codes/bincount/DenseBincount@f"]): '
    line = describe_refusal(f"{text}'tf.DenseBincount' op is neither a custom op nor a flex op\nmore")
    assert line.startswith("the TFLite converter refuses layer codes/bincount: 'tf.DenseBincount' op is")
    assert line.endswith("; take tf.one_hot in place of CategoryEncoding or tf.math.bincount")


def test_nothing_is_printed_or_left_behind(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    records = logging.handlers.BufferingHandler(1000)
    tf.get_logger().addHandler(records)
    with warnings.catch_warnings(record=True) as shown:
        convert_model(*train_ranges("image_student"), "qat_int8")
    tf.get_logger().removeHandler(records)
    assert not shown
    assert not records.buffer
    assert capfd.readouterr().out == ""
    assert list_folders(tmp_path) == []
