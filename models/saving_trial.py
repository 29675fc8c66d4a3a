"""Tries, before a run's first round, whether Keras can write a user's model, and read it back.

What fails here would fail after the last round, in the midst of the results. And Keras passes over weights without a
word which it does not find, such as those of layers in a list of lists.
"""

import contextlib
import json
import logging
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from datasets.own_objects import describe_failure
from models.layer_numbers import number_layers_anew
from models.model_names import KERAS_FILE, ModelError
from models.model_spec import ModelSpec
from models.saved_models import KEEP_IN_ATTRIBUTES, load_weights, write_keras_file

_MOST_LETTERS = 240  # of an error of Keras's, which may list a whole config
_TOLERANCE = 1e-2  # of the largest output; bfloat16 has three digits
_LAYERS = tf.keras.layers
_PLAIN = (
    "give it what Keras can write, such as a function with a name at the top of a module, or an object whose class "
    "has a get_config with all that it is made with"
)
_WHOLE = "give each layer of yours a get_config with all that it is made with"
_WRAPPED = ("Error when deserializing class ", "Exception encountered when calling layer ")
_NAMED = re.compile(r"deserializing class '(\w+)'|calling layer \"[^\"]+\" \(type (\w+)\)|<(?:\w+\.)*(\w+) object at")
_TWICE = re.compile(r"Layer '([^']+)' expected (\d+) variables, but received (\d+) variables during loading")
_VARIABLE = re.compile(r"(?:Layer|assign value to variable) ' ?([^/']+?)(?:_\d+)?[/']")
_LAMBDA = re.compile(r"'__lambda__'|\{'value': \['")


class SavingTrial(NamedTuple):
    """What came of the trial.

    Attributes:
      unwritten: why Keras cannot write the model, and what to do about it; "" if it can.
      unread: why `tf.keras.models.load_model` cannot read what it has written, and what to do; "" if it can.
    """

    unwritten: str = ""
    unread: str = ""


def try_saving(spec: ModelSpec) -> SavingTrial:
    """Writes the model into a temporary folder and reads it back, as `tf.keras.models.load_model` does, too.

    Layers that are made later get the names that they would have got without.
    """
    try:
        temporary = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        with _leave_no_trace(), temporary as folder:
            # Weights near those of a new model, that no other new one has; integers as they are
            rng = np.random.default_rng(0)
            weights = tuple(
                (each + rng.normal(0, 0.01, each.shape)).astype(each.dtype) if each.dtype.kind == "f" else each
                for each in spec.build().get_weights()
            )
            if error := write_keras_file(spec, weights, folder):
                return SavingTrial(_explain_unwritten(spec, error))
            return _try_reading(spec, weights, folder)
    except OSError:  # there is no folder to write into, which says nothing of the model
        return SavingTrial()


def _try_reading(spec: ModelSpec, weights: tuple[np.ndarray, ...], folder: str) -> SavingTrial:
    try:
        found = load_weights(spec, folder)
    except ModelError as error:
        return SavingTrial(_shorten(str(error.__cause__ or error.__context__)))
    for variable, first, second in zip(spec.build().weights, weights, found, strict=True):
        if not np.array_equal(first, second, equal_nan=True):
            return SavingTrial(f"Keras does not keep {variable.name}; {KEEP_IN_ATTRIBUTES}")
    if spec.quantization is not None:  # such a model has none but Keras's own layers
        return SavingTrial()
    return SavingTrial(unread=_try_opening(spec, f"{folder}/{KERAS_FILE}", weights))


