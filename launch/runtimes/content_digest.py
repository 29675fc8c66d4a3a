"""What a computation will be made of, as a digest: the same digest means the same graphs. Imports TFF: import lazily.

A function stands for itself by its name and place, since the source of our packages is part of every key
(`describe_surroundings`), and by what it has closed over. Whatever is not known to be wholly described raises
`UnknownContent`: such a computation is traced in every run.
"""

import collections
import enum
import functools
import hashlib
import inspect
import os
import pathlib
import platform
import sys
import types
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

import launch
from launch.runs.library_versions import find_version
from launch.runtimes.flat_values import describe_type
from launch.runtimes.processor import describe_processor

ROOT = pathlib.Path(launch.__file__).resolve().parents[1]
SOURCES = ("files", "datasets", "models", "tff_algos", "launch/runtimes")
LIBRARIES = ("tensorflow", "tensorflow-federated", "tensorflow-model-optimization", "keras", "numpy")
FOREIGN = ("numpy", "tensorflow", "keras", "builtins")  # whose functions and classes their versions stand for
MAPPINGS = (dict, collections.OrderedDict, types.MappingProxyType)
VARIABLES = ("TF_", "XLA_", "KERAS_", "CUDA_", "OMP_")  # how the variables begin that may change a graph


class UnknownContent(ValueError):
    """Something that a digest cannot stand for; the message names it."""


def describe_surroundings(device: str) -> str | None:
    """A digest of all that graphs depend on beside what they are made of; None if that cannot be told.

    These are the source of our packages, versions, the processor, TensorFlow's switches and `device`. What was edited
    since this process began may be loaded as it was before.
    """
    paths = sorted(path for folder in SOURCES for path in (ROOT / folder).rglob("*.py"))
    if not paths or max(path.stat().st_mtime for path in paths) >= launch.IMPORTED_S:
        return None
    hasher = hashlib.sha256()
    for path in paths:
        _add(hasher, str(path.relative_to(ROOT)), path.read_bytes())
    for name in LIBRARIES:
        _add(hasher, name, find_version(name) or "")
    # Constants that TensorFlow computes ahead may depend on the processor.
    _add(hasher, sys.version, platform.platform(), describe_processor(), device)
    for name in sorted(os.environ):
        if name.startswith(VARIABLES):
            _add(hasher, name, os.environ[name])
    keras = tf.keras
    _add(hasher, keras.mixed_precision.global_policy().name, keras.backend.floatx(), keras.backend.image_data_format())
    _add(hasher, str(tf.config.optimizer.get_jit()), str(tf.config.optimizer.get_experimental_options()))
    return hasher.hexdigest()


def digest_content(surroundings: str, build: Any, arguments: tuple) -> str:
    """The digest, 64 hex digits, of a computation that `build(*arguments)` makes.

    Raises:
      UnknownContent: it cannot be told what is in them.
    """
    hasher = hashlib.sha256()
    _add(hasher, surroundings)
    _Describer(hasher).describe((build, arguments))
    return hasher.hexdigest()


def _add(hasher: Any, *parts: str | bytes) -> None:
    """Adds parts so that no two lists of parts look alike."""
    for part in parts:
        content = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        hasher.update(b"%d:" % len(content))
        hasher.update(content)


class _Describer:
    """Feeds a hasher with values, part by part."""

    def __init__(self, hasher: Any):
        self._hasher = hasher
        self._inside: set[int] = set()  # what is being described: a circle has no end

    def describe(self, value: Any) -> None:
        if id(value) in self._inside:
            raise UnknownContent(f"a circle through {type(value).__qualname__}")
        self._inside.add(id(value))
        if isinstance(value, type):
            self._say("class", _name_class(value))
        elif isinstance(value, enum.Enum):
            self._say("enum", _name_class(type(value)), value.name)
        elif value is None or type(value) in (bool, int, float, complex, str, bytes):
            self._say(type(value).__name__, value if isinstance(value, bytes) else repr(value))
        elif isinstance(value, np.ndarray | np.generic):
            if value.dtype.hasobject:
                raise UnknownContent("an array of objects")
            self._say("array", value.dtype.str, repr(value.shape), value.tobytes())
        elif isinstance(value, np.dtype | tf.DType | tf.TensorShape):
            self._say(type(value).__name__, repr(value))
        elif isinstance(value, tff.Type):
            try:
                self._say("type", repr(describe_type(value)))
            except ValueError as error:
                raise UnknownContent(str(error)) from None
        elif isinstance(value, tuple | list | set | frozenset):
            self._say(_name_class(type(value)), str(len(value)))
            # A set's order differs between processes, since the hashes of text do.
            for part in sorted(value, key=repr) if isinstance(value, set | frozenset) else value:
                self.describe(part)
        elif type(value) in MAPPINGS:
            self._say(type(value).__name__, str(len(value)))
            for key, part in value.items():
                self.describe(key)
                self.describe(part)
        elif isinstance(value, functools.partial):
            self._say("partial")
            self.describe((value.func, value.args, value.keywords))
        elif isinstance(value, types.MethodType):
            self._say("method", value.__func__.__qualname__)
            self.describe((value.__func__, value.__self__))
        elif isinstance(value, types.FunctionType):
            self._describe_function(value)
        else:
            kind = type(value)
            self._say("object", _name_class(kind))
            if not hasattr(value, "__dict__") or kind.__module__.startswith(FOREIGN):
                raise UnknownContent(f"a {kind.__qualname__}")
            fields = getattr(kind, "__dataclass_fields__", {})
            for name in sorted(vars(value)):
                is_outside = name in fields and fields[name].metadata.get("outside_graphs", False)
                # A cached property follows from the others.
                if not (is_outside or isinstance(inspect.getattr_static(kind, name, None), functools.cached_property)):
                    self._say(name)
                    self.describe(vars(value)[name])
        self._inside.remove(id(value))

    def _say(self, *parts: str | bytes) -> None:
        _add(self._hasher, *parts)

    def _describe_function(self, function: types.FunctionType) -> None:
        while wrapped := getattr(function, "__wrapped__", None):  # as AutoGraph's marks do
            if not pathlib.Path(function.__code__.co_filename).is_relative_to(pathlib.Path(tf.__file__).parent):
                raise UnknownContent(f"what wraps a function in {function.__code__.co_filename}")
            self._say("wrapped", function.__code__.co_qualname)
            function = wrapped
        module, code = _find_module(function.__module__), function.__code__
        if not isinstance(function, types.FunctionType) or code.co_filename != getattr(module, "__file__", None):
            raise UnknownContent(f"the function {function.__qualname__}")
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        self._say("function", function.__module__, function.__qualname__, repr(list(code.co_positions())))
        self.describe((cells, function.__defaults__, function.__kwdefaults__))


def _name_class(kind: type) -> str:
    """The name of a class that can be found by it."""
    found = _find_module(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is not kind:
        raise UnknownContent(f"the class {kind.__qualname__}")
    return f"{kind.__module__}:{kind.__qualname__}"


def _find_module(name: str) -> types.ModuleType | None:
    """A module whose source or version is among the surroundings."""
    is_ours = any(f"{name}.".startswith(f"{folder.replace('/', '.')}.") for folder in SOURCES)
    if not is_ours and name.split(".")[0] not in FOREIGN:
        raise UnknownContent(f"what is of the module {name}")
    module = sys.modules.get(name)
    path = getattr(module, "__file__", None)
    if is_ours and not (path and pathlib.Path(path).resolve().is_relative_to(ROOT)):
        raise UnknownContent(f"the module {name}")
    return module
