"""What a script or a notebook has itself, in `__main__`: a model's function that `fit` was given, for example.

No other process can import it: there, `__main__` is another program. A run with such an object is trained and used in
the process that has it, and in a later one that defines it again under the same name.
"""

import dis
import hashlib
import sys
import types
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from launch.settings.errors import FlagError

SESSION, CHILD = "__main__", "__mp_main__"  # the latter is what multiprocessing calls the former in a child
_PROGRAMS = "launch."  # what `__main__` is in a command of ours
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME")  # of what a function takes from around it, where `co_names` has attributes, too
_PLAIN = (bool, int, float, str, tuple)
MOVE = "write it to a module of its own, such as my_module.py beside it, and import it from there"


def list_session_names(objects: Collection[str]) -> list[str]:
    """The names of those that are of a session, among spellings as "module:NAME"."""
    pairs = [spelling.partition(":") for spelling in objects]
    return list(dict.fromkeys(name for module, _, name in pairs if module == SESSION))


def check_session(run_dir: str, names: Sequence[str], is_trusted: bool) -> None:
    """Raises FlagError unless these names of a run's session are defined in this one, and may be used."""
    if names and not (is_trusted and all(name in _find_names() for name in names)):
        raise FlagError(
            f"--run_dir={run_dir}: its {' and '.join(names)} was in a script or notebook ({SESSION}), which no command "
            f'can import; in Python, define it under this name and give trust_module="{SESSION}" to load_run or fit; '
            f"for commands, {MOVE}, and train again"
        )


def _find_names() -> dict[str, Any]:
    """What this process has in `__main__`; nothing of a command of ours, whose names are no user's."""
    main = sys.modules.get(SESSION)
    name = getattr(getattr(main, "__spec__", None), "name", None) or ""
    return {} if main is None or name.startswith(_PROGRAMS) else vars(main)


def sum_session(names: Collection[str]) -> str:
    """SHA-256 (hex) of the code of these functions and classes, and of those of the session that they name.

    Of the code as it is in memory: the script's file may have been edited since. "" if none has code.
    """
    found, parts, waiting, seen = _find_names(), [], list(names), set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in found:
            continue
        seen.add(name)
        value = found[name]
        if type(value) in _PLAIN:  # such as a width
            parts.append(f"{name}={value!r}")
        for code in _list_code(value):
            parts.append(f"{name}:{_describe_code(code)}")
            waiting += [each.argval for each in dis.get_instructions(code) if each.opname in _LOADS]
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest() if parts else ""


def _list_code(value: Any) -> Iterator[types.CodeType]:
    """The code of a function, or of a class's methods, functions inside them too."""
    is_of_session = getattr(value, "__module__", None) in (SESSION, CHILD)
    parts = vars(value).values() if isinstance(value, type) else [value]
    waiting = [each.__code__ for each in parts if is_of_session and isinstance(each, types.FunctionType)]
    while waiting:
        code = waiting.pop()
        yield code
        waiting += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]


def _describe_code(code: types.CodeType) -> str:
    """What a function does, without where it stands."""
    constants = [constant for constant in code.co_consts if not isinstance(constant, types.CodeType)]
    plain = [sorted(map(repr, each)) if isinstance(each, frozenset) else each for each in constants]
    return repr((code.co_code, code.co_names, code.co_varnames, plain))
