"""Imports what a user names as "module:NAME": a data set, model, algorithm or aggregator. A failure is one line.

All packages use it, so it imports nothing of ours.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
import sysconfig
import traceback
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

OURS = ("files", "datasets", "models", "tff_algos", "launch")
_INSTALLED = ("site-packages", "dist-packages")
_STANDARD_LIBRARY = sysconfig.get_path("stdlib")


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """Runs a module as its source stands, and neither reads nor writes what Python keeps compiled of it.

    That counts as new while the source has the same size and the same second of change. So after an edit from 8 to 9 in
    that second, or by a tool that keeps the time, what ran before would run again, and nobody would know.
    """

    def path_stats(self, path: str) -> Any:
        raise OSError  # by which the import knows nothing of a compiled file


class _OwnModules:
    """Finds modules as Python does, those that are neither installed nor ours with the loader above."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] in OURS or any(map(_is_installed, path or ())):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or type(spec.loader) is not importlib.machinery.SourceFileLoader or _is_installed(spec.origin):
            return None
        spec.loader = _SourceLoader(spec.loader.name, spec.loader.path)
        return spec


def _is_installed(path: str) -> bool:
    return path.startswith(_STANDARD_LIBRARY) or not set(_INSTALLED).isdisjoint(pathlib.PurePath(path).parts)


def _read_sources() -> None:
    """From now on in this process, as a function may import something when it is called."""
    if _OwnModules not in sys.meta_path:
        finders = sys.meta_path
        places = [place for place, each in enumerate(finders) if each is importlib.machinery.PathFinder]
        finders.insert(places[0] if places else len(finders), _OwnModules)


def is_module(name: str) -> bool:
    """Whether an import by this dotted name would find a file to run; the packages around it are imported."""
    _read_sources()
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:  # of the name itself, or of what a package around it needs
        return not f"{name}.".startswith(f"{error.name}.")
    except Exception:
        return True  # the import will say what is wrong
    return spec is not None and spec.origin is not None


def import_module(name: str, label: str, error_type: Callable[[str], ValueError]) -> types.ModuleType:
    """The module of a dotted name. The current folder counts as well where Python was started with `-m`.

    It and what it imports are as their sources stand, whatever is compiled of them. Arguments are those of
    `import_object`.

    Raises:
      error_type: there is no such module, or it fails or exits when it is imported.
    """
    _read_sources()
    # A module may import TensorFlow, whose start-up noise must not stand beside an error of one line.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # sys.exit would end the command without a word
        if isinstance(error, ModuleNotFoundError) and error.name:  # raised by hand, it need not have a name
            fix = "run from the folder that holds it, or put that folder in PYTHONPATH"
            if not f"{name}.".startswith(f"{error.name}."):
                fix = f"{name} needs it; install it"
            raise error_type(f"{label}: no module named {error.name}; {fix}") from error
        raise error_type(f"{label}: importing {name} failed: {describe_failure(error)}") from error


def import_object(spelling: str, label: str, error_type: Callable[[str], ValueError]) -> Any:
    """The object NAME of "module:NAME", whose module is imported as by `import_module`.

    Args:
      spelling: "module:NAME", the module with dots if it lies in a package.
      label: what an error begins with, for example "--algo=my_module:ALGORITHM".
      error_type: what is raised.

    Raises:
      error_type: there is no such module or no such object in it, or the module fails or exits when it is imported.
    """
    module_name, _, name = spelling.partition(":")
    module = import_module(module_name, label, error_type)
    try:
        return getattr(module, name)
    except AttributeError:
        fix = "; a command sees no script or notebook: put it into a module of its own"
        raise error_type(
            f"{label}: expected {name} in {module_name}, there is none{fix if module_name == '__main__' else ''}"
        ) from None
    except (Exception, SystemExit) as error:  # of a `__getattr__` of the module's own
        raise error_type(f"{label}: importing {module_name} failed: {describe_failure(error)}") from error


def describe_failure(error: BaseException) -> str:
    """An exception of a user's code in one line: its type, its first line, and where it was raised."""
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    if isinstance(error, SystemExit):
        text = "a call of sys.exit"
    # A syntax error names its place itself; frames of the import machinery say nothing.
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    if isinstance(error, SyntaxError) or not frames:
        return text
    return f"{text} ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})"
