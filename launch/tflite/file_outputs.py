"""What a file puts out, compared with the labels and with Keras's model, by the task."""

import numpy as np
import tensorflow as tf

from launch.runs.task_columns import TaskColumns
from models.task import Task

GROUP_SIZE = 1000  # examples that are summed at a time


def compute_metric(task: Task, labels: np.ndarray, outputs: np.ndarray) -> float:
    """The task's main metric: of classification the share of the examples whose largest logit is that of the label.

    Args:
      task: of the model.
      labels: as stored, (examples, *label_shape).
      outputs: float32, (examples, *output_shape).
    """
    sums = np.zeros(task.kind.num_sums(task.num_outputs))
    for start in range(0, len(labels), GROUP_SIZE):
        rows = slice(start, start + GROUP_SIZE)
        own = labels[rows].astype(task.label_dtype)
        sums += task.compute_sums(tf.constant(own), tf.constant(outputs[rows], tf.float32)).numpy()
    return task.kind.finish(sums)[task.kind.main_metric.name]


def classify(outputs: np.ndarray) -> np.ndarray:
    """The class that is chosen, int32 (examples,): the largest of several logits, or whether the only one is above 0.

    Args:
      outputs: float32, (examples, classes), or (examples, 1) of two classes.
    """
    if outputs.shape[1] == 1:
        return (outputs[:, 0] > 0).astype(np.int32)
    return outputs.argmax(axis=1).astype(np.int32)


def predict(task: Task, outputs: np.ndarray) -> np.ndarray:
    """What a user of the file reads from its outputs.

    Classes, int32 (examples,), where the labels are classes; the tokens that follow, int32 (examples, positions), of
    next_token; the outputs of a regression in the unit of the labels; other outputs as they are.
    """
    if task.kind.name == "next_token":
        return outputs.argmax(axis=-1).astype(np.int32)
    return classify(outputs) if task.kind.is_labelled_by_class else np.asarray(task.restore(outputs), np.float32)


def compute_agreement(task: Task, outputs: np.ndarray, reference: np.ndarray) -> float | None:
    """Share of the examples for which both choose the same class; None where the labels are no classes.

    Outputs with a NaN choose none.
    """
    if not task.kind.is_labelled_by_class:
        return None
    are_numbers = ~(np.isnan(outputs) | np.isnan(reference)).any(axis=1)
    return float(np.mean((classify(outputs) == classify(reference)) & are_numbers))


def compute_alike(task: Task, labels: np.ndarray, outputs: np.ndarray, reference: np.ndarray) -> float | None:
    """Share of the answers that are the reference's too: None of numbers, and where there is nothing to compare.

    Answers are classes; tokens, without padding; of labels that an example can have, those that either gives, since
    nearly all of many labels are given by neither. Outputs with a NaN answer nothing; where the reference's have one,
    no file can be blamed.

    Args:
      task: of the model.
      labels: as stored, (examples, *label_shape).
      outputs: float32, (examples, *output_shape).
      reference: likewise.
    """
    if task.kind.is_labelled_by_class:
        known = ~np.isnan(reference).any(axis=1)
        return compute_agreement(task, outputs[known], reference[known]) if known.any() else None
    are_numbers = ~(np.isnan(outputs) | np.isnan(reference))
    if task.kind.name == "next_token":
        same = (outputs.argmax(axis=-1) == reference.argmax(axis=-1)) & are_numbers.all(axis=-1)
        counted = (labels >= 0) & (labels != task.padding_label) & ~np.isnan(reference).any(axis=-1)
    elif task.kind.name == "multi_label":
        same = ((outputs > 0) == (reference > 0)) & are_numbers
        counted = ((outputs > 0) | (reference > 0) | ~are_numbers) & ~np.isnan(reference)
    else:
        return None
    return float(same[counted].mean()) if counted.any() else None


def warn_of_no_numbers(reference: np.ndarray) -> str:
    """What to say of a Keras model that has no answer for some examples of the test set; "" if it has for all."""
    unknown = int(np.isnan(reference.reshape(len(reference), -1)).any(axis=1).sum()) if len(reference) else 0
    if not unknown:
        return ""
    return (
        f"has no answer but NaN for {unknown:,} of {len(reference):,} test examples, in Keras as in its "
        "files; look for a logarithm, a root or a division in the model"
    )


def compute_lost(task: Task, reached: float, reference: float) -> float:
    """How much worse a file is than Keras's model: the difference of two shares, or else relative to Keras's value."""
    worse = TaskColumns(task.kind).sign * (reference - reached)
    return worse if task.kind.main_metric.unit == "%" or not reference else worse / abs(reference)
