"""Reads arrays out of a pickle without unpickling it: nothing of the file's choice is called, only data are taken.

Names that a pickle asks for are answered by stand-ins that note what they are given. Those that arrays, dictionaries of
them and text need are known; every other one is refused. So a file of an unknown origin can do no more than hold
numbers.
"""

import io
import pickle
from typing import Any

import numpy as np

_MODULES = ("numpy", "numpy.core.multiarray", "numpy._core.multiarray", "numpy.core.numeric", "numpy._core.numeric")


class _StandIn:
    """Notes what a pickle gives it, and does nothing."""

    def __init__(self, *arguments: Any):
        self.arguments, self.state = arguments, None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Type(_StandIn):
    """Stands for numpy.dtype: what it was made of, as plain values."""

    def build(self) -> np.dtype:
        """The type, of numbers or text alone."""
        code = _decode(self.arguments[0]) if self.arguments else None
        if not isinstance(code, str) or len(code) > 8:
            raise ValueError("a type that is not of numbers")
        order = _decode(self.state[1]) if isinstance(self.state, tuple) and len(self.state) > 1 else "="
        found = np.dtype(code)
        if found.kind not in "biufUS":
            raise ValueError(f"a type that is not of numbers ({code})")
        return found.newbyteorder(order) if order in ("<", ">") else found


def _decode(text: Any) -> Any:
    """Text of Python 2, which is read as bytes."""
    return text.decode("latin1") if isinstance(text, bytes) else text


class _Array(_StandIn):
    """Stands for numpy.ndarray while it is put together."""

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

    def unwrap(self) -> Any:
        """The one object of an array without axes."""
        if isinstance(self.state, tuple) and len(self.state) == 5:
            content = self.state[4]
            if isinstance(content, list) and len(content) == 1:
                return content[0]
        raise ValueError("an array of Python objects")


class _Scalar(_StandIn):
    """Stands for a single number of NumPy, made of its type and its bytes."""

    def build(self) -> np.ndarray:
        """The number as an array without axes."""
        kind, content = self.arguments if len(self.arguments) == 2 else (*self.arguments, b"")
        if not isinstance(kind, _Type) or not isinstance(content, bytes):
            raise ValueError("a number that was not written by NumPy")
        return np.frombuffer(content, kind.build()).reshape(())


def _from_buffer(content: Any, kind: Any, shape: Any, order: Any) -> _Array:
    """What newer pickles make arrays by."""
    array = _Array()
    array.state = (1, shape, kind, order == "F", content if isinstance(content, bytes | bytearray) else None)
    return array


def _encode(text: Any, encoding: Any) -> bytes:
    """What older pickles make bytes by."""
    if not isinstance(text, str) or encoding != "latin1":
        raise ValueError("bytes that were not written by Python")
    return text.encode(encoding)


_STAND_INS = {
    **{(module, "ndarray"): _Array for module in _MODULES},
    **{(module, "dtype"): _Type for module in _MODULES},
    **{(module, "_reconstruct"): lambda *_: _Array() for module in _MODULES},
    **{(module, "scalar"): _Scalar for module in _MODULES},
    **{(module, "_frombuffer"): _from_buffer for module in _MODULES},
    ("_codecs", "encode"): _encode,
    ("__builtin__", "bytes"): lambda: b"",  # by which they make those without a byte
}


# The reader in Python: the one in C makes room for whatever number of memos a pickle claims to have.
class _Reader(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for what a pickle names; nothing else is known."""
        if (module, name) in _STAND_INS:
            return _STAND_INS[module, name]
        raise ValueError(f"it asks for {module}.{name}"[:120])

    def persistent_load(self, pid: Any) -> Any:
        """Refuses references to what is not in the file."""
        raise ValueError("it refers to what is not in the file")


def read_pickled_dictionary(content: bytes, encoding: str = "ASCII") -> dict[Any, Any]:
    """The dictionary that a pickle holds, or an array without axes in it; NumPy's arrays and numbers in it are arrays.

    Args:
      content: the pickle.
      encoding: of the text in pickles of Python 2; "bytes" leaves it as it is.

    Raises:
      Exception: it holds anything but plain values and arrays, or is damaged; any type.
    """
    found = _Reader(io.BytesIO(content), encoding=encoding).load()
    found = found.unwrap() if isinstance(found, _Array) else found
    if not isinstance(found, dict):
        raise ValueError(f"it is no dictionary but {type(found).__name__.strip('_')}")
    return {key: value.build() if isinstance(value, _Array | _Scalar) else value for key, value in found.items()}
