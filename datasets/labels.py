"""The labels and the clients of a user's examples, in the forms that people save them in."""

import numpy as np

from datasets.errors import DatasetError


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
