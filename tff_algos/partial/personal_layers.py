"""Which weights of a model are personal: a pattern of names becomes a mark for each weight."""

import fnmatch
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from models.model_spec import ModelSpec
from tff_algos.settings.config_fields import ConfigError

ALL_BUT, LAST, BATCH_NORM = "all_but:", "last", "batch_norm"


class NamedWeight(NamedTuple):
    """A weight as a pattern sees it: the name of its layer, and its own, "<layer>/<weight>"."""

    layer: str
    name: str
    is_trained: bool
    is_of_batch_norm: bool


def choose_personal(model_spec: ModelSpec, pattern: str, needs_trained: bool = False) -> tuple[bool, ...]:
    """Whether each weight, in the order of `keras_model.weights`, is personal.

    Args:
      model_spec: the model.
      pattern: parts with commas between: `last` (the last layer with trained weights), `batch_norm` (BatchNorm's
        scales, offsets and statistics), or names of layers or weights, in which * stands for anything; `all_but:`
        first means the others.
      needs_trained: whether one of them must be trained.

    Raises:
      ConfigError: a part of the pattern matches nothing, or no trained weight is left to be shared, or to be personal.
    """
    weights = list_weights(model_spec)
    is_turned = pattern.startswith(ALL_BUT)
    parts = [part.strip() for part in pattern.removeprefix(ALL_BUT).split(",")]
    found = [[_matches(each, part, weights) for each in weights] for part in parts]
    layers = ", ".join(dict.fromkeys(each.layer for each in weights))
    for part, matched in zip(parts, found, strict=True):
        if not any(matched):
            expected = f"{LAST}, {BATCH_NORM} or names of layers, which {part or 'nothing'} is not: {layers}"
            raise ConfigError("personal", pattern, expected)
    personal = tuple(any(marks) != is_turned for marks in zip(*found, strict=True))
    trained = [is_own for is_own, each in zip(personal, weights, strict=True) if each.is_trained]
    if all(trained):
        raise ConfigError("personal", pattern, f"fewer layers, so that some are shared; there are {layers}")
    if not any(trained if needs_trained else personal):
        raise ConfigError("personal", pattern, f"layers that are trained and personal; there are {layers}")
    return personal


def list_weights(model_spec: ModelSpec) -> list[NamedWeight]:
    """The weights of a model by their names, in the order of `keras_model.weights`."""
    with tf.Graph().as_default():  # Keras numbers the layers of a graph from the start
        model = model_spec.build()
        trained = {variable.ref() for variable in model.trainable_variables}
        named = {}
        for layer in _list_layers(model):
            is_of_batch_norm = isinstance(getattr(layer, "layer", layer), tf.keras.layers.BatchNormalization)
            for variable in layer.weights:
                path = variable.name.split(":")[0]
                own = path.rpartition(f"{layer.name}/")[2] if f"{layer.name}/" in path else path.rpartition("/")[2]
                named[variable.ref()] = NamedWeight(
                    layer.name, f"{layer.name}/{own}", variable.ref() in trained, is_of_batch_norm
                )
        left = NamedWeight(model.name, model.name, True, False)  # what a model of a class has beside its layers
        return [named.get(variable.ref(), left) for variable in model.weights]


def _list_layers(model: tf.keras.Model) -> Iterator[tf.keras.layers.Layer]:
    """The layers, those of models inside the model one by one."""
    for layer in model.layers:
        if isinstance(layer, tf.keras.Model):
            yield from _list_layers(layer)
        else:
            yield layer


def _matches(weight: NamedWeight, part: str, weights: Sequence[NamedWeight]) -> bool:
    if part == LAST:
        return weight.layer == [each.layer for each in weights if each.is_trained][-1]
    if part == BATCH_NORM:
        return weight.is_of_batch_norm
    return any(fnmatch.fnmatchcase(name, part) for name in (weight.layer, weight.name))


def join_layers(is_personal: Sequence[bool], shared: Iterable, personal: Iterable) -> tuple:
    """A model's weights, each the next one of its kind."""
    kinds = iter(shared), iter(personal)
    return tuple(next(kinds[is_own]) for is_own in is_personal)


def take_layers(is_taken: Iterable[bool], weights: Iterable) -> tuple:
    """The weights that are marked."""
    return tuple(itertools.compress(weights, is_taken))
