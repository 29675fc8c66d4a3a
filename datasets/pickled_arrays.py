"""Reads arrays out of a pickle without unpickling it: nothing of the file's choice is called, only data are taken.

Names that a pickle asks for are answered by stand-ins that note what they are given. Those that arrays and dictionaries
of them need are known; every other one is refused. So a file of an unknown origin can do no more than hold numbers.
"""

import io
import pickle
from typing import Any

import numpy as np

from datasets.errors import DatasetError

_MODULES = ("numpy", "numpy.core.multiarray", "numpy._core.multiarray", "numpy.core.numeric", "numpy._core.numeric")


class _Type:
    """Stands for numpy.dtype: what it was made of, as plain values."""

    def __init__(self, *arguments: Any):
        self.code, self.state = (arguments[0] if arguments else None), None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def build(self) -> np.dtype:
        """The type, of numbers or text alone."""
        code = self.code
        if not isinstance(code, str) or len(code) > 8:
            raise ValueError("a type that is not of numbers")
        order = self.state[1] if isinstance(self.state, tuple) and len(self.state) > 1 else "="
        found = np.dtype(code)
        if found.kind not in "biufUS":
            raise ValueError(f"a type that is not of numbers ({code})")
        return found.newbyteorder(order) if order in ("<", ">") else found


class _Array:
    """Stands for numpy.ndarray while it is put together."""

    def __init__(self):
        self.state = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def build(self) -> np.ndarray:
        """The array."""
        if not isinstance(self.state, tuple) or len(self.state) != 5:
            raise ValueError("an array that was not written by NumPy")
        _, shape, kind, is_fortran, content = self.state
        if isinstance(content, list):
            raise ValueError("an array of Python objects, expected numbers of one shape")
        if not isinstance(kind, _Type) or not isinstance(content, bytes | bytearray):
            raise ValueError("an array that was not written by NumPy")
        array = np.frombuffer(content, kind.build())
        return array.reshape(shape, order="F" if is_fortran else "C")


class _Scalar:
    """Stands for a single number of NumPy."""

    def __init__(self, kind: Any, content: Any = b""):
        self.kind, self.content = kind, content

    def build(self) -> np.ndarray:
        """The number as an array without axes."""
        if not isinstance(self.kind, _Type) or not isinstance(self.content, bytes):
            raise ValueError("a number that was not written by NumPy")
        return np.frombuffer(self.content, self.kind.build()).reshape(())


def _reconstruct(*_: Any) -> _Array:
    return _Array()


def _from_buffer(content: Any, kind: Any, shape: Any, order: Any) -> _Array:
    """What newer pickles make arrays by."""
    array = _Array()
    array.state = (1, shape, kind, order == "F", content if isinstance(content, bytes | bytearray) else None)
    return array


# The reader in Python: the one in C makes room for whatever number of memos a pickle claims to have.
class _Reader(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for what a pickle names; nothing else is known."""
        stand_ins = {"ndarray": _Array, "dtype": _Type, "_reconstruct": _reconstruct, "scalar": _Scalar}
        stand_ins["_frombuffer"] = _from_buffer
        if module in _MODULES and name in stand_ins:
            return stand_ins[name]
        raise ValueError(f"it asks for {module}.{name}"[:120])

    def persistent_load(self, pid: Any) -> Any:
        """Refuses references to what is not in the file."""
        raise ValueError("it refers to what is not in the file")


def read_pickled_arrays(content: bytes, where: str) -> dict[str, np.ndarray]:
    """The arrays of a pickled dictionary {name: array}, or of an array without axes that holds one.

    Args:
      content: the pickle, as NumPy writes an array of objects.
      where: what an error begins with.

    Raises:
      DatasetError: it holds anything but such a dictionary, or is damaged.
    """
    try:
        found = _Reader(io.BytesIO(content)).load()
        if isinstance(found, _Array):
            found = _unwrap(found)
        if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
            raise ValueError(f"it is no dictionary but {type(found).__name__.strip('_')}")
        return {key: _to_array(key, value) for key, value in found.items()}
    except DatasetError:
        raise
    except Exception as error:  # a damaged pickle can raise anything
        raise DatasetError(
            f"{where}: holds Python objects that are not read ({error}), expected a dictionary of arrays x and y; save "
            f"them with numpy.savez(file, x=x, y=y)"
        ) from None


def _unwrap(array: _Array) -> Any:
    """The one object of an array without axes."""
    state = array.state
    if isinstance(state, tuple) and len(state) == 5 and isinstance(state[4], list) and len(state[4]) == 1:
        return state[4][0]
    raise ValueError("an array of Python objects")


def _to_array(key: str, value: Any) -> np.ndarray:
    if isinstance(value, _Array | _Scalar):
        return value.build()
    array = np.array(value) if isinstance(value, list | int | float | str | bool) else None
    if array is None or array.dtype.kind not in "biufU":
        raise ValueError(f"{key} is no array of numbers or text")
    return array
