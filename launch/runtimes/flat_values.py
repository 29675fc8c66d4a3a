"""Values of TFF types as flat lists of arrays, and back. Imports TFF: import this module lazily."""

import collections
import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow_federated as tff


def flatten(value: Any, type_spec: tff.Type) -> list[np.ndarray]:
    """The tensors of a value without placement, in the order of its type.

    Raises:
      TypeError: the value is not of the type.
    """
    if isinstance(type_spec, tff.StructType):
        parts, types = list(tff.structure.from_container(value)), list(tff.structure.iter_elements(type_spec))
        if len(parts) != len(types):
            raise TypeError(f"expected {len(types)} values of {type_spec}, found {len(parts)}")
        return [array for part, (_, spec) in zip(parts, types, strict=True) for array in flatten(part, spec)]
    return [_convert(value, type_spec)]


def _convert(value: Any, type_spec: tff.TensorType) -> np.ndarray:
    wanted = type_spec.dtype.type
    if wanted is np.str_:
        array = np.asarray(encode_text(value), object)
    else:
        array = np.asarray(value)
        if array.dtype != wanted:
            is_python = not isinstance(value, (np.ndarray, np.generic)) and not hasattr(value, "dtype")
            converted = array.astype(wanted, copy=False) if array.dtype.kind in "biuf" else array
            can_cast = np.can_cast(array.dtype, wanted, "same_kind" if is_python else "safe")
            overflows = array.dtype.kind in "iu" and np.dtype(wanted).kind in "iu" and np.any(converted != array)
            if not can_cast or overflows:
                raise TypeError(f"expected {type_spec}, found {array.dtype}")
            array = converted
    shape = type_spec.shape
    fits = shape is None or (
        len(shape) == array.ndim and all(size in (None, found) for size, found in zip(shape, array.shape, strict=True))
    )
    if not fits:
        raise TypeError(f"expected {type_spec}, found shape {array.shape}")
    return array


def encode_text(value: Any) -> Any:
    """A value as TensorFlow takes it: text, which is a path where clients have one, as the bytes of its file's name.

    TFF takes text in ASCII only, and TensorFlow in UTF-8 only. A path may hold any bytes.
    """
    if isinstance(value, str):
        return os.fsencode(value)
    if isinstance(value, np.ndarray) and value.dtype.kind == "U":
        return np.array([os.fsencode(text) for text in value.ravel()], object).reshape(value.shape)
    if isinstance(value, tff.structure.Struct):
        return tff.structure.Struct([(name, encode_text(part)) for name, part in tff.structure.iter_elements(value)])
    if isinstance(value, dict):
        return type(value)((name, encode_text(part)) for name, part in value.items())  # an ordered one stays so
    if isinstance(value, list | tuple):
        parts = list(map(encode_text, value))
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def unflatten(arrays: Iterator[Any], type_spec: tff.Type) -> Any:
    """A value of the type, with the Python containers that it names, from the next of these tensors.

    It may be placed at the server, as a whole or part by part.
    """
    return _fill(
        type_spec,
        lambda part: unflatten(arrays, part.member) if isinstance(part, tff.FederatedType) else next(arrays),
    )


def unflatten_clients(clients: Sequence[Sequence[Any]], type_spec: tff.Type) -> Any:
    """A value whose every placed part is a list with an item for each client, from each client's tensors."""
    iterators = [iter(arrays) for arrays in clients]
    return _fill(type_spec, lambda placed: [unflatten(arrays, placed.member) for arrays in iterators])


def _fill(type_spec: tff.Type, make: Callable[[tff.Type], Any]) -> Any:
    """A value of the type, whose parts that are no structures `make` makes, one after the other."""
    if not isinstance(type_spec, tff.StructType):
        return make(type_spec)
    parts = [(name, _fill(spec, make)) for name, spec in tff.structure.iter_elements(type_spec)]
    return tff.types.type_to_py_container(tff.structure.Struct(parts), type_spec)


# TFF types as JSON, with the Python containers that they name, which TFF's own serialization drops. Imports TFF.

PACKAGES = ("files", "datasets", "models", "tff_algos")  # whose containers may be named
PLAIN = {kind.__name__: kind for kind in (tuple, list, dict, collections.OrderedDict)}
PLACEMENTS = {"clients": tff.CLIENTS, "server": tff.SERVER}


def describe_type(type_spec: tff.Type | None) -> Any:
    """The type as values that JSON has.

    Raises:
      ValueError: the type has a part that is none of tensors, structures, placed values and functions, or a container
        of somebody else's.
    """
    if type_spec is None:
        return None
    if isinstance(type_spec, tff.FunctionType):
        return {"parameter": describe_type(type_spec.parameter), "result": describe_type(type_spec.result)}
    if isinstance(type_spec, tff.FederatedType):
        (place,) = (name for name, placement in PLACEMENTS.items() if placement is type_spec.placement)
        return {"at": place, "all_equal": type_spec.all_equal, "member": describe_type(type_spec.member)}
    if isinstance(type_spec, tff.StructType):
        parts = [[name, describe_type(part)] for name, part in tff.structure.iter_elements(type_spec)]
        container = getattr(type_spec, "python_container", None)
        return {"parts": parts, "container": _name_container(container) if container else ""}
    if isinstance(type_spec, tff.TensorType):
        shape = None if type_spec.shape is None else list(type_spec.shape)
        return {"dtype": "text" if type_spec.dtype.type is np.str_ else type_spec.dtype.name, "shape": shape}
    raise ValueError(f"a type that cannot be kept: {type_spec}")


def read_type(described: Any) -> tff.Type | None:
    """The type that `describe_type` described. Raises ValueError, TypeError or KeyError if it is none."""
    if described is None:
        return None
    if "result" in described:
        return tff.FunctionType(read_type(described["parameter"]), read_type(described["result"]))
    if "at" in described:
        return tff.FederatedType(read_type(described["member"]), PLACEMENTS[described["at"]], described["all_equal"])
    if "parts" in described:
        parts = [(name, read_type(part)) for name, part in described["parts"]]
        container = described["container"]
        return tff.StructWithPythonType(parts, _find_container(container)) if container else tff.StructType(parts)
    dtype = np.str_ if described["dtype"] == "text" else np.dtype(described["dtype"]).type
    return tff.TensorType(dtype, described["shape"])


def _name_container(container: type) -> str:
    name = container.__name__ if container in PLAIN.values() else f"{container.__module__}:{container.__qualname__}"
    if _find_container(name) is not container:
        raise ValueError(f"a container that cannot be kept: {name}")
    return name


def _find_container(name: str) -> type:
    """A container by its name; only a named tuple of our packages, or one of `PLAIN`. Raises ValueError."""
    if name in PLAIN:
        return PLAIN[name]
    module, _, qualname = name.partition(":")
    if module.split(".")[0] not in PACKAGES:
        raise ValueError(f"a container that cannot be kept: {name}")
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields")):
        raise ValueError(f"a container that cannot be kept: {name}")
    return found
