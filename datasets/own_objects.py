"""Imports what a user names as "module:NAME", and tells an error of the user's own code in one line with its place.

All packages use it, so it imports nothing of ours.
"""

import difflib
import importlib
import importlib.machinery
import importlib.util
import inspect
import linecache
import os
import pathlib
import re
import sys
import sysconfig
import traceback
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

OURS = ("files", "datasets", "models", "tff_algos", "launch")
_INSTALLED = ("site-packages", "dist-packages")
_STANDARD_LIBRARY = sysconfig.get_path("stdlib")
_PROJECT = pathlib.Path(__file__).resolve().parents[1]
_PLACE = re.compile(r'File "([^"\n]+)", line (\d+)')
# TensorFlow may list every label.
_LONGEST_MESSAGE, _LONGEST_LINE = 200, 100
# What TensorFlow says of Python that cannot be in a graph -> what to write instead.
_ADVICE = {
    "Cannot convert a symbolic": "; NumPy needs numbers, a graph's tensor has none yet: write it with TensorFlow "
    "(tf.reduce_mean for np.mean)",
    "as a Python `bool`": "; `if`, `and` and `while` cannot look into a graph's tensor: write tf.where or tf.cond",
    "Iterating over a symbolic": "; Python cannot loop over a graph's tensor: write tf.map_fn, tf.scan or tf.unstack",
    "cannot assign to field": "; processes and settings are frozen: what changes is the state, as ServerState.own",
    "SymbolicTensor": "; a graph's tensor has neither numbers nor NumPy's methods: write it with TensorFlow (tf.cast "
    "for float, tf.range for range, tf.reshape)",
}


class ContractError(ValueError):
    """What a user's code gives is not what it has to give; the message says what, in one line, and how to correct it.

    Args:
      message: the line.
      function: which gave it, whose place the line ends with if it is the user's.
    """

    def __init__(self, message: str, function: Any = None):
        self.location = find_definition(function)
        super().__init__(f"{message} ({self.location})" if self.location else message)


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """Runs a module as its source stands, and neither reads nor writes what Python keeps compiled of it.

    That counts as new while the source has the same size and the same second of change. So after an edit from 8 to 9 in
    that second, or by a tool that keeps the time, what ran before would run again, and nobody would know.
    """

    def path_stats(self, path: str) -> Any:
        # By this error the import knows nothing of a compiled file.
        raise OSError


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
        positions = [position for position, each in enumerate(finders) if each is importlib.machinery.PathFinder]
        # Before Python's own finder, which would take what is compiled.
        finders.insert(positions[0] if positions else len(finders), _OwnModules)


def is_module(name: str) -> bool:
    """Whether an import by this dotted name would find a file to run; the packages around it are imported."""
    _read_sources()
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        # What is missing may be the name itself, or what a package around it needs.
        return not f"{name}.".startswith(f"{error.name}.")
    except Exception:
        # The import will say what is wrong.
        return True
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
    except (Exception, SystemExit) as error:
        # A call of sys.exit would end the command without a word.
        # Raised by hand, the error need not have a name.
        if isinstance(error, ModuleNotFoundError) and error.name:
            fix = "run from the folder that holds it, or put that folder in PYTHONPATH"
            if not f"{name}.".startswith(f"{error.name}."):
                fix = f"{name} needs it; correct the name, or install it ({find_own_line(error)})"
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
    except AttributeError as error:
        fix = "; a command sees no script or notebook: put it into a module of its own"
        fix = fix if module_name == "__main__" else _name_valid(error)
        raise error_type(f"{label}: expected {name} in {module_name}, there is none{fix}") from None
    except (Exception, SystemExit) as error:
        # A module may have a `__getattr__` of its own, which may raise anything.
        raise error_type(f"{label}: importing {module_name} failed: {describe_failure(error)}") from error


