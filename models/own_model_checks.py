"""Checks of a user's model, by what it computes: can it be trained and repeated, and are its outputs the task's?

Names of layers tell little: noise and a softmax can stand in a Lambda, in a nested model or in a subclass. So graphs
are searched for random operations, and outputs for probabilities.
"""

import contextlib
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from datasets.example_format import count_features
from datasets.own_objects import describe_failure
from models.model_names import ModelError
from models.own_training import check_training_hooks
from models.stateless_dropout import dropout_seed
from models.task import Task
from models.training_terms import list_own_losses

# Operations of TensorFlow that draw from a generator beside the graph. Those called Stateless... get their seed as an
# input, as `StatelessDropout` does from the training loop.
_RANDOM = re.compile(
    r"Random(?!IndexShuffle|GammaGrad)\w*|Multinomial|(Parameterized)?TruncatedNormal|Rng\w+|\w+CandidateSampler"
    r"|Stateful(Uniform|StandardNormal|TruncatedNormal|RandomBinomial)\w*|SampleDistortedBoundingBox\w*"
)
_PYTHON = re.compile(r"(Eager)?PyFunc(Stateless)?")
_ROWS = 3
_MOST_PROBED = 200  # features at a time
_PROBABILITY_SUM_TOLERANCE = 1e-2  # bfloat16 has three digits
_ADVICE = "take models.stateless_dropout.StatelessDropout, --augment=crop_flip for images, or leave it out"


class RefusedOperation(NamedTuple):
    """An operation that no round can have: scopes and name, what it does, what to do instead ("": leave it out)."""

    path: str
    problem: str
    fix: str


def check_own_model(
    label: str,
    model: tf.keras.Model,
    input_shape: tuple[int, ...],
    task: Task,
    to_train: bool = True,
    input_dtype: str = "float32",
) -> None:
    """Raises ModelError, one line that begins with `label`, if the algorithms cannot use the model.

    Args:
      label: names the model.
      model: its weights are changed, so hand over one that is not needed any more.
      input_shape: of an example, without the batch axis.
      task: says what it has to put out.
      to_train: False for a run that is finished, which earlier versions may have trained with a model that is refused
        today; then only weights and the shape of the output are checked.
      input_dtype: "float32", or "int32" for tokens.
    """
    # The algorithms cannot train and average other weights.
    others = sorted({weight.dtype.name for weight in model.weights if weight.dtype.is_floating} - {"float32"})
    if others:
        raise ModelError(f"{label}: expected float32 weights, got {', '.join(others)}")
    if not model.trainable_weights:
        raise ModelError(f"{label}: expected a model with weights to train, it has none")
    batch = tf.TensorSpec((None, *input_shape), input_dtype)

    # AutoGraph is on: a user's layer may branch on a tensor.
    @tf.function
    def infer(x):
        return model(x, training=False)

    @tf.function
    def train(x):
        with dropout_seed(np.zeros(2, np.int32)):
            logits = model(x, training=True)
        return logits, list_own_losses(model)

    try:
        inferred = infer.get_concrete_function(batch)
        _check_outputs(label, inferred, task)
        if not to_train:
            return
        check_training_hooks(label, model)
        trained = train.get_concrete_function(batch)
        shapes = [tuple(loss.shape) for loss in trained.structured_outputs[1] if loss.shape.rank != 0]
        if shapes:
            raise ModelError(
                f"{label}: expected numbers from add_loss, got shape {shapes[0]}; take tf.reduce_mean of it"
            )
        for function in (trained, inferred):
            # Refuses randomness that no seed repeats, and calls of Python, which a round's graphs do without
            if found := find_refused_operation(function.graph.as_graph_def()):
                raise ModelError(f"{label}: {_name_layer(model, found.path)} {found.problem}; {found.fix or _ADVICE}")
        # Two calls with the same weights, examples and seed must agree, but for rounding
        weights, calls = model.get_weights(), []
        for _ in range(2):
            model.set_weights(weights)
            calls.append(np.concatenate([trained(examples)[0] for examples in _list_examples(trained, input_shape)]))
        model.set_weights(weights)
        if not np.allclose(*calls, rtol=1e-3, atol=1e-5, equal_nan=True):
            problem = "two calls with the same weights, examples and seed differ"
            raise ModelError(f"{label}: {problem}; keep no state but weights between calls")
        _check_logits(label, model, inferred, input_shape, task)
    except ModelError:
        raise
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        raise ModelError(f"{label}: failed with {describe_failure(error)}") from error


def find_slow_batch_norm(model: tf.keras.Model, most: float = 0.95) -> tf.keras.layers.Layer | None:
    """A BatchNorm layer whose moving statistics forget so slowly that a round's few steps hardly change them, or None.

    Args:
      model: built.
      most: the largest momentum that is not slow.
    """
    kind = tf.keras.layers.BatchNormalization
    layers = (layer for layer in _list_layers(model) if isinstance(layer, kind) and layer.trainable)
    return next((layer for layer in layers if layer.momentum > most), None)


