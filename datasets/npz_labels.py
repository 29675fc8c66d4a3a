"""The labels and the clients of a user's npz file: which task they are for, and what they become.

`--task` says which; without it, their form tells (`guess_task`):
  classification  whole numbers, strings, or one-hot rows; two classes too, unless --task=binary.
  multi_label     rows of 0 and 1 (examples, labels) of which one at least has several ones.
  regression      numbers that are not whole, one an example or a row of them; whole numbers in a float array if they
                  are many and have gaps, as no classes have.
  next_token      whole numbers (examples, positions) beside x of whole numbers of that shape.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from datasets.errors import DatasetError
from datasets.example_format import (
    BINARY,
    CLASS_LABELS,
    CLASSIFICATION,
    LABEL_KINDS,
    MULTI_LABEL,
    NEXT_TOKEN,
    REGRESSION,
    TASK_NAMES,
    ExampleFormat,
    LabelFormat,
)


def read_names(label: str, values: np.ndarray) -> np.ndarray:
    """Labels or clients as int64 or as text, shape (examples,), if what they say is beyond doubt.

    Taken are integers, booleans, floats that are whole numbers, text, bytes in UTF-8, all of these also as a column
    (examples, 1).

    Args:
      label: what an error begins with, for example "data.npz: y".
      values: as stored; no Python objects.

    Raises:
      DatasetError: of another dtype or shape, or a value that is no whole number; it names the row.
    """
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DatasetError(f"{label} has shape {values.shape}, expected one entry for each example, (N,)")
    if values.dtype.kind == "S":
        try:
            return np.char.decode(values, "utf-8")
        except UnicodeDecodeError:
            raise DatasetError(f"{label} holds bytes that are no UTF-8, expected text; decode them first") from None
    if values.dtype.kind == "f":
        # From 2**53 on a float is not told apart from its neighbours.
        is_wrong = ~np.isfinite(values) | (values != np.rint(values)) | (np.abs(values) >= 2.0**53)
        if is_wrong.any():
            row = int(np.argmax(is_wrong))
            raise DatasetError(
                f"{label}[{row}] is {values[row]} ({values.dtype}), expected whole numbers or strings: row {row}, "
                f"counted from 0, is the first of {np.count_nonzero(is_wrong)} such"
            )
    elif values.dtype.kind == "u" and values.size and values.max() > np.iinfo(np.int64).max:
        raise DatasetError(f"{label} holds {values.max()}, expected integers below 2**63, or text")
    elif values.dtype.kind not in "biuU":
        raise DatasetError(f"{label} is {values.dtype}, expected integers or strings; save it with .astype(str)")
    return values if values.dtype.kind == "U" else values.astype(np.int64)


def read_labels(label: str, values: np.ndarray) -> np.ndarray:
    """Labels as `read_names` gives them, or from one-hot rows (examples, classes), which become the class of each.

    Raises:
      DatasetError: see `read_names`; also rows that name no class or several.
    """
    if not is_one_hot_shape(values):
        return read_names(label, values)
    ones = values == 1
    is_wrong = (ones.sum(axis=1) != 1) | ((values != 0).sum(axis=1) != 1)
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise DatasetError(
            f"{label} has shape {values.shape}, expected one label for each example, (N,), or one-hot rows; row {row} "
            f"(counted from 0) is not one-hot"
        )
    return np.argmax(ones, axis=1).astype(np.int64)


def is_one_hot_shape(values: np.ndarray) -> bool:
    """Whether these could be one-hot rows of two classes or more."""
    return values.ndim == 2 and values.shape[1] > 1 and values.dtype.kind in "biuf"


LABELS = ("y", "y_test")
# More whole numbers in a float array, with gaps between them, are measurements.
MOST_FLOAT_CLASSES = 50
_LARGEST_TOKEN = np.iinfo(np.int32).max - 1


class NpzLabels(NamedTuple):
    """The labels of a file.

    Attributes:
      format: what they are; a regression's offset and scale are not known yet.
      class_names: one name a label; () where the task has none.
      y: of x, in the dtype of the format, or int64 of classes.
      y_test: of x_test; None if there is none.
      reading: the task in words, and why, if it is not classification; else "".
    """

    format: LabelFormat
    class_names: tuple[str, ...]
    y: np.ndarray
    y_test: np.ndarray | None
    reading: str


def guess_task(y: np.ndarray, x: np.ndarray | None = None, has_names: bool = False) -> tuple[str, str]:
    """(task, what tells it) from labels as a file has them; what says nothing else is taken as classification.

    Args:
      y: as stored.
      x: the examples as stored; None if they are not at hand.
      has_names: whether the file names its classes.
    """
    y = _drop_column(y)
    if y.dtype.kind not in "biuf" or not y.size or y.ndim > 2:
        return CLASSIFICATION, ""
    if y.ndim == 2 and ((y == 0) | (y == 1)).all():
        has_several = bool(((y == 1).sum(axis=1) > 1).any())
        return (MULTI_LABEL, "rows of y have several ones") if has_several else (CLASSIFICATION, "")
    if y.ndim == 2 and y.dtype.kind in "iu" and x is not None and x.dtype.kind in "iu" and x.shape == y.shape:
        return NEXT_TOKEN, "x and y are whole numbers of one shape"
    if y.dtype.kind == "f" and not has_names:
        finite = y[np.isfinite(y)]
        if (finite != np.rint(finite)).any():
            return REGRESSION, "y has numbers that are not whole"
        found = np.unique(finite)
        if y.ndim == 1 and len(found) > MOST_FLOAT_CLASSES and not np.array_equal(found, np.arange(len(found))):
            return REGRESSION, f"y has {len(found):,} different float numbers with gaps"
    return CLASSIFICATION, ""


def read_task_labels(path: str, arrays: dict[str, np.ndarray], task: str = "") -> NpzLabels:
    """The labels of a file's arrays.

    Args:
      path: the file, for errors.
      arrays: with "x", "y" and, if they are there, "x_test", "y_test" and "class_names".
      task: one of `TASK_NAMES`; "" has it guessed.

    Raises:
      DatasetError: an unknown task, or labels that it does not have.
    """
    if task and task not in TASK_NAMES:
        raise DatasetError(f"task={task}: expected one of {', '.join(TASK_NAMES)}")
    reason = ""
    if not task:
        task, reason = guess_task(arrays["y"], arrays["x"], "class_names" in arrays)
    if task in (CLASSIFICATION, BINARY):
        class_names, y, y_test = _read_classes(path, arrays)
        label_format = CLASS_LABELS if task == CLASSIFICATION else LabelFormat(BINARY)
    else:
        names = read_class_names(path, arrays) or ()
        y, y_test = (convert_labels(f"{path}: {key}", arrays[key], task) if key in arrays else None for key in LABELS)
        if y_test is not None and y_test.shape[1:] != y.shape[1:]:
            raise DatasetError(f"{path}: y has shape {y.shape}, y_test {y_test.shape}; expected the same but for (N,)")
        shape = y.shape[1:]
        class_names = tuple(map(str, range(shape[0]))) if task == MULTI_LABEL and not names else names
        label_format = LabelFormat(task, shape, shape[0] if shape else 1)
        if task == NEXT_TOKEN:
            targets = [y] if y_test is None else [y, y_test]
            tokens = [*targets, *(arrays[key] for key in ("x", "x_test") if key in arrays)]
            num_tokens = int(max(each.max() for each in tokens)) + 1
            is_marked = any(each.min() < 0 for each in targets)
            label_format = LabelFormat(task, shape, max(num_tokens, len(names)), padding=-1 if is_marked else 0)
    title = LABEL_KINDS[task].title
    reading = "" if task == CLASSIFICATION else f"task {title}" + (f", since {reason}" if reason else "")
    if task == NEXT_TOKEN:
        reading += f"; padding is label {label_format.padding}"
    return NpzLabels(label_format, class_names, y, y_test, reading)


def convert_labels(label: str, values: np.ndarray, task: str) -> np.ndarray:
    """Labels of a task that is not by class, in the dtype that it stores.

    Args:
      label: what an error begins with, for example "data.npz: y".
      values: as stored.
      task: multi_label, regression or next_token.

    Raises:
      DatasetError: of another form.
    """
    values = _drop_column(values) if task == REGRESSION else values
    expected = {
        MULTI_LABEL: "0 and 1 in rows (N, labels)",
        REGRESSION: "finite numbers (N,), or rows (N, numbers)",
        NEXT_TOKEN: "whole numbers (N, positions)",
    }[task]
    problem = f"{label} is {values.dtype} of shape {values.shape}, expected {expected} for --task={task}"
    kinds, ranks = {MULTI_LABEL: ("biuf", (2,)), REGRESSION: ("biuf", (1, 2)), NEXT_TOKEN: ("iu", (2,))}[task]
    if values.dtype.kind not in kinds or values.ndim not in ranks or not values.size:
        raise DatasetError(problem)
    # What overflows becomes infinite, and is found.
    with np.errstate(over="ignore"):
        is_right = {
            MULTI_LABEL: lambda: (values == 0) | (values == 1),
            REGRESSION: lambda: np.isfinite(values.astype(np.float32)),
            NEXT_TOKEN: lambda: values <= _LARGEST_TOKEN,
        }[task]()
    rows = is_right.reshape(len(values), -1).all(axis=1)
    if not rows.all():
        row = int(np.argmin(rows))
        found = values[row][~is_right[row]][0] if values.ndim > 1 else values[row]
        raise DatasetError(f"{problem}; row {row} (counted from 0) has {found}")
    return values.astype(LABEL_KINDS[task].dtype)


def standardise(y: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(offset, scale) of a regression: mean and standard deviation of each number over these labels, 1 for 0.

    Args:
      y: the train labels, float32, shape (examples,) or (examples, numbers).
    """
    columns = y.reshape(len(y), -1).astype(np.float64)
    deviation = columns.std(axis=0)
    return tuple(columns.mean(axis=0).tolist()), tuple(np.where(deviation > 0, deviation, 1.0).tolist())