def describe_failure(error: BaseException, called: Any = None) -> str:
    """An exception of a user's code in one line: its type, what it says, what to do about it, and where it was raised.

    That is where what was `called` begins, if the user's code was left, or not reached. TensorFlow and Keras put calls
    and places of theirs around what was raised; these are left out.
    """
    broken = next((each for each in iterate_causes(error) if isinstance(each, ContractError)), None)
    # AutoGraph raises a broken contract as an error of its own.
    error = broken or error
    if isinstance(error, SystemExit):
        text = "a call of sys.exit"
    elif broken:
        text = str(error)
    elif isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__}: {error.msg} ({_spell_line(error.filename, error.lineno or 1)})"
    else:
        message = _find_message(error)
        advice = next((advice for known, advice in _ADVICE.items() if known in str(error)), "")
        # TensorFlow goes on with what one might do where its own code, not the user's, is converted.
        message = message.partition(". ")[0].rstrip(".") if advice else message
        text = ": ".join(filter(None, (type(error).__name__, message))) + (advice or _name_valid(error))
    # A broken contract may name its line itself.
    if getattr(error, "location", ""):
        return text
    location = find_own_line(error) or find_definition(called)
    return f"{text} ({location})" if location else text


def find_own_line(error: BaseException) -> str:
    """The deepest line of a user's module that an exception, or a cause of it, went through; "" if there is none.

    For example "my_module.py, line 42: `x = np.mean(y)`".
    """
    for each in iterate_causes(error):
        # AutoGraph and a graph's nodes name places in the message; frames are then of what these were made into.
        named = [(path, int(number)) for path, number in _PLACE.findall(str(each))]
        frames = [(frame.f_code.co_filename, number) for frame, number in traceback.walk_tb(each.__traceback__)]
        for path, number in (*reversed(named), *reversed(frames)):
            if _is_users(path):
                return _spell_line(path, number)
    return ""


def find_definition(function: Any) -> str:
    """The line where a function or class of the user's begins, spelled the same way; "" for others and for None."""
    try:
        function = inspect.unwrap(function)
        path = inspect.getsourcefile(function)
        return _spell_line(path, inspect.getsourcelines(function)[1]) if path and _is_users(path) else ""
    except (TypeError, OSError):  # it is neither, or there is no source
        return ""


def _spell_line(path: str, number: int) -> str:
    line = linecache.getline(path, number).strip()
    return f"{os.path.basename(path)}, line {number}{line and f': `{line[:_LONGEST_LINE]}`'}"


def iterate_causes(error: BaseException) -> Iterator[BaseException]:
    """An exception, then what it was raised from, or while which was handled, and so on."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _is_users(path: str) -> bool:
    """Whether a file that was run is the user's, and neither a library's, Python's, ours, nor generated."""
    name = os.path.basename(path)
    if _is_installed(path) or name.startswith("__autograph_generated_file"):
        return False
    # An import's frame, or a cell of a notebook, whose lines are known.
    if path.startswith("<"):
        return bool(linecache.getline(path, 1))
    source = pathlib.Path(path)
    return not any(source.is_relative_to(_PROJECT / package) for package in OURS)


def _find_message(error: BaseException) -> str:
    """What was wrong, in one line, without what AutoGraph, Keras and a graph's nodes put around it."""
    name, text = type(error).__name__, str(error).partition("Call arguments received by layer")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if "in user code:" in lines:
        raised = [line for line in lines if line.startswith(f"{name}: ")]
        return raised[-1].removeprefix(f"{name}: ") if raised else lines[-1].removeprefix("in user code:")
    # What was wrong comes after the lines of the code, before the node's.
    if lines[:1] == ["Graph execution error:"]:
        return next((line for line in reversed(lines) if not line.startswith("[[")), "")[:_LONGEST_MESSAGE]
    if lines[1:] and lines[0].startswith("Exception encountered when calling"):
        return lines[1]
    return lines[0] if lines else ""


def _name_valid(error: BaseException) -> str:
    """What could have been meant by a name that is not there; "" for other errors, and if nothing is alike."""
    if isinstance(error, AttributeError):
        # Python gives the copies that AutoGraph makes the name of what was asked for further up.
        missing = next((each for each in iterate_causes(error) if f"'{getattr(each, 'name', '')}'" in str(each)), None)
        if missing is None:
            return ""
        name, valid = missing.name, getattr(missing.obj, "_fields", getattr(missing.obj, "__dataclass_fields__", None))
        if valid:
            return f"; it has {', '.join(valid)}"
        valid = dir(missing.obj)
    elif isinstance(error, ImportError) and (found := re.match(r"cannot import name '(\w+)'", str(error))):
        name, valid = found[1], dir(sys.modules.get(error.name or ""))
    else:
        return ""
    alike = difflib.get_close_matches(name, valid, 1)
    return f"; did you mean {alike[0]}?" if alike else ""