def list_mask_values(model: tf.keras.Model) -> tuple[float, ...]:
    """The different values that Masking layers look for, also those of nested models, in ascending order."""
    layers = (layer for layer in _list_layers(model) if isinstance(layer, tf.keras.layers.Masking))
    return tuple(sorted({float(value) for layer in layers for value in np.ravel(layer.mask_value)}))


def find_looked_up(model: tf.keras.Model, input_shape: tuple[int, ...]) -> tuple[int, ...]:
    """The features or channels that a model of float32 inputs makes whole numbers of, as an Embedding does.

    Each is set to 1 beside examples of 0, which shows whose whole numbers change.

    Args:
      model: as `check_own_model` has found it good.
      input_shape: of an example, without the batch axis.

    Raises:
      tf.errors.InvalidArgumentError: an Embedding has no row 1.
    """

    function = _trace_whole_numbers(model, input_shape)
    if not function.outputs:
        return ()
    number, found = count_features(input_shape), []
    for start in range(0, number, _MOST_PROBED):
        features = np.arange(start, min(start + _MOST_PROBED, number))
        x = np.zeros((1 + len(features), *input_shape), np.float32)
        x.reshape(len(x), -1, number)[1 + np.arange(len(features)), :, features] = 1
        for _, numbers in function(tf.constant(x)):
            rows = numbers.numpy().reshape(len(x), -1)
            found += features[(rows[1:] != rows[0]).any(axis=1)].tolist()
    return tuple(sorted(set(found)))


class CutOff(NamedTuple):
    """The features or channels that a model makes whole numbers of as it gets them, and of which dtype these are."""

    places: tuple[int, ...] = ()
    dtype: str = ""


def find_cut_off(model: tf.keras.Model, input_shape: tuple[int, ...]) -> CutOff:
    """What a model of float32 inputs casts to whole numbers without any arithmetic before, so that fractions are lost.

    Args:
      model: as `check_own_model` has found it good.
      input_shape: of an example, without the batch axis.
    """
    function = _trace_whole_numbers(model, input_shape)
    if not function.outputs:
        return CutOff()
    size, number = int(np.prod(input_shape)), count_features(input_shape)
    x = ((1 + np.arange(size)) / (1 + size)).astype(np.float32)  # all different, so that each is known again
    try:
        pairs = function(tf.constant(x.reshape(1, *input_shape)))
    except tf.errors.InvalidArgumentError:  # it looks up something else, too
        return CutOff()
    found = [(set((np.flatnonzero(np.isin(x, floats.numpy())) % number).tolist()), each) for floats, each in pairs]
    features = sorted(set().union(*(features for features, _ in found)))
    return CutOff(tuple(features), next((each.dtype.name for features, each in found if features), ""))


def list_input_dtypes(model: tf.keras.Model) -> set[tf.DType]:
    """The dtypes that Inputs have, also those of nested models."""
    layers = (layer for layer in _list_layers(model) if isinstance(layer, tf.keras.layers.InputLayer))
    return {tf.as_dtype(layer.dtype) for layer in layers}


def _trace_whole_numbers(model: tf.keras.Model, input_shape: tuple[int, ...]) -> tf.types.experimental.ConcreteFunction:
    """A function of examples, float32 -> (floats, the whole numbers that the model makes of them), for each cast."""

    @tf.function
    def list_whole_numbers(x):
        model(x, training=False)
        casts = [each for each in tf.compat.v1.get_default_graph().get_operations() if each.type == "Cast"]
        pairs = [(each.inputs[0], each.outputs[0]) for each in casts if each.inputs[0].dtype.is_floating]
        return [(a, b) for a, b in pairs if b.dtype.is_integer and b.shape.rank and b.shape[0] is None]

    return list_whole_numbers.get_concrete_function(tf.TensorSpec((None, *input_shape), tf.float32))


def _list_layers(model: tf.keras.Model) -> list[tf.keras.layers.Layer]:
    """All layers inside the model, nested ones too."""
    # The public `submodules` fails for a recurrent layer with dropout; `layers` has no nested ones. The version is
    # locked.
    return list(model._flatten_layers(include_self=False))


