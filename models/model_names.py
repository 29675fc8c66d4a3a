"""The names of models and their options, checked without TensorFlow so that `--help` and flag errors answer at once."""

MODEL_NAMES = (
    "image_student",
    "image_teacher",
    "image_cnn10",
    "image_cnn10_gn",
    "sensor_student",
    "sensor_teacher",
    "perceptron",
    "perceptron_teacher",
    "perceptron_1nn",
    "perceptron_2nn",
    "logistic_regression",
    "emnist_cnn",
    "fedavg_cnn",
    "lenet",
    "resnet18_gn",
    "mobilenet_v2",
    "char_lstm",
    "char_gru",
    "char_transformer",
    "word_lstm",
)
WIDTH_MODELS = ("image_cnn10", "image_cnn10_gn", "mobilenet_v2")  # models whose numbers of filters can be scaled
STUDENT_OF_RANK = {3: "image_student", 2: "sensor_student", 1: "perceptron"}  # what "auto" is, by an example's axes
# Weights of a model and its teacher at the largest data set that they are used on, rounded up: of these a sweep tells,
# before TensorFlow is there, how many runs fit into the memory.
NUM_WEIGHTS = {
    "image_student": 120_000,
    "image_teacher": 200_000,
    "image_cnn10": 2_500_000,
    "image_cnn10_gn": 2_500_000,
    "perceptron": 100_000,
    "perceptron_teacher": 200_000,
    "perceptron_1nn": 400_000,
    "perceptron_2nn": 500_000,
    "lenet": 130_000,
    "fedavg_cnn": 3_500_000,
    "emnist_cnn": 3_000_000,
    "mobilenet_v2": 14_000_000,
    "resnet18_gn": 23_000_000,
    "char_lstm": 2_000_000,
    "char_gru": 2_000_000,
    "char_transformer": 2_000_000,
}
MOST_WEIGHTS = 10_000_000  # of one that is not among these, such as a user's own, or those of HAR
TOKEN_MODELS = ("char_lstm", "char_gru", "char_transformer", "word_lstm")  # say after each token what comes next
# Why TF-MOT cannot quantize a model while it is trained.
UNQUANTIZED = {
    "image_cnn10_gn": "GroupNorm",
    "resnet18_gn": "GroupNorm",
    "mobilenet_v2": "GroupNorm",
    "char_lstm": "LSTM",
    "char_gru": "GRU",
    "char_transformer": "attention",
    "word_lstm": "LSTM",
}
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
