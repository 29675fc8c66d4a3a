"""The names of models and their options, checked without TensorFlow so that `--help` and flag errors answer at once."""

MODEL_NAMES = (
    "image_student",
    "image_teacher",
    "image_cnn10",
    "sensor_student",
    "sensor_teacher",
    "perceptron",
    "perceptron_teacher",
    "perceptron_2nn",
    "logistic_regression",
    "emnist_cnn",
    "fedavg_cnn",
    "resnet18_gn",
    "mobilenet_v2",
    "char_lstm",
    "char_gru",
    "char_transformer",
    "word_lstm",
)
WIDTH_MODELS = ("image_cnn10", "mobilenet_v2")  # models whose numbers of filters can be scaled
TOKEN_MODELS = ("char_lstm", "char_gru", "char_transformer", "word_lstm")  # say after each token what comes next
# Why TF-MOT cannot quantize a model while it is trained.
UNQUANTIZED = {
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


class ModelError(ValueError):
    """A model that cannot be used: one line with what was wrong, what was expected and how to mend it."""


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
