"""A loss of the user's own, named as "module:function", checked before anything is trained by it.

The function gets (labels, outputs) of a batch and returns the loss of each example, float32, shape (batch,). A loss of
Keras in the module, as an object or a class that needs no arguments, is taken by the example, too. Labels are

  classification  int32 (batch,), classes from 0.
  binary          int32 (batch,), 0 or 1, beside outputs (batch, 1).
  multi_label     uint8 (batch, labels), 0 or 1.
  regression      float32 (batch, numbers), standardised: (label - offset) / scale.
  next_token      int32 (batch, positions), padding included, which the loss has to leave out itself; the mean over
                  examples weighs each by its tokens without padding, whatever the loss is.

and outputs float32 (batch, *output_shape), as the model gives them: logits, or a regression's standardised numbers.
"""

import contextlib
import inspect
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from datasets.own_objects import describe_failure, import_object
from models.model_names import ModelError
from models.own_model_checks import find_refused_operation
from models.task import Task

LossFunction = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]

_REDUCTION = tf.keras.losses.Reduction
_MOST_VALUES = 2_000_000  # of outputs that a loss is tried on
_MOST_ROWS = 200
_LARGEST_TRIED = 10.0
_PADDINGS = (-1, -100)  # as people write it


def load_own_loss(loss: str, task: Task) -> LossFunction:
    """Imports the loss "module:function" and checks it.

    Args:
      loss: "module:function", or "module:NAME" of a Keras loss.
      task: what labels and outputs are.

    Returns:
      (labels, outputs) -> losses, float32, shape (batch,), in any graph.

    Raises:
      ModelError: one line that names the loss: it is missing, fails, gives something else than a loss of each example,
        or no rounds could be made of it.
    """
    label = f"loss={loss}"
    function = _find_function(label, import_object(loss, label, ModelError))

    # A function of TensorFlow's even inside of others, so that `if` on a tensor becomes an operation.
    @tf.autograph.experimental.do_not_convert
    def compute(labels: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
        return tf.function(function)(labels, outputs)

    try:
        _check(label, compute, task)
    except ModelError:
        raise
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        raise ModelError(f"{label}: failed with {describe_failure(error)}") from error
    return compute


def _find_function(label: str, found) -> LossFunction:
    if inspect.isclass(found) and issubclass(found, tf.keras.losses.Loss):
        try:
            found = found()
        except (Exception, SystemExit) as error:
            expected = "expected a loss that can be made without arguments; name an object, such as LOSS = Focal(2)"
            raise ModelError(f"{label}: failed with {describe_failure(error)}; {expected}") from error
    if isinstance(found, tf.keras.losses.Loss):
        if found.reduction == _REDUCTION.SUM:
            raise ModelError(f'{label}: has reduction="sum", expected the loss of each example; give reduction="none"')
        # Its mean over the batch is the one that training takes. Keras's `fit` gives labels a second axis, too.
        loss = found
        return lambda labels, outputs: loss.call(labels[:, tf.newaxis] if labels.shape.rank == 1 else labels, outputs)
    if not callable(found) or inspect.isclass(found):
        kind = found.__name__ if inspect.isclass(found) else type(found).__name__
        raise ModelError(f"{label}: expected a function (labels, outputs) or a Keras loss, got {kind}")
    try:
        inspect.signature(found).bind(None, None)
    except TypeError as error:
        raise ModelError(f"{label}: expected a function of (labels, outputs): {error}") from error
    except ValueError:  # what is written in C need not say what it takes
        pass
    return found


def _check(label: str, compute: LossFunction, task: Task) -> None:
    labels, outputs = _make_batch(task, np.random.default_rng(0))

    @tf.function(autograph=False)
    def measure(labels, outputs):
        with tf.GradientTape() as tape:
            tape.watch(outputs)
            losses = compute(labels, outputs)
            _check_kind(label, losses, task)
        gradient = tape.gradient(losses, outputs)
        if gradient is None:
            problem = "has no gradient by the outputs, as argmax, round and casts to whole numbers have none"
            raise ModelError(f"{label}: {problem}; expected a loss that can be minimised")
        return losses, tf.convert_to_tensor(gradient)

    shapes = tf.TensorSpec((None, *labels.shape[1:]), labels.dtype), tf.TensorSpec((None, *outputs.shape[1:]))
    traced = measure.get_concrete_function(*shapes)
    if found := find_refused_operation(traced.graph.as_graph_def()):
        fix = found.fix or "take tf.random.stateless_uniform with a seed, or leave it out"
        raise ModelError(f"{label}: operation {found.path} {found.problem}; {fix}")
    if traced.captured_inputs:
        problem = "uses a tensor or variable made outside of it, which no client has"
        raise ModelError(f"{label}: {problem}; make it inside of the function, or a NumPy array of it")
    for scale in (1.0, 5.0):
        tried = tf.constant(np.clip(outputs * scale, -_LARGEST_TRIED, _LARGEST_TRIED))
        losses, gradient = (each.numpy() for each in traced(tf.constant(labels), tried))
        _check_values(label, traced, labels, tried, losses)
        what = "its gradient" if np.isfinite(losses).all() else "it"
        if not (np.isfinite(losses).all() and np.isfinite(gradient).all()):
            size = 3 if scale == 1 else _LARGEST_TRIED
            problem = f"{what} is not finite for outputs from {-size:g} to {size:g}"
            raise ModelError(
                f"{label}: {problem}; compute it from logits, as tf.nn.log_softmax does, not by a log or root"
            )
    if task.kind.name == "next_token" and task.padding_label < 0:
        _check_padding(label, traced, labels, tf.constant(outputs))
    _, gradient = traced(tf.constant(labels), _make_wrong_outputs(task, labels, outputs))
    if not np.any(gradient.numpy()):
        problem = "its gradient is 0 where outputs are wrong"
        if task.kind.activation != "identity":
            problem += ", as of a loss of probabilities; outputs are logits: give from_logits=True or a softmax"
        raise ModelError(f"{label}: {problem}")


def _check_kind(label: str, losses, task: Task) -> None:
    if not tf.is_tensor(losses):
        raise ModelError(f"{label}: expected a tensor, the loss of each example, got {type(losses).__name__}")
    if losses.dtype != tf.float32:
        raise ModelError(f"{label}: expected losses of dtype float32, got {losses.dtype.name}; take tf.cast")
    if losses.shape.rank == 0:
        problem = "got one number for all; leave out the mean or sum over the batch (reduction none)"
        raise ModelError(f"{label}: expected the loss of each example, shape (batch,), {problem}")
    if losses.shape.rank not in (None, 1):
        shape = f"(batch, {', '.join(map(str, losses.shape[1:]))})"
        fix = "take tf.reduce_mean over the last axes"
        if task.kind.name == "next_token":
            where = "is not negative" if task.padding_label < 0 else f"is not {task.padding_label}, which is padding"
            fix = f"take in a function the mean over the positions whose label {where}"
        problem = f"got shape {shape}; {fix}"
        raise ModelError(f"{label}: expected the loss of each example, shape (batch,), {problem}")


def _check_values(label: str, traced, labels: np.ndarray, outputs: tf.Tensor, losses: np.ndarray) -> None:
    """Refuses a loss that is not one of each example by itself, such as one of (batch,) less (batch, 1)."""
    if losses.shape != labels.shape[:1]:
        problem = f"got shape {losses.shape} of {len(labels)} examples"
        raise ModelError(f"{label}: expected the loss of each example, shape (batch,), {problem}")
    for count in (1, len(labels) // 2):
        alone = traced(tf.constant(labels[:count]), outputs[:count])[0].numpy()
        if alone.shape != (count,):
            problem = f"got shape {alone.shape} of {count} examples; let it keep the axis of the batch (as by axis=1)"
            raise ModelError(f"{label}: expected the loss of each example, shape (batch,), {problem}")
        if not np.allclose(alone, losses[:count], rtol=1e-3, atol=1e-5, equal_nan=True):
            shapes = [str((0, *each.shape[1:])).replace("0", "batch", 1) for each in (labels, outputs)]
            problem = f"labels {shapes[0]} and outputs {shapes[1]} may have been broadcast"
            raise ModelError(f"{label}: the loss of an example depends on the others of its batch; {problem}")


def _check_padding(label: str, traced, labels: np.ndarray, outputs: tf.Tensor) -> None:
    """Refuses a loss that takes negative labels, which are padding, for tokens; it may leave out the usual ones alone.

    TensorFlow's cross-entropies fail with such labels, or give NaN.
    """
    for padding in _PADDINGS:
        padded = np.where(np.arange(labels.shape[1]) == 0, labels.dtype.type(padding), labels)
        with contextlib.suppress(tf.errors.InvalidArgumentError):
            if all(np.isfinite(each.numpy()).all() for each in traced(tf.constant(padded), outputs)):
                return
    raise ModelError(
        f"{label}: fails where a label is negative, as padding is in these data; leave such positions out, and give "
        f"cross-entropies tf.maximum(labels, 0) for them"
    )


def _make_batch(task: Task, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Labels as a loss gets them and outputs at random, of two rows at least; each class is there, if they are few."""
    positions = int(np.prod(task.label_shape)) if task.kind.name == "next_token" else 1
    count = max(min(max(_MOST_ROWS // positions, 4), _MOST_VALUES // (positions * task.num_outputs)), 2)
    outputs = rng.normal(size=(count, *task.output_shape)).astype(np.float32)
    match task.kind.name:
        case "regression":
            labels = rng.normal(size=(count, task.num_outputs))
        case "multi_label":
            labels = rng.integers(0, 2, (count, task.num_outputs))
        case "next_token":
            labels = (np.arange(count * positions) % task.num_outputs).reshape(count, *task.label_shape)
        case _:
            labels = np.arange(count) % task.num_classes
    return labels.astype(task.label_dtype), outputs


def _make_wrong_outputs(task: Task, labels: np.ndarray, outputs: np.ndarray) -> tf.Tensor:
    """Outputs that are far from the labels: what is right gets -1, what is wrong 2."""
    if task.kind.activation == "identity":
        return tf.constant(outputs)
    if task.kind.name == "binary":
        is_right = labels[:, np.newaxis] == 1
    elif task.kind.name == "multi_label":
        is_right = labels == 1
    else:
        is_right = labels[..., np.newaxis] == np.arange(task.num_outputs)
    return tf.constant(np.where(is_right, -1.0, 2.0).astype(np.float32))
