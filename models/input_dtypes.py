"""What dtype the `Input` of a user's model has, and which stored examples are numbers of it.

Keras casts what a model gets to the dtype of its `Input` without a word: as uint8, pixels that are scaled to [0, 1] are
0. So a model that asks for whole numbers gets the stored ones as they are, and these have to be such numbers. They
still come as float32, in which examples, files and interfaces are; the model casts them itself.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from datasets.example_format import ExampleFormat, Preprocessing, count_features
from models.model_names import ModelError
from models.own_model_checks import find_cut_off, list_input_dtypes

_FLOATS = ("float32", "float64")  # that hold every float32
_HALVES = ("float16", "bfloat16")


def check_input(label: str, model: tf.keras.Model, input_shape: tuple[int, ...]) -> None:
    """Raises ModelError, one line that begins with `label`, for several inputs, or one of no numbers.

    Args:
      label: names the model.
      model: built.
      input_shape: of an example, without the batch axis.
    """
    inputs = _list_inputs(model)
    if len(inputs) > 1:
        found = ", ".join(str(tuple(each.shape[1:])) for each in inputs)
        raise ModelError(
            f"{label}: expected one input, got {len(inputs)} of shapes {found}; start with one "
            f"tf.keras.Input({input_shape}), and take it apart inside"
        )
    for each in inputs:
        if not (each.dtype.is_floating or each.dtype.is_integer or each.dtype.is_bool or each.dtype.is_complex):
            raise ModelError(
                f"{label}: its Input has dtype {each.dtype.name}, expected numbers; start with "
                f"tf.keras.Input({input_shape})"
            )


def settle_input(
    model: tf.keras.Model, example_format: ExampleFormat, input_shape: tuple[int, ...]
) -> tuple[ExampleFormat, str]:
    """How a user's model gets examples, and the dtype of its Input: "" where that holds all that it gets.

    Args:
      model: built, and found good.
      example_format: of the stored examples, and how other models get them.
      input_shape: of an example as the model gets it, without the batch axis.

    Returns:
      The format, without scale and offset if the Input has a dtype of whole numbers; then, or for an Input of 16 bits,
      the dtype's name. Tokens, which are never scaled, have one if it is other than theirs.
    """
    dtype = next((each.dtype for each in _list_inputs(model)), tf.float32)
    if dtype.name in _FLOATS or dtype.is_complex:
        dtype = dtype if example_format.takes_tokens else _find_inner_dtype(model, input_shape) or dtype
    if dtype.name in _FLOATS or dtype.is_complex or (example_format.takes_tokens and dtype in (tf.int32, tf.int64)):
        return example_format, ""
    if example_format.takes_tokens or dtype.name in _HALVES:
        return example_format, dtype.name
    scaled, stored = example_format.preprocessing, None  # the range of stored whole numbers, if that is known
    if scaled.feature_range is not None and scaled.scale:
        ends = ((value - scaled.offset) / scaled.scale for value in scaled.feature_range)
        stored = tuple(sorted(float(round(end)) for end in ends))
    return dataclasses.replace(example_format, preprocessing=Preprocessing(feature_range=stored)), dtype.name


def takes_whole_numbers(dtype: str) -> bool:
    """Whether an Input's dtype, as from `settle_input`, is of whole numbers."""
    return bool(dtype) and dtype not in _HALVES


def describe_input(dtype: str) -> str:
    """What a model gets whose Input has this dtype, in words."""
    if takes_whole_numbers(dtype):
        return (
            f"its Input has dtype {dtype}: it gets the stored numbers as they are, without scale and offset, "
            "so that no advice to scale them is meant for it"
        )
    return f"its Input has dtype {dtype}, which keeps {3 if dtype == 'float16' else 2} digits of each number"


def holds_all(dtype: str, example_format: ExampleFormat, stored: np.dtype) -> bool:
    """Whether every number that can be stored in a dtype is one of the Input's, so that no example need be looked at.

    Args:
      dtype: as from `settle_input`; "" takes everything.
      example_format: as the model gets the examples.
      stored: their dtype.
    """
    if not dtype:
        return True
    preprocessing = example_format.preprocessing
    if (preprocessing.scale, preprocessing.offset) != (1, 0) or stored.kind not in "ui":
        return False
    lowest, highest = _find_bounds(dtype, example_format)
    return lowest <= np.iinfo(stored).min and highest >= np.iinfo(stored).max


def find_misfit(dtype: str, example_format: ExampleFormat, x: np.ndarray) -> str:
    """What of the stored examples is no number of an Input's dtype, in words with what was expected; "" for nothing.

    Args:
      dtype: as from `settle_input`; "" takes everything.
      example_format: as the model gets them.
      x: stored examples, (n, *input_shape).
    """
    if not x.size or holds_all(dtype, example_format, x.dtype):
        return ""
    lowest, highest = _find_bounds(dtype, example_format)
    is_whole = takes_whole_numbers(dtype) or example_format.takes_tokens
    preprocessing = example_format.preprocessing
    # In float32, as the model gets them.
    scaled = np.asarray(x, np.float32) * np.float32(preprocessing.scale) + np.float32(preprocessing.offset)
    values = scaled.astype(np.float64)
    with np.errstate(invalid="ignore"):
        fits = (values >= lowest) & (values <= highest) & (values == np.rint(values) if is_whole else True)
    if fits.all():
        return ""
    found = values[~fits][0]
    kind, spelling = ("whole numbers", ",") if is_whole else ("numbers", ".6g")
    return f"{found:.6g}, expected {kind} from {lowest:{spelling}} to {highest:{spelling}}"


def _list_inputs(model: tf.keras.Model) -> list:
    """The inputs that the model declares; a subclass has none."""
    return tf.nest.flatten(getattr(model, "inputs", None) or [])


def _find_inner_dtype(model: tf.keras.Model, input_shape: tuple[int, ...]) -> tf.DType | None:
    """The dtype of whole numbers that the Input of a model inside this one has, if it alone gets all the inputs."""
    if not any(dtype.is_integer for dtype in list_input_dtypes(model)):
        return None
    found = find_cut_off(model, input_shape)
    if len(found.places) < count_features(input_shape) or tf.as_dtype(found.dtype) not in list_input_dtypes(model):
        return None
    # Of 0.5, such an Input leaves 0; whatever else gets it takes it for 0.5.
    half, zero = (model(tf.fill((1, *input_shape), number), training=False) for number in (0.5, 0.0))
    return tf.as_dtype(found.dtype) if np.array_equal(half, zero) else None


def _find_bounds(dtype: str, example_format: ExampleFormat) -> tuple[float, float]:
    if dtype in _HALVES and example_format.takes_tokens:
        highest = 2048 if dtype == "float16" else 256  # up to which each whole number is one of them
        return -highest, highest
    known = tf.as_dtype(dtype)
    if known.is_bool:
        return 0, 1
    return (int(known.min), int(known.max)) if known.is_integer else (float(known.min), float(known.max))
