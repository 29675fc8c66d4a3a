"""Models whose Input is no float32: what they get, and which stored numbers they can take."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_format, make_spec

from datasets.example_format import Preprocessing
from models.input_dtypes import check_input, describe_input, find_misfit, settle_input
from models.model_names import ModelError
from models.model_spec import ModelSpec
from models.own_model_checks import CutOff, find_cut_off
from models.quantization import build_quantized_spec
from models.tflite_export import convert_model

K, L = tf.keras, tf.keras.layers
SHAPE = (2, 2, 1)
BYTES = make_format(SHAPE, "uint8", scale=1 / 16)
SOURCE = """
import tensorflow as tf

def whole(input_shape, num_outputs):
    x = tf.keras.Input(input_shape, dtype="uint8")
    return tf.keras.Model(x, tf.keras.layers.Dense(num_outputs)(tf.keras.layers.Flatten()(tf.cast(x, tf.float32))))
"""


OWN_MODULES = {"own_whole": SOURCE}


class Casting(K.Model):
    """A subclass without Input that looks up what it gets."""

    def __init__(self):
        super().__init__()
        self.embedding, self.flatten, self.dense = L.Embedding(17, 2), L.Flatten(), L.Dense(3)

    def call(self, x):
        return self.dense(self.flatten(self.embedding(tf.cast(x, tf.int32))))


def build_casting():
    model = Casting()
    model.build((None, *SHAPE))
    return model


def build(dtype, shape=SHAPE):
    """Inputs of a dtype as they are, then a dense layer."""
    x = K.Input(shape, dtype=dtype)
    return K.Model(x, L.Dense(3)(L.Flatten()(tf.cast(x, tf.float32))))


def build_nested(dtype, also_floats=False):
    x, inner = K.Input(SHAPE), build(dtype)
    y = inner(L.Reshape(SHAPE)(x))
    return K.Model(x, y + L.Dense(3)(L.Flatten()(x)) if also_floats else y)


def build_sequential(dtype):
    return K.Sequential([L.InputLayer(SHAPE, dtype=dtype), L.Rescaling(1 / 16), L.Flatten(), L.Dense(3)])


def build_dict():
    x = K.Input(SHAPE, dtype="uint8", name="x")
    return K.Model({"x": x}, L.Dense(3)(L.Flatten()(tf.cast(x, tf.float32))))


@pytest.mark.parametrize(
    ("model", "dtype"),
    [
        (lambda: build("uint8"), "uint8"),
        (lambda: build("int64"), "int64"),
        (lambda: build("bool"), "bool"),
        (lambda: build_sequential("int32"), "int32"),
        (lambda: build_nested("uint8"), "uint8"),
        (build_dict, "uint8"),
    ],
)
def test_a_model_that_asks_for_whole_numbers_gets_the_stored_ones(model, dtype):
    given, found = settle_input(model(), make_format(SHAPE, "uint8", scale=1 / 16, offset=-0.5), SHAPE)
    assert (found, given.preprocessing.scale, given.preprocessing.offset) == (dtype, 1, 0)


@pytest.mark.parametrize(
    ("model", "dtype"),
    [
        (lambda: build("float32"), ""),
        (lambda: build("float64"), ""),
        (lambda: build("float16"), "float16"),
        (lambda: build("bfloat16"), "bfloat16"),
        (lambda: build_nested("uint8", also_floats=True), ""),  # which have to stay scaled
        (build_casting, ""),
    ],
)
def test_others_get_scaled_numbers(model, dtype):
    assert settle_input(model(), BYTES, SHAPE) == (BYTES, dtype)


def test_a_known_range_is_that_of_the_stored_numbers():
    given = dataclasses.replace(BYTES, preprocessing=Preprocessing(1 / 16, -0.5, (-0.5, 0.5)))
    assert settle_input(build("uint8"), given, SHAPE)[0].preprocessing.feature_range == (0, 16)


@pytest.mark.parametrize(("dtype", "found"), [("int32", ""), ("int64", ""), ("uint8", "uint8"), ("float16", "float16")])
def test_tokens_are_never_scaled_and_narrower_inputs_are_known(dtype, found):
    given = make_format((4,), "int32", takes_tokens=True)
    assert settle_input(build(dtype, shape=(4,)), given, (4,)) == (given, found)
    if found:
        assert find_misfit(found, given, np.array([[0, 255], [3000, 1]], np.int32)).startswith("3000, expected whole")


def build_two_inputs():
    x, z = K.Input(SHAPE), K.Input((3,), dtype="uint8")
    return K.Model({"x": x, "z": z}, L.Dense(3)(L.Concatenate()([L.Flatten()(x), tf.cast(z, tf.float32)])))


def build_of_texts():
    texts = K.Input(SHAPE, dtype="string")
    return K.Model(texts, L.Dense(3)(L.Flatten()(tf.strings.to_number(texts))))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (build_two_inputs, r"expected one input, got 2 of shapes \(2, 2, 1\), \(3,\); start"),
        (build_of_texts, "its Input has dtype string, expected numbers; start with tf.kera"),
    ],
)
def test_several_inputs_and_texts_are_one_line(build, message):
    with pytest.raises(ModelError, match=f"^model=a:b: {message}"):
        check_input("model=a:b", build(), SHAPE)


@pytest.mark.parametrize(
    ("dtype", "stored", "found"),
    [
        ("uint8", [0, 255], ""),
        ("uint8", [0, 300], "300, expected whole numbers from 0 to 255"),
        ("uint8", [3, -1], "-1, expected whole numbers from 0 to 255"),
        ("int8", [200, -1], "200, expected whole numbers from -128 to 127"),
        ("int32", [0.5, 2], "0.5, expected whole numbers from -2,147,483,648 to 2,147,483,647"),
        ("bool", [0, 1], ""),
        ("bool", [1, 7], "7, expected whole numbers from 0 to 1"),
        ("float16", [0.3, 65504], ""),
        ("float16", [0.3, 7e4], "70000, expected numbers from -65504 to 65504"),
        ("int64", [float("nan")], "nan, expected"),
        ("", [0.5, 1e30], ""),
    ],
)
def test_which_numbers_a_dtype_takes(dtype, stored, found):
    text = find_misfit(dtype, make_format((1,)), np.array(stored, np.float32).reshape(-1, 1))
    assert text.startswith(found) if found else not text


def test_bytes_are_looked_at_only_where_they_may_not_fit():
    x = np.array([[200]], np.uint8)
    assert not find_misfit("uint8", make_format((1,), "uint8"), x)
    assert find_misfit("int8", make_format((1,), "uint8"), x) == "200, expected whole numbers from -128 to 127"
    assert find_misfit("int32", make_format((1,), "uint8", scale=1 / 16), x).startswith("12.5, expected whole")


@pytest.mark.parametrize(
    ("model", "found"),
    [
        (build_casting, CutOff((0,), "int32")),
        (lambda: build_nested("uint8"), CutOff((0,), "uint8")),
        (lambda: build("float32"), CutOff()),
    ],
)
def test_what_is_cast_without_arithmetic_is_found(model, found):
    assert find_cut_off(model(), SHAPE) == found


def test_what_is_scaled_back_first_is_no_loss_and_columns_are_told_apart():
    x = K.Input((3,))
    looked_up = L.Embedding(5, 2)(x[:, 2])
    restored = L.Embedding(17, 2)(tf.round(16 * x[:, 0]))
    model = K.Model(x, L.Dense(3)(L.Concatenate()([looked_up, restored, x])))
    assert find_cut_off(model, (3,)) == CutOff((2,), "int32")


@pytest.mark.usefixtures("own_modules")
def test_the_teacher_gets_its_own():
    stored, maxima = tf.constant(np.full((1, 8, 8, 1), 8, np.uint8)), {"own_whole:whole": 8, "perceptron": 0.5}
    for model, teacher in (maxima, reversed(maxima)):
        spec = make_spec(model, (8, 8, 1), "uint8", 10, scale=1 / 16, teacher_model=teacher)
        for each in (spec, spec.teacher):
            assert float(tf.reduce_max(each.preprocess(stored))) == maxima[each.name]
            assert each.input_dtype == ("uint8" if each.name == "own_whole:whole" else "")


WHOLE = ModelSpec("own:whole", lambda: build("uint8"), make_format(SHAPE, "uint8"), input_dtype="uint8")


def test_files_take_floats_and_cast_them_inside():
    kernel = np.zeros((4, 3), np.float32)
    kernel[0] = [1, 2, -1]
    file = tf.lite.Interpreter(model_content=convert_model(WHOLE, (kernel, np.zeros(3, np.float32)), "float32"))
    run = file.get_signature_runner()
    assert file.get_input_details()[0]["dtype"] == np.float32
    x = np.array([7, 0, 255, 1], np.float32).reshape(1, *SHAPE)
    np.testing.assert_array_equal(run(x=x)["logits"], [[7, 14, -7]])
    # 8 bits have a scale of 1 for 0..255 alone, and even there what leads to whole numbers stays in floats.
    for highest, problem in ((255, "leads to whole numbers stays in floats"), (16, "whose whole numbers 8 bits")):
        examples = np.array([0, highest, 1, 2], np.uint8).reshape(1, *SHAPE)
        with pytest.raises(ModelError, match=problem):
            convert_model(WHOLE, (kernel, np.zeros(3, np.float32)), "int8", "int8", examples)


def test_quantization_aware_training_takes_floats_only():
    layers = L.InputLayer(SHAPE, dtype="uint8"), L.Flatten(), L.Dense(3)  # that can all be quantized
    spec = dataclasses.replace(WHOLE, build=lambda: K.Sequential(layers))
    with pytest.raises(ModelError, match=r"^quantize=qat with model=own:whole: its Input has dtype uint8, but TF-MOT"):
        build_quantized_spec(spec)


def test_words():
    assert "no advice to scale them" in describe_input("int32") and "keeps 3 digits" in describe_input("float16")
