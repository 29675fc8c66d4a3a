"""The arrays of a pickled dictionary, as PFLlib writes them; see `files.unpickling` for what is read of a pickle."""

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
        arrays = {}
        for key, value in read_pickled_dictionary(content).items():
            if not isinstance(key, str):
                raise ValueError("it is no dictionary of arrays by name")
            array = np.array(value) if isinstance(value, list | int | float | str | bool) else value
            if not isinstance(array, np.ndarray) or (array is not value and array.dtype.kind not in "biufU"):
                raise ValueError(f"{key} is no array of numbers or text")
            arrays[key] = array
        return arrays
    except Exception as error:  # a damaged pickle can raise anything
        raise DatasetError(
            f"{where}: holds Python objects that are not read ({error}), expected a dictionary of arrays x and y; save "
            f"them with numpy.savez(file, x=x, y=y)"
        ) from None
