"""Imports TensorFlow and TFF in half of the time that they take by themselves.

On a quiet machine `import tensorflow_federated` takes 4 s of CPU, more than a short run trains. Two things shorten it:
- Python's garbage collector walks again and again through the objects that the modules make, which all stay (0.9 s).
- Many of the modules serve what no run here uses (1.3 s). They are loaded when something asks them for a name, or
  TensorFlow is told that they are not installed.
"""

import gc
import importlib
import importlib.abc
import importlib.machinery
import sys
import threading
import types
from collections.abc import Sequence
from typing import Any

# What TensorFlow and TFF import but touch only when called. A name that another version lacks does nothing here.
# TensorFlow Lite is not among them: loaded late, the package `tensorflow.lite` would take the place of the interface
# `tf.lite`.
DEFERRED = frozenset(
    {
        "tensorflow_probability",  # noise of TensorFlow Privacy: 0.5 s
        "tensorflow_federated.python.core.environments.jax",
        # Privacy accounting, with much of SciPy: 0.3 s
        "dp_accounting.pld",
        "dp_accounting.rdp",
        "scipy.optimize",
        "scipy.special",
        "scipy.stats",
        "sklearn.preprocessing",
        "tensorflow_federated.python.learning.programs",  # with Vizier: 0.1 s
        "requests",  # 0.1 s
        "pandas",  # as what Keras's `fit` is given: 0.4 s
    }
)
# What TensorFlow and TFF do without where it is not installed: TensorFlow Lite converts functions of JAX where it can.
# A name is asked of it at once, so that it cannot wait: 0.4 s. Later it can be imported.
HIDDEN = frozenset({"jax"})

_lock = threading.RLock()


class DeferredModule(types.ModuleType):
    """A module that is executed when a name is asked of it that the import system has not set.

    The standard library's `importlib.util.LazyLoader` is not used: any look at the module loads it, even that of
    `inspect`, which looks at all modules; and a second thread may see it half loaded (Python 3.11).
    """

    def __getattr__(self, name: str) -> Any:
        if name in ("__path__", "__warningregistry__", "__wrapped__"):  # asked of all modules; never a reason to load
            raise AttributeError(name)
        with _lock:  # a second thread waits until the module is whole
            if type(self) is DeferredModule:
                self.__spec__.loader.execute(self)
        return types.ModuleType.__getattribute__(self, name)


class _DeferringLoader(importlib.abc.Loader):
    """Makes a module as the loader `now` would, but leaves its execution for later."""

    def __init__(self, now: importlib.abc.Loader):
        self._now = now
        self._is_executing = False

    def __getattr__(self, name: str) -> Any:  # for whoever asks for source or data files
        return getattr(self._now, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self._now.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__class__ = DeferredModule

    def execute(self, module: types.ModuleType) -> None:
        """Executes a deferred module, once; a module that fails stays deferred."""
        if self._is_executing:  # the module, or a part of it, asks for a name that is not there yet
            return
        self._is_executing = True
        try:
            self._now.exec_module(module)
            module.__class__ = types.ModuleType
        finally:
            self._is_executing = False


class _DeferringFinder(importlib.abc.MetaPathFinder):
    """Finds the modules that are to be deferred, and takes those that are hidden for not installed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name in HIDDEN:
            raise ModuleNotFoundError(f"{name} waits until the import is over", name=name)
        if name not in DEFERRED:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _DeferringLoader(spec.loader)
        return spec


def import_quickly(name: str) -> types.ModuleType:
    """Imports a module and all that it needs, without `HIDDEN` modules; `DEFERRED` ones are loaded when used."""
    if name in sys.modules:
        return sys.modules[name]
    finder, was_enabled = _DeferringFinder(), gc.isenabled()
    sys.meta_path.insert(0, finder)
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        sys.meta_path.remove(finder)
        gc.freeze()  # what is there now is never walked through again
        if was_enabled:
            gc.enable()
