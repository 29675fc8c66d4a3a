"""From names and shapes to specifications."""

import math

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_spec

from models.catalog import MODEL_NAMES, ModelError, crop_and_flip
from models.model_names import NUM_WEIGHTS, TOKEN_MODELS, UNQUANTIZED
from models.task import build_task

TEXT = build_task("next_token", 4, (5,))
OWN_MODEL = "models.image_cnn:build_image_teacher"  # any function of (input_shape, num_classes)


@pytest.mark.parametrize(
    ("input_shape", "student", "teacher"),
    [
        ((8, 8, 1), "image_student", "image_teacher"),
        ((15, 3), "sensor_student", "sensor_teacher"),
        ((20,), "perceptron", "perceptron_teacher"),
    ],
)
def test_auto_goes_by_shape(input_shape, student, teacher):
    spec = make_spec("auto", input_shape, "float32", 4)
    assert (spec.name, spec.teacher.name, spec.teacher.teacher) == (student, teacher, None)
    for each in (spec, spec.teacher):
        assert each.build().output_shape == (None, 4)
        assert each.build().input_shape == (None, *input_shape)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_every_name_builds(name):
    if name in TOKEN_MODELS:
        spec = make_spec(name, (5,), "int32", 4, takes_tokens=True, task=TEXT)
        assert spec.build().input.dtype == tf.int32
    else:
        shapes = {"sensor": (15, 3), "perceptron": (20,), "logistic": (20,), "lenet": (16, 16, 1)}
        spec = make_spec(name, shapes.get(name.split("_")[0], (8, 8, 1)), "float32", 4)
    assert (spec.name, spec.build().output_shape) == (name, (None, *spec.task.output_shape))


def test_tokens_whose_next_ones_are_the_labels_have_models():
    spec = make_spec("auto", (5,), "uint8", 4, takes_tokens=True, task=TEXT)
    assert (spec.name, spec.teacher.name) == ("char_lstm", "char_lstm")
    assert spec.teacher.build().output_shape == (None, 5, 4)
    spec = make_spec("char_transformer", (5,), "uint8", 4, takes_tokens=True, task=TEXT, teacher_model="word_lstm")
    assert (spec.name, spec.teacher.name) == ("char_transformer", "word_lstm")


@pytest.mark.parametrize("name", UNQUANTIZED)
def test_what_cannot_be_quantized_is_said_at_once(name):
    data = ((5,), "int32", 4) if name in TOKEN_MODELS else ((32, 32, 3), "uint8", 4)
    text = {"task": TEXT, "takes_tokens": True} if name in TOKEN_MODELS else {}
    with pytest.raises(
        ModelError, match=f"^quantize=qat: TF-MOT cannot quantize the .* of {name}.* export int8"
    ) as error:
        make_spec(name, *data, quantize="qat", **text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["emnist_cnn", "fedavg_cnn", "logistic_regression"])
def test_the_others_of_the_literature_are_quantized(name):
    spec = make_spec(name, (8, 8, 1), "uint8", 4, quantize="qat")
    assert spec.quantization.float_spec.build().count_params() < spec.build().count_params()


def test_preprocessing_is_shared_with_the_teacher():
    spec = make_spec("auto", (8, 8, 1), "uint8", 10, scale=1 / 16, offset=-0.5)
    for each in (spec, spec.teacher):
        np.testing.assert_array_equal(each.preprocess(tf.constant([0, 8, 16], tf.uint8)), [-0.5, 0.0, 0.5])
    assert (spec.format.input_dtype, spec.teacher.format.input_dtype) == ("uint8", "uint8")


def test_activation_reaches_student_and_teacher():
    spec = make_spec("auto", (8, 8, 1), "uint8", 10, activation="relu")
    for each in (spec, spec.teacher):
        activations = {layer.activation for layer in each.build().layers if isinstance(layer, tf.keras.layers.Conv2D)}
        assert activations == {tf.keras.activations.relu}


def test_width_reaches_the_models_that_have_it():
    spec = make_spec("image_cnn10", (32, 32, 3), "uint8", 10, width=0.25)
    assert (spec.build().count_params(), spec.teacher.build().count_params()) == (77_346, 77_346)
    spec = make_spec("auto", (8, 8, 1), "uint8", 10, teacher_model="image_cnn10", width=0.25)
    assert spec.build().count_params() == 17_194 and spec.teacher.build().count_params() < 80_000


def test_augmentation_reaches_model_teacher_and_quantized_model():
    spec = make_spec("auto", (8, 8, 1), "uint8", 10, augment="crop_flip", quantize="qat")
    assert spec.augment is spec.teacher.augment is spec.quantization.float_spec.augment is crop_and_flip
    assert make_spec("auto", (8, 8, 1), "uint8", 10).augment is None


