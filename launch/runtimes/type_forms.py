"""TFF types as JSON, with the Python containers that they name, which TFF's own serialization drops. Imports TFF."""

import collections
import importlib
from typing import Any

import numpy as np
import tensorflow_federated as tff

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


def read_type(form: Any) -> tff.Type | None:
    """The type that `describe_type` described. Raises ValueError, TypeError or KeyError if it is none."""
    if form is None:
        return None
    if "result" in form:
        return tff.FunctionType(read_type(form["parameter"]), read_type(form["result"]))
    if "at" in form:
        return tff.FederatedType(read_type(form["member"]), PLACEMENTS[form["at"]], form["all_equal"])
    if "parts" in form:
        parts = [(name, read_type(part)) for name, part in form["parts"]]
        container = form["container"]
        return tff.StructWithPythonType(parts, _find_container(container)) if container else tff.StructType(parts)
    dtype = np.str_ if form["dtype"] == "text" else np.dtype(form["dtype"]).type
    return tff.TensorType(dtype, form["shape"])


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