def standardise_labels(example_format: ExampleFormat, y: np.ndarray) -> ExampleFormat:
    """The same with the offset and scale of these train labels, of a regression that has none; others as they are."""
    labels = example_format.labels
    if labels.task != REGRESSION or labels.scale:
        return example_format
    offset, scale = standardise(y)
    return dataclasses.replace(example_format, labels=dataclasses.replace(labels, offset=offset, scale=scale))


def _drop_column(values: np.ndarray) -> np.ndarray:
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _read_classes(path: str, arrays: dict[str, np.ndarray]) -> tuple[tuple[str, ...], np.ndarray, np.ndarray | None]:
    """(class names, labels of x, labels of x_test or None), labels as integers 0..C-1."""
    stored = [arrays[key] for key in LABELS if key in arrays]
    labels = [read_labels(f"{path}: {key}", arrays[key]) for key in LABELS if key in arrays]
    if len({y.dtype.kind for y in labels}) > 1:
        kinds = " and ".join(str(y.dtype) for y in stored)
        raise DatasetError(f"{path}: y and y_test are {kinds}, expected integers in both or strings in both")
    given_names = read_class_names(path, arrays)
    found = np.unique(np.concatenate(labels))
    if labels[0].dtype.kind == "U":
        class_names = given_names or tuple(found.tolist())
        unknown = sorted(set(found.tolist()) - set(class_names))
        if unknown:
            raise DatasetError(f"{path}: label {unknown[0]!r} is not among class_names")
        order = {name: index for index, name in enumerate(class_names)}
        labels = [np.array([order[name] for name in y.tolist()], np.int64) for y in labels]
    elif given_names:
        class_names = given_names
        if found.size and not 0 <= found[0] <= found[-1] < len(given_names):
            raise DatasetError(f"{path}: labels {found[0]}..{found[-1]}, but {len(given_names)} class_names")
    elif is_one_hot_shape(stored[0]):
        class_names = tuple(map(str, range(max(stored[0].shape[1], found[-1] + 1))))
    else:
        class_names = tuple(str(label) for label in found)
        if not np.array_equal(found, np.arange(len(found))):
            new = np.setdiff1d(labels[-1], labels[0])
            what = f"; y_test has {_abbreviate(new)}, which y lacks" if len(new) else ""
            raise DatasetError(
                f"{path}: labels are {_abbreviate(found)}, expected 0..{len(found) - 1} without a gap{what}; renumber "
                f"them, save y.astype(str), name every class in an array class_names, or give --task=regression for "
                f"measurements"
            )
    return class_names, labels[0], labels[1] if len(labels) > 1 else None


def read_class_names(path: str, arrays: dict[str, np.ndarray]) -> tuple[str, ...] | None:
    """The names of the classes, different strings; None if the file has none. Raises DatasetError for others."""
    names = arrays.get("class_names")
    if names is None:
        return None
    names = read_names(f"{path}: class_names", names) if names.dtype.kind == "S" else names
    if names.ndim != 1 or names.dtype.kind != "U" or len(np.unique(names)) != len(names):
        raise DatasetError(f"{path}: class_names is {names.dtype} {names.shape}, expected a list of different strings")
    return tuple(names.tolist())


def _abbreviate(values: np.ndarray) -> str:
    shown = ", ".join(str(value) for value in values[:12])
    return shown + (", ..." if len(values) > 12 else "")
