"""A user's own Keras model, named as "module:function", checked before anything is trained with it."""

import contextlib
import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from datasets.own_objects import describe_failure, import_object
from models.input_dtypes import check_input
from models.model_names import ModelError, check_model_name
from models.own_model_checks import check_own_model
from models.precision import build_in_precision
from models.task import Task, build_task
from models.training_terms import list_own_losses


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
    try:
        inspect.signature(function).bind(input_shape, num_outputs)
    except TypeError as error:
        raise ModelError(f"{label}: expected a function of (input_shape, num_classes): {error}") from error
    except ValueError:  # what is written in C need not say what it takes
        pass
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
        # Whether a layer of the model may have adapted to data: it was made without its numbers or words
        is_checked = not any(
            _find_adapted(layer) for layer in second._flatten_layers(include_self=False)
        )  # what a layer has adapted to is no weight of the model that is trained
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


def _call(label: str, function: Callable, *arguments):
    """`function(*arguments)`; the user's code may raise anything, `sys.exit` included, so that becomes a ModelError."""
    try:
        return function(*arguments)
    except (Exception, SystemExit) as error:
        raise ModelError(f"{label}: failed with {describe_failure(error)}") from error


# A user's model whose function needs values: made once eagerly, and made anew from its layers inside graphs.
#
# A round builds its model inside a graph. There `adapt` and `.numpy()` fail, and what is assigned to anything but a
# weight is lost without a word, as are numbers that each call draws anew. So the function is tried in a graph first. If
# the model from there does not answer as the one made eagerly does, graphs get a copy of the latter: its layers from
# their configs, which hold what the layers adapted to. Weights are no part of that, since every round assigns its own.

_LAYERS = tf.keras.layers
_LOOKUPS, _LAMBDA = (_LAYERS.StringLookup, _LAYERS.IntegerLookup), _LAYERS.Lambda
_ROWS = 3
_SAME = 1e-2  # differences of outputs below this share of the largest one are rounding
_WAY_OUT = "compute such numbers outside of the function, and give them to the layers"

Build = Callable[[], tf.keras.Model]


def list_variables(model: tf.keras.Model) -> list[tf.Variable]:
    """The model's weights, without the vocabularies that Keras counts among them where a layer has adapted to one."""
    return [weight for weight in model.weights if isinstance(weight, tf.Variable)]


def find_build(label: str, build: Build, model: tf.keras.Model, batch: tf.TensorSpec, to_train: bool = True) -> Build:
    """`build`, if a graph gets by it the model that is made eagerly; else what gives that model in graphs, too.

    The latter seeds the global generators, so that a constant that the function draws is the same in every process.

    Args:
      label: names the model in errors.
      build: the user's function without arguments.
      model: what it has returned eagerly; its weights are changed.
      batch: of the model's input, shape (None, *input_shape).
      to_train: False for a run that is finished: what cannot be made in graphs is then left as it is.

    Raises:
      ModelError: a graph cannot have the model.
    """
    try:
        values = _shift_weights(list_variables(model))
        rng, shape = np.random.default_rng(0), (_ROWS, *batch.shape[1:])
        drawn = [np.zeros(shape), rng.integers(0, 2, shape)]
        if batch.dtype.is_floating:
            drawn += [scale * rng.normal(size=shape) for scale in (1, 10)]
        examples, expected = _compute_eagerly(
            model, values, batch, [each.astype(batch.dtype.as_numpy_dtype) for each in drawn]
        )
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        raise ModelError(f"{label}: failed with {describe_failure(error)}") from error
    try:
        found = _compute_in_graph(build, values, batch, examples)
        reason = "" if _agree(found, expected) else "a model that answers otherwise there with the same weights"
    except (Exception, SystemExit) as error:
        reason = describe_failure(error)
    if not reason:
        return build
    reason = f"{label}: a round calls the function in a graph, which gives {reason}"
    try:
        return _find_copying_build(build, model, batch, examples)
    except (Exception, SystemExit) as error:
        if not to_train and len(list_variables(model)) == len(model.weights):
            return build
        why = str(error) if isinstance(error, _CopyError) else f"it fails with {describe_failure(error)}"
        raise ModelError(f"{reason}; a copy of the eager model cannot take its place: {why}; {_WAY_OUT}") from error


class _CopyError(Exception):
    """Why a copy is none."""


