"""A user's own Keras model, named as "module:function", checked before anything is trained with it."""

import functools
import importlib
from collections.abc import Callable

import tensorflow as tf

from models.model_names import ModelError, check_model_name
from models.precision import build_in_precision

_TRANSPARENT_OPS = {"Identity", "Cast", "Reshape"}
_PROBABILITY_OPS = {"Softmax": "softmax", "Sigmoid": "sigmoid"}


def load_own_model(
    model: str, input_shape: tuple[int, ...], num_classes: int, flag: str = "model", precision: str = "float32"
) -> Callable[[], tf.keras.Model]:
    """Imports the function "module:function" and checks the model it returns.

    The function gets (input_shape, num_classes) and returns a new, built Keras model that takes float32 of shape
    (batch, *input_shape) and returns logits (batch, num_classes).

    Args:
      model: "module:function".
      input_shape: shape of one example, without the batch axis.
      num_classes: width of the logits.
      flag: what errors call it, "model" or "teacher_model".
      precision: what its layers are to compute in, "float32" or "bfloat16".

    Returns:
      A builder without arguments.

    Raises:
      ModelError: if the module or function is missing or fails, or the model is not as said.
    """
    check_model_name(model, flag)
    label = f"{flag}={model}"
    build = functools.partial(_import_function(model, label), input_shape, num_classes)
    if precision != "float32":
        build = functools.partial(build_in_precision, build, precision)
    keras_model = _call(label, build)
    if not isinstance(keras_model, tf.keras.Model):
        raise ModelError(f"{label}: expected the function to return a tf.keras.Model, got {type(keras_model)}")
    if not keras_model.built:
        raise ModelError(f"{label}: expected a built model; start it with tf.keras.Input({input_shape})")
    if _call(label, build) is keras_model:
        raise ModelError(f"{label}: expected a new model from each call; build it inside the function")
    _check_weights(label, keras_model)
    _check_logits(label, keras_model, input_shape, num_classes)
    # Guarded, since training calls it again and again: a later call that fails must be one line, too.
    return functools.partial(_call, label, build)


def _import_function(model: str, label: str) -> Callable:
    module_name, _, function_name = model.partition(":")
    try:
        function = getattr(importlib.import_module(module_name), function_name, None)
    except ModuleNotFoundError as error:
        mend = "run from the folder that holds it, or put that folder in PYTHONPATH"
        # Neither the user's module nor a package around it is missing, but something that it imports.
        if error.name and not f"{module_name}.".startswith(f"{error.name}."):
            mend = f"{module_name} needs it; install it"
        raise ModelError(f"{label}: no module named {error.name}; {mend}") from error
    except (Exception, SystemExit) as error:
        raise ModelError(f"{label}: importing {module_name} failed: {_in_one_line(error)}") from error
    if not callable(function):
        raise ModelError(f"{label}: expected a function {function_name} in {module_name}, there is none")
    return function


def _call(label: str, function: Callable, *arguments):
    """`function(*arguments)`; the user's code may raise anything, `sys.exit` included, so that becomes a ModelError."""
    try:
        return function(*arguments)
    except (Exception, SystemExit) as error:
        raise ModelError(f"{label}: failed with {_in_one_line(error)}") from error


def _check_weights(label: str, keras_model: tf.keras.Model) -> None:
    """Refuses weights that the algorithms cannot train and average, and layers whose randomness cannot be repeated."""
    others = sorted({weight.dtype.name for weight in keras_model.weights if weight.dtype.is_floating} - {"float32"})
    if others:
        raise ModelError(f"{label}: expected float32 weights, got {', '.join(others)}")
    if not keras_model.trainable_weights:
        raise ModelError(f"{label}: expected a model with weights to train, it has none")
    if any(type(layer) is tf.keras.layers.Dropout for layer in keras_model.layers):
        raise ModelError(f"{label}: Keras's Dropout cannot be repeated; take models.stateless_dropout.StatelessDropout")


def _check_logits(label: str, keras_model: tf.keras.Model, input_shape, num_classes: int) -> None:
    batch = tf.TensorSpec((None, *input_shape), tf.float32)
    traced = _call(label, tf.function(lambda x: keras_model(x, training=False)).get_concrete_function, batch)
    outputs = traced.outputs
    if len(outputs) != 1 or outputs[0].shape.rank != 2 or outputs[0].shape[1] != num_classes:
        shapes = ", ".join(str(output.shape) for output in outputs)
        raise ModelError(f"{label}: expected logits of shape (batch, {num_classes}), got {shapes}")
    if outputs[0].dtype != tf.float32:
        found = outputs[0].dtype.name
        raise ModelError(f'{label}: expected logits of dtype float32, got {found}; give the last layer dtype="float32"')
    # Losses take logits; a model that ends in probabilities would train, but badly, and nobody would know why.
    operation = outputs[0].op
    while operation.type in _TRANSPARENT_OPS:
        operation = operation.inputs[0].op
    if operation.type in _PROBABILITY_OPS:
        name = _PROBABILITY_OPS[operation.type]
        raise ModelError(f"{label}: expected logits, the last operation is a {name}; leave it out")


def _in_one_line(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return "a call of sys.exit"
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
