"""The names of models and their options, checked without TensorFlow so that `--help` and flag errors answer at once."""

from typing import NamedTuple

MOST_WEIGHTS = 10_000_000  # of a model that is not known to have fewer, such as a user's own


class Architecture(NamedTuple):
    """A model of this package.

    Attributes:
      builder: "module:function" of (input_shape, num_outputs, **options), which returns a new, built Keras model.
      rank: how many axes its examples have; None for any number. Those of one axis are sequences of tokens, and the
        model says after each token what comes next, unless it takes a vocabulary.
      teacher: the name of the larger model of the same kind that can teach it.
      num_weights: of the model and its teacher at the largest data set that they are used on, rounded up: of these a
        sweep tells, before TensorFlow is there, how many runs fit into the memory.
      options: the fields of `ModelOptions` that the builder takes, "activation" of convolutions or "width", a factor
        on the numbers of filters.
      unquantized: why TF-MOT cannot quantize the model while it is trained; "" if it can.
      smallest_side: of the images that it takes.
      takes_vocabulary: whether its builder also takes `vocabulary`, how many tokens there are; the model gives one
        answer for all tokens of an example, which are the words of a text.
    """

    builder: str
    rank: int | None
    teacher: str
    num_weights: int = MOST_WEIGHTS
    options: tuple[str, ...] = ()
    unquantized: str = ""
    smallest_side: int = 1
    takes_vocabulary: bool = False


_IMAGE, _PERCEPTRON, _TEXT = "models.image_cnn:build_", "models.perceptron:build_", "models.text_recurrent:build_"
_ACTIVATION, _WIDTH = ("activation",), ("width",)
ARCHITECTURES = {
    "image_student": Architecture(f"{_IMAGE}image_student", 3, "image_teacher", 120_000, _ACTIVATION),
    "image_teacher": Architecture(f"{_IMAGE}image_teacher", 3, "image_teacher", 200_000, _ACTIVATION),
    "image_cnn10": Architecture(f"{_IMAGE}image_cnn10", 3, "image_cnn10", 2_500_000, _WIDTH),
    "image_cnn10_gn": Architecture(f"{_IMAGE}image_cnn10_gn", 3, "image_cnn10_gn", 2_500_000, _WIDTH, "GroupNorm"),
    "sensor_student": Architecture(f"{_IMAGE}sensor_student", 2, "sensor_teacher"),
    "sensor_teacher": Architecture(f"{_IMAGE}sensor_teacher", 2, "sensor_teacher"),
    "perceptron": Architecture(f"{_PERCEPTRON}perceptron", None, "perceptron_teacher", 100_000),
    "perceptron_teacher": Architecture(f"{_PERCEPTRON}perceptron_teacher", None, "perceptron_teacher", 200_000),
    "perceptron_1nn": Architecture(f"{_PERCEPTRON}perceptron_1nn", None, "perceptron_teacher", 400_000),
    "perceptron_2nn": Architecture(f"{_PERCEPTRON}perceptron_2nn", None, "perceptron_teacher", 500_000),
    "logistic_regression": Architecture(f"{_PERCEPTRON}logistic_regression", None, "perceptron_teacher"),
    # Two convolutions take 4 pixels of each side, and the pooling needs 2.
    "emnist_cnn": Architecture(f"{_IMAGE}emnist_cnn", 3, "emnist_cnn", 3_000_000, smallest_side=6),
    "fedavg_cnn": Architecture(f"{_IMAGE}fedavg_cnn", 3, "fedavg_cnn", 3_500_000),
    # Each convolution takes 4 pixels of each side, and each pooling half of what is left.
    "lenet": Architecture(f"{_IMAGE}lenet", 3, "lenet", 130_000, smallest_side=16),
    "resnet18_gn": Architecture(
        "models.resnet:build_resnet18_gn", 3, "resnet18_gn", 23_000_000, unquantized="GroupNorm"
    ),
    "mobilenet_v2": Architecture(
        "models.mobilenet:build_mobilenet_v2", 3, "resnet18_gn", 14_000_000, _WIDTH, "GroupNorm"
    ),
    "char_lstm": Architecture(f"{_TEXT}char_lstm", 1, "char_lstm", 2_000_000, unquantized="LSTM"),
    "char_gru": Architecture(f"{_TEXT}char_gru", 1, "char_lstm", 2_000_000, unquantized="GRU"),
    "char_transformer": Architecture(f"{_TEXT}char_transformer", 1, "char_lstm", 2_000_000, unquantized="attention"),
    "word_lstm": Architecture(f"{_TEXT}word_lstm", 1, "word_lstm", unquantized="LSTM"),
    **{
        name: Architecture(
            f"models.text_mean:build_{name}",
            1,
            "text_mean_teacher",
            2_000_000,
            unquantized="embedding",
            takes_vocabulary=True,
        )
        for name in ("text_mean", "text_mean_teacher")
    },
}
MODEL_NAMES = tuple(ARCHITECTURES)
WIDTH_MODELS = tuple(name for name, each in ARCHITECTURES.items() if "width" in each.options)
TOKEN_MODELS = tuple(name for name, each in ARCHITECTURES.items() if each.rank == 1 and not each.takes_vocabulary)
TEXT_MODELS = tuple(name for name, each in ARCHITECTURES.items() if each.takes_vocabulary)
STUDENT_OF_RANK = {3: "image_student", 2: "sensor_student", 1: "perceptron"}  # what "auto" is, by an example's axes
ACTIVATIONS = ("linear", "relu")
QUANTIZATIONS = ("none", "qat")
PRECISIONS = ("float32", "bfloat16")
AUGMENTATIONS = ("none", "crop_flip")
EXPORT_FORMATS = ("float32", "float16", "dynamic", "int8", "qat_int8")
EXPORT_IO = ("float32", "int8")
TRAINED_PARTS = ("head", "full")  # of a model that is trained on a phone
# In the folder of a saved model: the model itself or, where Keras cannot write it, its weights alone.
KERAS_FILE, ARRAYS_FILE = "model.keras", "weights.npz"
SAVED_FILES = (KERAS_FILE, ARRAYS_FILE)


class ModelError(ValueError):
    """A model that cannot be used: one line with what was wrong, what was expected and how to fix it."""


def is_own_model(model: str) -> bool:
    """Whether `model` names a user's own function, "module:function"."""
    return ":" in model


def check_model_name(model: str, flag: str = "model") -> None:
    """Raises ModelError, naming `flag`, unless `model` is "auto", one of MODEL_NAMES or "module:function"."""
    if is_own_model(model):
        module, _, function = model.partition(":")
        if not (function.isidentifier() and all(part.isidentifier() for part in module.split("."))):
            raise ModelError(f"{flag}={model}: expected module:function, for example my_models:build_cnn")
    elif model != "auto" and model not in MODEL_NAMES:
        raise ModelError(f"{flag}={model}: expected auto, {', '.join(MODEL_NAMES)}, or your own as module:function")