def _check_outputs(label: str, inferred: tf.types.experimental.ConcreteFunction, task: Task) -> None:
    """Refuses all but one tensor of outputs."""
    outputs, noun = inferred.structured_outputs, ("outputs" if task.kind.activation == "identity" else "logits")
    expected = f"expected {noun} of shape (batch, {', '.join(map(str, task.output_shape))})"
    tensors = tf.nest.flatten(outputs)
    if not all(hasattr(tensor, "shape") and hasattr(tensor, "dtype") for tensor in tensors):
        raise ModelError(f"{label}: {expected}, got {type(outputs).__name__}")
    shapes = ", ".join(str(tensor.shape) for tensor in tensors)
    if len(tensors) != 1 or tensors[0].shape.rank is None or tuple(tensors[0].shape[1:]) != task.output_shape:
        raise ModelError(f"{label}: {expected}, got {shapes}")
    if tf.nest.is_nested(outputs):
        kind = type(outputs).__name__
        raise ModelError(f"{label}: {expected}, got them in a {kind}; let the model return the tensor itself")
    if outputs.dtype != tf.float32:
        found = outputs.dtype.name
        raise ModelError(f'{label}: expected {noun} of dtype float32, got {found}; give the last layer dtype="float32"')


def find_refused_operation(graph_def: tf.compat.v1.GraphDef) -> RefusedOperation | None:
    """The first operation of a graph that draws random numbers without a seed or calls Python, if there is one."""
    for kind, path in _walk_operations(graph_def):
        if _RANDOM.fullmatch(kind):
            return RefusedOperation(path, "draws random numbers that cannot be repeated", "")
        if _PYTHON.fullmatch(kind):
            problem = "calls Python (tf.py_function), which the computation of a round cannot"
            return RefusedOperation(path, problem, "write it with TensorFlow's operations")
    return None


def _walk_operations(graph_def: tf.compat.v1.GraphDef) -> Iterator[tuple[str, str]]:
    """(type, scopes and name) of each operation, of the functions, loops and branches that are called, too."""
    functions = {function.signature.name: function for function in graph_def.library.function}
    visited = set()

    def walk(nodes, scope: str):
        for node in nodes:
            path = f"{scope}{node.name}"
            yield node.op, path
            attributes = node.attr.values()
            called = [name for value in attributes for name in (value.func.name, *(f.name for f in value.list.func))]
            for name in {*called, node.op} & functions.keys() - visited:
                visited.add(name)
                yield from walk(functions[name].node_def, f"{path}/")

    return walk(graph_def.node, "")


def _name_layer(model: tf.keras.Model, path: str) -> str:
    """The outermost layer, not a model, in whose scope an operation lies; the operation itself if there is none."""
    layers = {layer.name: layer for layer in _list_layers(model)}
    for scope in path.split("/"):
        layer = layers.get(scope)
        if layer is not None and not isinstance(layer, tf.keras.Model):
            return f"layer {layer.name} ({type(layer).__name__})"
    return f"operation {path}"


def _list_examples(function, input_shape: tuple[int, ...]) -> list[tf.Tensor]:
    """Batches that the function takes: zeros, which may be pixels or tokens, and others unless it has no such token."""
    rng = np.random.default_rng(0)
    shape, dtype = (_ROWS, *input_shape), function.inputs[0].dtype
    taken = [tf.zeros(shape, dtype)]
    function(taken[0])  # a model that fails on zeros would fail on the clients
    for scale in (1, 100):
        numbers = rng.integers(0, scale + 1, shape) if dtype == tf.int32 else scale * rng.normal(size=shape)
        examples = tf.constant(numbers, dtype)
        with contextlib.suppress(tf.errors.InvalidArgumentError):  # there is no such token
            function(examples)
            taken.append(examples)
    return taken


def _check_logits(label: str, model: tf.keras.Model, inferred, input_shape: tuple[int, ...], task: Task) -> None:
    """Refuses probabilities: losses take logits, and such a model would train, but badly, and nobody would know why."""
    if task.kind.activation == "identity":
        return
    # Finite outputs, float32 (rows, num_outputs), for small and large examples and for weights drawn at random. Logits
    # may happen to lie in [0, 1] for the first weights, which can even be zeros; they do not for any weights
    rng, rows, batches = np.random.default_rng(0), [], _list_examples(inferred, input_shape)
    for scale in (0.3, 3.0):
        for weight in model.trainable_weights:
            weight.assign(rng.normal(0, scale, weight.shape))
        outputs = [inferred(examples).numpy() for examples in batches]
        rows += [each.reshape(-1, each.shape[-1]) for each in outputs]
    rows = np.concatenate(rows)
    rows = rows[np.isfinite(rows).all(axis=1)]
    if not len(rows) or np.ptp(rows) == 0 or rows.min() < 0 or rows.max() > 1 + _PROBABILITY_SUM_TOLERANCE:
        return
    if rows.shape[1] > 1 and np.abs(rows.sum(axis=1) - 1).max() < _PROBABILITY_SUM_TOLERANCE:
        found = "got probabilities (each row is in [0, 1] and sums to 1); leave the softmax out"
    else:
        found = "got values in [0, 1] whatever weights and examples are; leave the sigmoid out"
    raise ModelError(f"{label}: expected logits, {found}")