@contextlib.contextmanager
def _leave_no_trace() -> Iterator[None]:
    """Keeps Keras's warnings to itself, and leaves the numbers of later layers as if none were built."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), number_layers_anew():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _explain_unwritten(spec: ModelSpec, error: BaseException) -> str:
    with _leave_no_trace():  # so that layers are called as in the user's first model
        model = spec.build()
    layer, found = None, error
    with contextlib.suppress(Exception):  # a model of the user's may say nothing of its layers
        layer, found = _find_faulty(model)
    if layer is None:
        return f"{type(model).__name__}: {_shorten(describe_failure(error))}; write get_config in your layers"
    kind = type(layer)
    where = f"layer {layer.name} ({kind.__name__})"
    if isinstance(found, NotImplementedError) and _is_own(kind):
        return f"{where} has no get_config for what it is made with; write get_config in {kind.__name__}"
    if isinstance(found, NotImplementedError):  # of a regularizer, for example
        lacking = _NAMED.search(str(found))
        part = (lacking and lacking[3]) or "an object"
        return f"{where} is made with {part}, which has no get_config; write get_config in its class"
    fix = f"correct get_config in {kind.__name__}" if _is_own(kind) else _PLAIN
    return f"{where} cannot be described: {_shorten(describe_failure(found))}; {fix}"


def _is_own(kind: type) -> bool:
    return kind.__module__.partition(".")[0] not in ("keras", "tensorflow", "models")


def _find_faulty(model: Any) -> tuple[tf.keras.layers.Layer | None, BaseException | None]:
    """The innermost layer that Keras cannot describe, and the error; (None, None) if it can describe each."""
    inner = getattr(model, "layers", []) if isinstance(model, tf.keras.Model) else [getattr(model, "layer", None)]
    for layer in filter(None, inner):
        try:
            json.dumps(tf.keras.saving.serialize_keras_object(layer))
        except (Exception, SystemExit) as error:
            is_around = isinstance(layer, tf.keras.Model | _LAYERS.Wrapper)
            found = _find_faulty(layer) if is_around else (None, None)
            return found if found[0] is not None else (layer, error)
    return None, None


def _try_opening(spec: ModelSpec, path: str, weights: tuple[np.ndarray, ...]) -> str:
    """Why plain Keras, given the classes and functions of the user's module, cannot open the file; "" if it can."""
    whole, model = spec.build_whole()
    model.set_weights(weights)
    layers = list(whole._flatten_layers())
    module = sys.modules.get(spec.name.partition(":")[0])
    own = {type(layer).__name__: type(layer) for layer in layers if not type(layer).__module__.startswith("keras.")}
    every = {name: value for name, value in vars(module).items() if callable(value)} if module else {}
    # A function of the module may have the name of one of Keras's, such as linear, and hide it from every layer.
    reason = _compare_opened(spec, path, whole, every | own)
    return reason if reason and _compare_opened(spec, path, whole, own) else ""


def _compare_opened(spec: ModelSpec, path: str, whole: tf.keras.Model, own: dict[str, Any]) -> str:
    try:
        opened = tf.keras.models.load_model(path, custom_objects=own, safe_mode=False)
        shape = (3, *spec.model_input_shape)
        x = np.random.default_rng(0).normal(size=shape) if spec.model_input_dtype == "float32" else np.zeros(shape)
        x = tf.constant(x, spec.model_input_dtype)
        expected, found = (np.asarray(each(x, training=False)) for each in (whole, opened))
    except (Exception, SystemExit) as error:
        return _explain_unread(whole, error)
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    if not np.allclose(expected, found, rtol=0, atol=_TOLERANCE * scale, equal_nan=True):
        return "what it reads answers otherwise; some get_config leaves out what its layer is made with"
    return ""


def _explain_unread(model: tf.keras.Model, error: BaseException) -> str:
    """Why Keras cannot read the file: what a layer raised, not the whole of its config, and what to do about it."""
    kinds = {type(layer).__name__: type(layer) for layer in model._flatten_layers()}
    by_name = {re.sub(r"_\d+$", "", layer.name): type(layer) for layer in model._flatten_layers()}
    kind = None
    while True:
        named = [name for found in _NAMED.findall(str(error)) for name in found if name in kinds]
        kind = kinds[named[-1]] if named else kind
        if error.__context__ is None or not str(error).startswith(_WRAPPED):
            break
        error = error.__context__
    variable, counts = _VARIABLE.search(str(error)), _TWICE.match(str(error))
    kind = by_name.get(variable[1], kind) if variable else kind
    reason = "a lambda is not read back" if _LAMBDA.search(str(error)) else _shorten(describe_failure(error))
    fix = _WHOLE
    if kind is not None and not _is_own(kind):
        fix = f"it is in a layer {kind.__name__}: {_PLAIN}"
    elif kind is not None and counts and int(counts[2]) == 2 * int(counts[3]):
        fix = f"end build in {kind.__name__} with super().build(input_shape)"
    elif kind is not None:
        fix = (
            f"give {kind.__name__} a get_config with all that it is made with, as numbers, texts and lists, or a "
            "from_config that makes the rest of them"
        )
    return f"{reason}; {fix}"


def _shorten(text: str) -> str:
    line = (text.strip().splitlines() or [""])[0]
    return line if len(line) <= _MOST_LETTERS else f"{line[:_MOST_LETTERS]}..."
