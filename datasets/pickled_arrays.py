"""The arrays of a pickled dictionary, as PFLlib writes them; see `files.unpickling` for what is read of a pickle."""

from typing import Any

import numpy as np

from datasets.errors import DatasetError
from files.unpickling import read_pickled_dictionary


def read_pickled_arrays(content: bytes, where: str) -> dict[str, np.ndarray]:
    """The arrays of a pickled dictionary {name: array}, or of an array without axes that holds one.

    Args:
      content: the pickle, as NumPy writes an array of objects.
      where: what an error begins with.

    Raises:
      DatasetError: it holds anything but such a dictionary, or is damaged.
    """
    try:
        return {key: _to_array(key, value) for key, value in read_pickled_dictionary(content).items()}
    except Exception as error:  # a damaged pickle can raise anything
        raise DatasetError(
            f"{where}: holds Python objects that are not read ({error}), expected a dictionary of arrays x and y; save "
            f"them with numpy.savez(file, x=x, y=y)"
        ) from None


def _to_array(key: Any, value: Any) -> np.ndarray:
    if not isinstance(key, str):
        raise ValueError("it is no dictionary of arrays by name")
    if isinstance(value, np.ndarray):
        return value
    array = np.array(value) if isinstance(value, list | int | float | str | bool) else None
    if array is None or array.dtype.kind not in "biufU":
        raise ValueError(f"{key} is no array of numbers or text")
    return array
