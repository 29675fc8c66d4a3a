"""Whether what a user names as "module:NAME" is there, without running a module that may import TensorFlow.

Only what is certain is an error here. All else is found when the object is imported, see `datasets.own_objects`.
"""

import ast
import re
import sys

from datasets.own_objects import import_object
from launch.settings.errors import FlagError
from launch.settings.module_sums import find_file
from launch.settings.suggestions import suggest_value

# With these a module may hold names that its source does not spell.
_DYNAMIC = re.compile(r"import\s+\*|\b(__getattr__|globals|locals|vars|exec|eval|setattr|modules)\b")


def check_named(spelling: str, label: str) -> None:
    """Raises FlagError if the object is certainly not there; a module that cannot be read so is left to its import.

    Args:
      spelling: "module:NAME".
      label: what an error begins with, such as "--model=my_module:build".
    """
    module, _, name = spelling.partition(":")
    if module.endswith(".py") and find_file(module.removesuffix(".py")):
        raise FlagError(f"{label}: expected a module, not its file; did you mean {module.removesuffix('.py')}:{name}?")
    path = None if module in sys.modules else find_file(module)
    try:
        source = path.read_text(encoding="utf-8") if path and path.suffix == ".py" else ""
        tree = ast.parse(source)
    except (OSError, UnicodeDecodeError):
        return
    except (SyntaxError, ValueError, RecursionError):
        path = None
    if path is None:  # its import says at once what is wrong, or that nothing is
        import_object(spelling, label, FlagError)
    elif source and not _DYNAMIC.search(source) and not re.search(rf"\b{name}\b", source):
        names = [each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.ClassDef)]
        raise FlagError(f"{label}: expected {name} in {module}, there is none{suggest_value(name, names)}")
