"""A user's own Keras model, named as "module:function", checked before anything is trained with it."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator

import tensorflow as tf

from datasets.own_objects import describe_failure, import_object
from models.eager_model import adapts, find_build, list_variables
from models.input_dtypes import check_input
from models.model_names import ModelError, check_model_name
from models.own_model_checks import check_own_model
from models.precision import build_in_precision
from models.task import Task, build_task


def load_own_model(
    model: str,
    input_shape: tuple[int, ...],
    num_outputs: int,
    flag: str = "model",
    precision: str = "float32",
    to_train: bool = True,
    task: Task | None = None,
    input_dtype: str = "float32",
) -> Callable[[], tf.keras.Model]:
    """Imports the function "module:function" and checks the model it returns.

    The function gets (input_shape, num_outputs) and returns a new, built Keras model that takes float32, or int32 for
    tokens, of shape (batch, *input_shape) and returns the task's outputs: logits (batch, classes) of a classification,
    (batch, positions, vocabulary) of next_token.

    Args:
      model: "module:function".
      input_shape: shape of one example as the model gets it, without the batch axis.
      num_outputs: width of the outputs, for example the number of classes.
      flag: what errors call it, "model" or "teacher_model".
      precision: what its layers are to compute in, "float32" or "bfloat16".
      to_train: False for a run that is finished; see `check_own_model`.
      task: what it is trained to do; None is classification.
      input_dtype: "float32", or "int32" for tokens.

    Returns:
      A builder without arguments.

    Raises:
      ModelError: if the module or function is missing or fails, or the model is not as said.
    """
    check_model_name(model, flag)
    task = task or build_task("classification", num_outputs)
    label = f"{flag}={model}"
    function = import_object(model, label, ModelError)
    if not callable(function):
        raise ModelError(f"{label}: expected a function, got {type(function).__name__}")
    _check_arguments(label, function, input_shape, num_outputs)
    build = functools.partial(function, input_shape, num_outputs)
    if precision != "float32":
        build = functools.partial(build_in_precision, build, precision)
    first = _build(label, build, input_shape)
    second = _build(label, build, input_shape)
    if first is second:
        raise ModelError(f"{label}: expected a new model from each call; build it inside the function")
    if [weight.shape for weight in list_variables(first)] != [weight.shape for weight in list_variables(second)]:
        raise ModelError(f"{label}: expected weights of the same shapes from each call")
    check_input(label, second, input_shape)
    check = functools.partial(
        check_own_model, label, input_shape=input_shape, task=task, to_train=to_train, input_dtype=input_dtype
    )
    with _keep_common(first, second):
        is_checked = not adapts(second)  # what a layer has adapted to is no weight of the model that is trained
        if is_checked:
            check(second)
        batch = tf.TensorSpec((None, *input_shape), input_dtype)
        chosen = find_build(label, build, first, batch, to_train)
        if chosen is not build or not is_checked:
            check(_build(label, chosen, input_shape))
    # Guarded, since training calls it again and again: a later call that fails must be one line, too.
    return functools.partial(_call, label, chosen)


@contextlib.contextmanager
def _keep_common(first: tf.keras.Model, second: tf.keras.Model) -> Iterator[None]:
    """After the block, weights that both models have are as before: layers outside of the function, pretrained ones."""
    known = {id(weight) for weight in list_variables(first)}
    common = [weight for weight in list_variables(second) if id(weight) in known]
    values = [weight.numpy() for weight in common]
    try:
        yield
    finally:
        for weight, value in zip(common, values, strict=True):
            weight.assign(value)


def _build(label: str, build: Callable, input_shape: tuple[int, ...]) -> tf.keras.Model:
    model = _call(label, build)
    if not isinstance(model, tf.keras.Model):
        found = "None; is a return missing?" if model is None else f"{type(model).__name__}"
        raise ModelError(f"{label}: expected the function to return a tf.keras.Model, got {found}")
    if not model.built:
        raise ModelError(f"{label}: expected a built model; start it with tf.keras.Input({input_shape})")
    return model


def _check_arguments(label: str, function: Callable, *arguments) -> None:
    try:
        inspect.signature(function).bind(*arguments)
    except ValueError:  # what is written in C need not say what it takes
        return
    except TypeError as error:
        raise ModelError(f"{label}: expected a function of (input_shape, num_classes): {error}") from error


def _call(label: str, function: Callable, *arguments):
    """`function(*arguments)`; the user's code may raise anything, `sys.exit` included, so that becomes a ModelError."""
    try:
        return function(*arguments)
    except (Exception, SystemExit) as error:
        raise ModelError(f"{label}: failed with {describe_failure(error)}") from error
