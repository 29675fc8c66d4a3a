"""Imports what a user names as "module:NAME": a data set, model, algorithm or aggregator. A failure is one line.

All packages use it, so it imports nothing of ours.
"""

import importlib
import os
import traceback
import warnings
from typing import Any


def import_object(spelling: str, label: str, error_type: type[ValueError]) -> Any:
    """The object NAME of "module:NAME". The current folder counts as well where Python was started with `-m`.

    Args:
      spelling: "module:NAME", the module with dots if it lies in a package.
      label: what an error begins with, for example "--algo=my_module:ALGORITHM".
      error_type: what is raised.

    Raises:
      error_type: there is no such module or no such object in it, or the module fails or exits when it is imported.
    """
    module_name, _, name = spelling.partition(":")
    # A module may import TensorFlow, whose start-up noise must not stand beside an error of one line.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = importlib.import_module(module_name)
            is_there = hasattr(module, name)  # a module may have a `__getattr__` of its own
    except (Exception, SystemExit) as error:  # sys.exit would end the command without a word
        if isinstance(error, ModuleNotFoundError) and error.name:  # raised by hand, it need not have a name
            fix = "run from the folder that holds it, or put that folder in PYTHONPATH"
            if not f"{module_name}.".startswith(f"{error.name}."):
                fix = f"{module_name} needs it; install it"
            raise error_type(f"{label}: no module named {error.name}; {fix}") from error
        raise error_type(f"{label}: importing {module_name} failed: {describe_failure(error)}") from error
    if not is_there:
        raise error_type(f"{label}: expected {name} in {module_name}, there is none")
    return getattr(module, name)


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