def _find_copying_build(
    build: Build, first: tf.keras.Model, batch: tf.TensorSpec, examples: Sequence[np.ndarray]
) -> Build:
    """Checks that copies answer as the model does. Raises whatever a layer raises that cannot be copied."""
    _check_class(first)
    model = _build_seeded(build)
    values = _shift_weights(list_variables(model))

    def compute(each: tf.keras.Model) -> list[list[np.ndarray]]:
        return _compute_eagerly(each, values, batch, examples)[1]

    expected = compute(model)
    if not _agree(compute(first), expected) and not _agree(compute(_build_seeded(build)), expected):
        raise _CopyError("each call of the function makes other numbers that are no weights")
    positions = _keep_adapted(model)
    # The configs are made here, eagerly, since they may ask for values, too.
    copying = functools.partial(_build_copy, build, model, _list_configs(model), positions)
    values = [model.weights[position].numpy() for position in positions]
    if not _agree(_compute_in_graph(copying, values, batch, examples), expected):
        raise _CopyError("a layer's get_config lacks some of its numbers")
    return copying


def _build_seeded(build: Build) -> tf.keras.Model:
    tf.keras.utils.set_random_seed(0)
    return build()


def _build_copy(
    build: Build, model: tf.keras.Model, configs: dict[int, dict[str, Any]], positions: tuple[int, ...]
) -> tf.keras.Model:
    """A copy of the model; outside of graphs with weights that the function has just made, pretrained or drawn.

    Args:
      build: the user's function without arguments.
      model: what is copied.
      configs: of its layers, by their ids.
      positions: of the copy's weights among those of the model.
    """
    weights = build().weights if tf.executing_eagerly() else []
    copied = _copy(model, configs)
    if weights:
        copied.set_weights([weights[position].numpy() for position in positions])
    return copied


def _find_adapted(layer: tf.keras.layers.Layer) -> type | None:
    """The kind of a layer that takes from data what it was not made with."""
    given = {_LAYERS.Normalization: "input_mean", _LAYERS.Discretization: "input_bin_boundaries"}
    given |= dict.fromkeys(_LOOKUPS, "input_vocabulary")
    kinds = [kind for kind, name in given.items() if isinstance(layer, kind) and getattr(layer, name) is None]
    return kinds[0] if kinds and layer.built else None


def _keep_adapted(model: tf.keras.Model) -> tuple[int, ...]:
    """Puts what layers have adapted to into their configs; the positions of the weights that a copy still has."""
    gone = {id(weight) for weight in model.weights if not isinstance(weight, tf.Variable)}
    for layer in model._flatten_layers(include_self=False):
        kind = _find_adapted(layer)
        if kind is _LAYERS.Normalization:
            gone |= {id(weight) for weight in layer.weights}
            numbers = [tf.cast(each, tf.float32).numpy() for each in (layer.mean, layer.variance)]  # of bfloat16, too
            layer.input_mean, layer.input_variance = numbers
        elif kind is _LAYERS.Discretization:
            gone |= {id(weight) for weight in layer.weights}
            layer.input_bin_boundaries, layer.num_bins = list(layer.bin_boundaries), None
        elif kind is not None:
            layer.input_vocabulary = layer.get_vocabulary(include_special_tokens=False)
            layer._has_input_vocabulary = True
        if isinstance(layer, _LOOKUPS) and layer.output_mode != "int" and not layer.pad_to_max_tokens:
            # In a graph, Keras cannot count the tokens.
            layer.max_tokens, layer.pad_to_max_tokens = layer.vocabulary_size(), True
    return tuple(position for position, weight in enumerate(model.weights) if id(weight) not in gone)


def _list_configs(model: tf.keras.Model) -> dict[int, dict[str, Any]]:
    """Of its layers, also of nested models, by their ids."""
    layers = list(model._flatten_layers(recursive=False, include_self=False))
    inner = [_list_configs(layer) for layer in layers if isinstance(layer, tf.keras.Model)]
    configs = {id(layer): layer.get_config() for layer in layers if not isinstance(layer, tf.keras.Model | _LAMBDA)}
    return {**configs, **{key: config for each in inner for key, config in each.items()}}


