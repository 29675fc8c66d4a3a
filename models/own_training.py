"""How a user's own model would train itself in Keras, which no client does: hooks of `fit`, and what `compile` got.

Clients minimise the run's loss by the run's optimizer. So a model that brings steps of its own is refused, and what it
was compiled with is said.
"""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from models.model_names import ModelError
from models.task import Task

_TRAINING_HOOKS = ("train_step", "compute_loss", "make_train_function", "fit", "train_on_batch")
_TEST_HOOKS = ("test_step", "make_test_function", "compute_metrics", "evaluate")
_USUAL = {"axis": -1, "ignore_class": None, "label_smoothing": 0}  # of Keras's losses, where the task's own has no say
_LOSSES = {  # by the task's kind and its loss: Keras's names of the same
    ("classification", "cross_entropy"): "sparse_categorical_crossentropy",
    ("binary", "cross_entropy"): "binary_crossentropy",
    ("multi_label", "cross_entropy"): "binary_crossentropy",
    ("next_token", "cross_entropy"): "sparse_categorical_crossentropy",
    ("regression", "squared"): "mean_squared_error",
    ("regression", "absolute"): "mean_absolute_error",
    ("regression", "huber"): "huber",
}


def check_training_hooks(label: str, model: tf.keras.Model) -> None:
    """Raises ModelError, which begins with `label`, if the model has a training step or a loss of its own to fit by.

    Models inside it do not count: Keras would not call theirs either.
    """
    found = next((name for name in _TRAINING_HOOKS if _is_own_hook(model, name)), None)
    if found:
        raise ModelError(
            f"{label}: {type(model).__name__} has a {found} of its own, which clients do not call; leave it out, and "
            "give its loss as --loss=module:function, or its terms by add_loss"
        )


def list_unused_parts(model: tf.keras.Model, task: Task) -> tuple[str, ...]:
    """Lines on what a model brings for Keras's `fit` that no client uses: what it was compiled with, and hooks.

    Nothing is said of a loss that is the task's anyway.
    """
    layers = [model, *model._flatten_layers(include_self=False)]  # the version is locked
    models = [layer for layer in layers if isinstance(layer, tf.keras.Model)]
    hooks = [[name for name in (*_TRAINING_HOOKS, *_TEST_HOOKS) if _is_own_hook(each, name)] for each in models]
    return (
        *_describe_compilation(model, task),
        *(
            f"{type(each).__name__} has {_join(names)} of its own, which the run does not call"
            for each, names in zip(models, hooks, strict=True)
            if names
        ),
    )


def _describe_compilation(model: tf.keras.Model, task: Task) -> Iterator[str]:
    if not getattr(model, "_is_compiled", False):  # the version is locked; `loss` may be anything of a subclass
        return
    parts, fixes = [], []
    has_own = task.own_loss is not None  # what the line would ask for
    if (loss := getattr(model, "loss", None)) and not has_own and not _is_loss_of(task, loss):
        parts.append(f"loss ({_name(loss)})")
        fixes.append(_choose_loss_flag(task, loss))
    if (optimizer := getattr(model, "optimizer", None)) is not None:
        parts.append(f"optimizer ({_name(optimizer)})")
        fixes.append("--optimizer and --learning_rate")
    if getattr(model.compiled_loss, "_user_loss_weights", None) is not None and not has_own:
        parts.append("loss weights")
        fixes.append("them in the function of --loss")
    given = model.compiled_metrics
    if getattr(given, "_user_metrics", None) or getattr(given, "_user_weighted_metrics", None):
        parts.append("metrics")
    if parts:
        verb = "are" if len(parts) > 1 or parts == ["metrics"] else "is"
        yield f"the model was compiled, but its {_join(parts)} {verb} not used: give {_join(fixes)}"


def _choose_loss_flag(task: Task, loss: Any) -> str:
    """What to give so that clients minimise what a model was compiled with."""
    for name in task.kind.losses:
        options = {"huber_delta": getattr(loss, "_fn_kwargs", {}).get("delta", 1.0)} if name == "huber" else {}
        if _is_loss_of(dataclasses.replace(task, loss=name, **options), loss):
            return f"--loss={name}" + "".join(f" --{option}={value:g}" for option, value in options.items())
    is_weighable = task.kind.is_labelled_by_class and not task.class_weights
    return "--loss=module:function" + (" or --class_weights" if is_weighable else "")


def _join(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _is_own_hook(model: tf.keras.Model, name: str) -> bool:
    """Whether its class, or the model itself, has another method of this name than Keras's models have."""
    method = getattr(model, name, None)
    keras = [getattr(kind, name, None) for kind in (tf.keras.Model, tf.keras.Sequential)]
    return getattr(method, "__func__", method) not in keras


def _name(value: Any) -> str:
    """A loss or an optimizer as a person knows it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(map(_name, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_name(each)}" for name, each in value.items())
    return getattr(value, "__name__", type(value).__name__)


def _is_loss_of(task: Task, loss: Any) -> bool:
    """Whether a loss that a model was compiled with is the one that the task has anyway, of logits."""
    while isinstance(loss, list | tuple | dict) and len(loss) == 1:
        loss = next(iter(loss.values() if isinstance(loss, dict) else loss))
    if isinstance(loss, str):
        with contextlib.suppress(ValueError):  # there is no such loss
            loss = tf.keras.losses.get(loss)
    is_keras = (getattr(loss, "__module__", None) or "").startswith("keras.")
    options, name = {"delta": 1.0}, getattr(loss, "__name__", "")
    if isinstance(loss, tf.keras.losses.Loss) and is_keras:
        options = loss.get_config()
        name = options.get("fn", "")
    usual = {**_USUAL, "delta": task.huber_delta if task.loss == "huber" else 1.0}
    are_usual = all(options.get(option, value) == value for option, value in usual.items())
    is_sum = options.get("reduction") == tf.keras.losses.Reduction.SUM
    same = _LOSSES[task.kind.name, task.loss]
    names = (same, same.removeprefix("sparse_"))  # of one-hot labels
    return is_keras and are_usual and not is_sum and name in names
