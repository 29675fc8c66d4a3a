"""From names and shapes to specifications."""

import math

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_spec

from datasets.example_format import TextFormat
from models.catalog import MODEL_NAMES, ModelError, crop_and_flip
from models.model_names import ARCHITECTURES, TEXT_MODELS, TOKEN_MODELS
from models.task import build_task

TEXT = build_task("next_token", 4, (5,))
TOKENS = {"input_shape": (5,), "input_dtype": "int32", "num_classes": 4, "takes_tokens": True}
WORDS = {**TOKENS, "text": TextFormat("review", ("<pad>", "<oov>", "good", "bad"))}
EXAMPLES = {name: {**TOKENS, "task": TEXT} for name in TOKEN_MODELS} | dict.fromkeys(TEXT_MODELS, WORDS)
IMAGES = {"input_shape": (8, 8, 1), "input_dtype": "uint8", "num_classes": 10}
OWN_MODULES = {
    "own_volumes": "from models.perceptron import build_perceptron\n"
    "def build(input_shape, num_classes):\n    return build_perceptron(input_shape, num_classes)\n",
    "own_words": "from models.text_mean import build_text_mean\n"
    "def build(input_shape, num_outputs):\n    return build_text_mean(input_shape, num_outputs, 4)\n",
}
pytestmark = pytest.mark.usefixtures("own_modules")
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


# Those of many layers take seconds, and test_federated_models.py builds them.
@pytest.mark.parametrize("name", [name for name in MODEL_NAMES if name not in ("resnet18_gn", "mobilenet_v2")])
def test_every_name_builds(name):
    data = EXAMPLES.get(name, {"num_classes": 4})
    shapes = {"sensor": (15, 3), "perceptron": (20,), "logistic": (20,), "lenet": (16, 16, 1)}
    data = {"input_shape": shapes.get(name.split("_")[0], (8, 8, 1)), **data}
    spec = make_spec(name, **data)
    model = spec.build()
    assert (spec.name, model.output_shape) == (name, (None, *spec.task.output_shape))
    assert model.input.dtype == (tf.int32 if name in EXAMPLES else tf.float32)


@pytest.mark.parametrize("name", [name for name, each in ARCHITECTURES.items() if each.unquantized])
def test_what_cannot_be_quantized_is_said_at_once(name):
    data = EXAMPLES.get(name, IMAGES)
    with pytest.raises(ModelError, match=f"^quantize=qat: TF-MOT cannot .* of {name} while .* export int8[^\n]*$"):
        make_spec(name, **data, quantize="qat")


def test_tokens_whose_next_ones_are_the_labels_have_models():
    spec = make_spec("auto", **TOKENS, task=TEXT)
    assert (spec.name, spec.teacher.name) == ("char_lstm", "char_lstm")
    spec = make_spec("char_transformer", **TOKENS, task=TEXT, teacher_model="word_lstm")
    assert (spec.name, spec.teacher.name) == ("char_transformer", "word_lstm")


@pytest.mark.parametrize("model", ["auto", "own_words:build"])
def test_the_words_of_a_text_have_models_for_any_task_of_one_answer(model):
    for task in (None, build_task("binary", 1), build_task("regression", 2, (2,))):
        spec = make_spec(model, **WORDS, task=task)
        assert (spec.name, spec.teacher.name) == ("text_mean" if model == "auto" else model, "text_mean_teacher")
        assert spec.teacher.build().output_shape == (None, spec.task.num_outputs)


@pytest.mark.parametrize("name", ["emnist_cnn", "fedavg_cnn", "logistic_regression"])
def test_the_others_of_the_literature_are_quantized(name):
    spec = make_spec(name, (8, 8, 1), "uint8", 4, quantize="qat")
    assert spec.quantization.float_spec.build().count_params() < spec.build().count_params()


def test_preprocessing_and_activation_are_shared_with_the_teacher():
    spec = make_spec("auto", **IMAGES, scale=1 / 16, offset=-0.5, activation="relu")
    for each in (spec, spec.teacher):
        np.testing.assert_array_equal(each.preprocess(tf.constant([0, 8, 16], tf.uint8)), [-0.5, 0.0, 0.5])
        assert each.format.input_dtype == "uint8"
        activations = {layer.activation for layer in each.build().layers if isinstance(layer, tf.keras.layers.Conv2D)}
        assert activations == {tf.keras.activations.relu}


def test_width_reaches_the_models_that_have_it():
    spec = make_spec("image_cnn10", (32, 32, 3), "uint8", 10, width=0.25)
    assert (spec.build().count_params(), spec.teacher.build().count_params()) == (77_346, 77_346)
    spec = make_spec("auto", **IMAGES, teacher_model="image_cnn10", width=0.25)
    assert spec.build().count_params() == 17_194 and spec.teacher.build().count_params() < 80_000


def test_augmentation_reaches_model_teacher_and_quantized_model():
    spec = make_spec("auto", **IMAGES, augment="crop_flip", quantize="qat")
    assert spec.augment is spec.teacher.augment is spec.quantization.float_spec.augment is crop_and_flip
    assert make_spec("auto", **IMAGES).augment is None


@pytest.mark.parametrize(
    ("model", "options", "teacher"),
    [
        ("auto", {"teacher_model": "perceptron"}, "perceptron"),
        ("perceptron", {"teacher_model": OWN_MODEL}, OWN_MODEL),
        (OWN_MODEL, {}, "image_teacher"),  # that of the shape
        ("own_volumes:build", {"input_shape": (2, 2, 2, 1)}, None),
    ],
)
def test_the_teacher_is_chosen_or_that_of_the_shape(model, options, teacher):
    spec = make_spec(model, **{**IMAGES, **options})
    assert (spec.teacher and spec.teacher.name) == teacher


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
        ({"model": "text_mean"}, "^model=text_mean: expected examples of the words of a text .*, these are numbers"),
        ({**WORDS, "model": "perceptron"}, "^model=perceptron: expected one that takes tokens, text_mean, text_mean_t"),
        ({**WORDS, "model": "char_gru"}, "^model=char_gru: expected one that takes tokens, text_mean"),
        (
            {**TOKENS, "model": "perceptron", "task": TEXT},
            "^model=perceptron: expected one that takes tokens, char_lstm, char_gru",
        ),
        (
            {**TOKENS, "model": OWN_MODEL, "task": TEXT, "teacher_model": "perceptron"},
            "^teacher_model=perceptron: expected one that takes tokens, char_lstm",
        ),
        ({"input_shape": (5,), "task": TEXT}, "^model=auto: no model of this package is for task next_token of such"),
        (
            {**TOKENS, "model": "char_lstm"},
            "^model=char_lstm: no model of this package is for tokens with task classification; give your own",
        ),
        ({"quantize": "int8"}, "quantize=int8: expected one of none, qat"),
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
    with pytest.raises(ModelError, match=message) as error:
        make_spec(**{"model": "auto", **IMAGES, **arguments})
    assert "\n" not in str(error.value)


def test_a_sweep_reckons_with_no_fewer_weights_than_models_have():
    for name in ("image_student", "image_teacher"):
        spec = make_spec(name, (32, 32, 3), "uint8", 10)
        counts = [sum(math.prod(shape) for shape in each.weight_shapes) for each in (spec, spec.teacher)]
        num_weights = ARCHITECTURES[name].num_weights
        assert num_weights / 3 < sum(counts) <= num_weights, counts