def _copy(model: tf.keras.Model, configs: dict[int, dict[str, Any]]) -> tf.keras.Model:
    """The model with new layers and new weights, in any graph."""
    _check_class(model)
    copied_model = tf.keras.models.clone_model(model, clone_function=functools.partial(_copy_layer, configs))
    parts = [list(each._flatten_layers()) for each in (model, copied_model)]
    for part, copied in zip(*parts, strict=True):
        copied._trainable = part._trainable  # which a class of the user's may leave out of its config
    return copied_model


def _check_class(model: tf.keras.Model) -> None:
    if not isinstance(model, tf.keras.Sequential) and not model._is_graph_network:
        raise _CopyError(f"{type(model).__name__} is a class of its own")


def _copy_layer(configs: dict[int, dict[str, Any]], layer: tf.keras.layers.Layer) -> tf.keras.layers.Layer:
    if isinstance(layer, tf.keras.Model):
        return _copy(layer, configs)
    if not isinstance(layer, _LAMBDA):
        return type(layer).from_config(copy.deepcopy(configs[id(layer)]))
    # From its config, the function would not find the names of its module.
    options = {"name": layer.name, "dtype": layer._dtype_policy, "arguments": layer.arguments}
    return _LAMBDA(layer.function, layer._output_shape, layer.mask, **options)


def _shift_weights(variables: Sequence[tf.Variable]) -> list[np.ndarray]:
    """Near the weights as they are, and not zero: a last layer of zeros would hide every difference."""
    rng = np.random.default_rng(0)
    for variable in variables:
        if variable.trainable:
            variable.assign(variable + rng.normal(0, 0.05, variable.shape).astype(variable.dtype.as_numpy_dtype))
    return [variable.numpy() for variable in variables]


def _compute_eagerly(
    model: tf.keras.Model, values: Sequence[np.ndarray], batch: tf.TensorSpec, examples: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], list[list[np.ndarray]]]:
    """The examples that the model takes, and its outputs and losses for each, with these weights."""
    compute = tf.function(lambda x: _list_results(model, x), input_signature=[batch])
    taken, results = [], []
    for x in examples:
        for variable, value in zip(list_variables(model), values, strict=True):  # a call may change one
            variable.assign(value)
        with contextlib.suppress(tf.errors.InvalidArgumentError):  # an Embedding has no such row
            results.append([each.numpy() for each in compute(tf.constant(x))])
            taken.append(x)
    return taken, results


def _compute_in_graph(
    build: Build, values: Sequence[np.ndarray], batch: tf.TensorSpec, examples: Sequence[np.ndarray]
) -> list[list[np.ndarray]]:
    """The outputs and losses of the model that `build` makes in a graph, as a round has it."""
    with tf.Graph().as_default() as graph:
        model = build()
        variables = list_variables(model)
        fed = [tf.compat.v1.placeholder(value.dtype, value.shape) for value in values]
        x = tf.compat.v1.placeholder(batch.dtype, batch.shape)

        @tf.function
        def compute(x, *weights):
            for variable, weight in zip(variables, weights, strict=True):
                variable.assign(weight)
            return _list_results(model, x)

        results = compute(x, *fed)
        start = [tf.compat.v1.global_variables_initializer(), tf.compat.v1.tables_initializer()]
    # Gives the classes of a graph's layers back to eager code: in a graph, Keras puts other classes below them. It does
    # so wherever an object is made, so that layers which were made before would no longer work
    for kind in {type(layer) for layer in model._flatten_layers()}:
        kind.__new__(kind)
    with tf.compat.v1.Session(graph=graph) as session:
        session.run(start)
        weights = dict(zip(fed, values, strict=True))
        return [session.run(results, {x: example, **weights}) for example in examples]


def _list_results(model: tf.keras.Model, x: tf.Tensor) -> list[tf.Tensor]:
    outputs = model(x, training=False)
    return [*tf.nest.flatten(outputs), *list_own_losses(model)]


def _agree(found: Sequence[Sequence[np.ndarray]], expected: Sequence[Sequence[np.ndarray]]) -> bool:
    """Whether outputs and losses are the same but for rounding."""
    pairs = [pair for each in zip(found, expected, strict=True) for pair in zip(*each, strict=True)]
    for one, other in pairs:
        finite = np.abs(other[np.isfinite(other)])
        largest = float(finite.max()) if finite.size else 0.0
        if one.shape != other.shape or not np.allclose(one, other, rtol=0, atol=_SAME * largest, equal_nan=True):
            return False
    return True