def test_teacher_can_be_chosen():
    assert make_spec("auto", (8, 8, 1), "uint8", 10, teacher_model="perceptron").teacher.name == "perceptron"
    own = make_spec("perceptron", (8, 8, 1), "uint8", 10, teacher_model=OWN_MODEL).teacher
    assert (own.name, own.build().count_params()) == (OWN_MODEL, 93_322)


def test_own_model_gets_the_teacher_of_the_shape():
    spec = make_spec(OWN_MODEL, (8, 8, 1), "uint8", 10)
    assert (spec.name, spec.teacher.name) == (OWN_MODEL, "image_teacher")


def test_own_model_of_a_shape_without_teacher(tmp_path, monkeypatch):
    (tmp_path / "own_volumes.py").write_text(
        "from models.perceptron import build_perceptron\n"
        "def build(input_shape, num_classes):\n    return build_perceptron(input_shape, num_classes)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert make_spec("own_volumes:build", (2, 2, 2, 1)).teacher is None


def test_builds_inside_graphs_again_and_again():
    spec = make_spec("auto", (15, 3), "float32", 4)
    expected = [tuple(weight.shape) for weight in spec.build().weights]
    for _ in range(2):
        with tf.Graph().as_default():
            model = spec.build()
            assert [tuple(weight.shape) for weight in model.weights] == expected
            assert model(tf.zeros((2, 15, 3)), training=True).shape == (2, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "resnet"}, "^model=resnet: expected auto, image_student"),
        ({"input_shape": (2, 2, 2, 1)}, "^model=auto: no model for examples of shape"),
        ({"model": "sensor_student"}, r"^model=sensor_student: expected examples of shape \(steps, channels\)"),
        ({"teacher_model": "sensor_teacher"}, r"^teacher_model=sensor_teacher: expected examples of shape \(steps, "),
        ({"teacher_model": "resnet"}, "^teacher_model=resnet: expected auto, image_student"),
        ({"teacher_model": "a-b:c"}, "^teacher_model=a-b:c: expected module:function"),
        ({"teacher_model": "models.image_cnn:nothing"}, "^teacher_model=models.image_cnn:nothing: expected nothing in"),
        ({"teacher_model": "no_such_module:f"}, "^teacher_model=no_such_module:f: no module named no_such_module"),
        ({"activation": "tanh"}, "activation=tanh: expected one of linear, relu"),
        ({"model": "perceptron", "activation": "relu"}, "only the image models have this choice, not perceptron"),
        (
            {"width": 0.5},
            "width=0.5: only image_cnn10 and image_cnn10_gn and mobilenet_v2 have this",
        ),
        ({"model": "emnist_cnn", "input_shape": (5, 8, 1)}, "^model=emnist_cnn: expected images of at least 6 pixels"),
        ({"model": "char_gru"}, "^model=char_gru: expected examples of tokens with task next_token, these are numbers"),
        ({"teacher_model": "word_lstm"}, "^teacher_model=word_lstm: expected examples of tokens"),
        (
            {"model": "perceptron", "input_shape": (5,), "task": TEXT, "takes_tokens": True},
            "^model=perceptron: expected one that takes tokens, char_lstm, char_gru",
        ),
        (
            {"model": "char_lstm", "input_shape": (5,), "takes_tokens": True},
            "^model=char_lstm: no model of this package is for tokens with task classification; give your own",
        ),
        ({"augment": "rotate"}, "augment=rotate: expected one of none, crop_flip"),
        ({"input_shape": (15, 3), "augment": "crop_flip"}, r"augment=crop_flip: expected images .*got \(15, 3\)"),
        ({"model": "image_cnn10", "width": 0.0}, "width=0.0: expected a number above 0"),
        (
            {"model": "image_cnn10", "input_shape": (20,)},
            r"image_cnn10: expected examples of shape \(height, width, ch",
        ),
        ({"model": "models.image_cnn:nothing"}, "^model=models.image_cnn:nothing: expected nothing in"),
    ],
)
def test_mistakes_in_one_line(arguments, message):
    defaults = {"model": "auto", "input_shape": (8, 8, 1), "input_dtype": "uint8", "num_classes": 10}
    with pytest.raises(ModelError, match=message) as error:
        make_spec(**{**defaults, **arguments})
    assert "\n" not in str(error.value)


def test_a_sweep_reckons_with_no_fewer_weights_than_models_have():
    assert set(NUM_WEIGHTS) <= set(MODEL_NAMES)
    for name in ("image_student", "image_teacher"):
        spec = make_spec(name, (32, 32, 3), "uint8", 10)
        counts = [sum(math.prod(shape) for shape in each.weight_shapes) for each in (spec, spec.teacher)]
        assert NUM_WEIGHTS[name] / 3 < sum(counts) <= NUM_WEIGHTS[name], counts
