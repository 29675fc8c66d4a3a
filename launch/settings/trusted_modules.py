"""Which modules may be imported because a run's records name them: a run folder may come from somebody else.

A run of a user's own algorithm, data set, model or aggregator holds "module:NAME" in its `config.json`, and to go on
with it or to use its models, that module must be imported, which runs its code. So it must be one of this project, or
be named by the user: by a flag of their command, by --trust_module, or by their environment, in FL_TRUST_MODULE or as
lying in a folder of PYTHONPATH. Nothing that lies in the run folder itself is ever imported.

A script or a notebook has objects itself, in `__main__`: a model's function that `fit` was given, for example. No other
process can import it: there, `__main__` is another program. A run with such an object is trained and used in the
process that has it, and in a later one that defines it again under the same name.
"""

import contextlib
import dis
import hashlib
import importlib.machinery
import importlib.util
import os
import pathlib
import shlex
import site
import sys
import sysconfig
import types
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from launch.settings.errors import FlagError
from tff_algos.settings.config_fields import is_own

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


TRUST_FLAG = "trust_module"
VARIABLE = "FL_TRUST_MODULE"
PROJECT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ("files", "datasets", "models", "tff_algos", "launch", "examples")
LOSS = "loss"  # only needed to train: what is tested has the loss of the task
OBJECT_FLAGS = ("algo", "dataset", "model", "teacher_model", LOSS)
# Of the flags that may name one, or several models with commas; earlier versions put the algorithm's name before them.
AGGREGATOR, MODELS = "aggregator", "models"
_of_typed_files: list[str] = []  # folders that this process has put into Python's path


def list_named(flags: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(flag, "module:NAME") of what a run's flags name in modules, in order."""
    aggregators = [name for name in flags if name.endswith(AGGREGATOR)]
    named = [(name, flags.get(name)) for name in (*OBJECT_FLAGS, *aggregators)]
    models = [name for name in flags if name.endswith(MODELS) and isinstance(flags[name], str)]
    named += [(name, each.strip()) for name in models for each in flags[name].split(",")]
    return [(name, each) for name, each in named if isinstance(each, str) and is_own(each)]


def list_objects(flags: Mapping[str, Any]) -> list[str]:
    """What a run's flags name in modules, as "module:NAME", in order."""
    return [each for _, each in list_named(flags)]


def list_modules(flags: Mapping[str, Any]) -> list[str]:
    """The modules that a run's flags name, in order, each once."""
    return list(dict.fromkeys(each.partition(":")[0] for each in list_objects(flags)))


def list_foreign_modules(flags: Mapping[str, Any]) -> list[str]:
    """Those of them that are not this project's."""
    return [module for module in list_modules(flags) if not is_ours(module)]


def spell_trust(flags: Mapping[str, Any]) -> str:
    """What a command for a run with these flags needs so that it can be made again: " --trust_module=..." or ""."""
    modules = list_foreign_modules(flags)
    return f" --{TRUST_FLAG}={','.join(modules)}" if modules else ""


def spell_program(program: str, flags: Mapping[str, Any]) -> str:
    """How a command is typed in the current folder so that it finds the modules of these flags: "python -m ...".

    A script's own folder, or one that it has put into `sys.path`, is not where a command looks.
    """
    libraries, linked = list_library_folders(), []
    for path in (path for folder in libraries for path in pathlib.Path(folder).glob("*.pth")):
        with contextlib.suppress(OSError):  # its lines add folders to Python's path, or are code or remarks
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            added = [line.strip() for line in lines if line.strip() and not line.startswith(("import", "#"))]
            linked += [str(path.parent / folder) for folder in added]
    usual = resolve([os.getcwd(), *_list_python_path(), *libraries, *linked])
    tops = {module.partition(".")[0] for module in list_foreign_modules(flags)}
    folders = {place.parent for top in tops for place in _find_places(top) if place.name != "__init__.py"}
    added = sorted(str(folder) for folder in folders & resolve(sys.path) - usual)
    path = os.pathsep.join((*added, *_list_python_path()))
    return f"PYTHONPATH={shlex.quote(path)} python -m {program}" if added else f"python -m {program}"


def add_to_path(folder: str) -> None:
    """Lets this process and those that it starts import from the folder of a file that the user has typed.

    It counts as no folder of the user's PYTHONPATH, which a command that they type later would have as well.
    """
    sys.path.insert(1, folder)  # where Python puts those of PYTHONPATH
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
    _of_typed_files.append(folder)


def _list_python_path() -> list[str]:
    """The folders that the user's environment names for imports."""
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [folder for folder in folders if folder and folder not in _of_typed_files]


def list_library_folders() -> list[str]:
    """Where Python's own modules and installed ones lie."""
    return [*site.getsitepackages(), site.getusersitepackages(), *sysconfig.get_paths().values()]


def resolve(folders: Iterable[str]) -> set[pathlib.Path]:
    """The folders in full, without links."""
    return {pathlib.Path(folder).resolve() for folder in folders}


def read_trusted(flag: str, given: Mapping[str, Any] | None = None) -> frozenset[str]:
    """The modules that the user names.

    Args:
      flag: the value of --trust_module, modules with commas between them.
      given: the flags of their command, whose own objects count as well.
    """
    named = [*flag.split(","), *os.environ.get(VARIABLE, "").split(",")]
    return frozenset({name.strip() for name in named} - {""}) | frozenset(list_modules(given or {}))


def check_trusted(flags: Mapping[str, Any], run_dir: str, trusted: Collection[str]) -> None:
    """Imports nothing.

    Args:
      flags: those of the run's `config.json`.
      run_dir: its folder.
      trusted: what the user names, as from `read_trusted`.

    Raises:
      FlagError: a module lies in the run folder, or is neither this project's nor trusted.
    """
    folder, named = pathlib.Path(run_dir).resolve(), resolve(_list_python_path())
    check_session(run_dir, list_session_names(list_objects(flags)), SESSION in trusted)
    for module in list_modules(flags):
        places, name = _find_places(module), module.partition(".")[0]
        # Even if it is trusted: a name may be a stranger's choice, and what lies here is theirs.
        if any(place.is_relative_to(folder) for place in places):
            raise FlagError(f"--run_dir={run_dir}: its module {module} lies in the run folder, from which nothing is "
                            "imported; keep your modules outside of it")  # fmt: skip
        is_named = bool(places) and all(any(place.is_relative_to(path) for path in named) for place in places)
        # Of what is nowhere, the import will say so itself.
        is_there = name in sys.modules or name in sys.builtin_module_names or importlib.util.find_spec(name) is not None
        if is_there and not (module in trusted or is_ours(module) or is_named):
            raise FlagError(f"--run_dir={run_dir}: the run needs your module {module}, whose code would run; if you "
                            f"trust it, add --{TRUST_FLAG}={module} (or set {VARIABLE})")  # fmt: skip


def is_ours(module: str) -> bool:
    """Whether a module, by its dotted name, is one of this project's packages; imports nothing."""
    name = module.partition(".")[0]
    places = _find_places(module)
    return name in PACKAGES and bool(places) and all(place.is_relative_to(PROJECT / name) for place in places)


def _find_places(module: str) -> list[pathlib.Path]:
    """Where a module would be imported from, as far as can be told without importing a package; empty if nowhere."""
    name, *inner = module.split(".")
    loaded = sys.modules.get(name)
    # `importlib.util.find_spec` would import the packages around a module, which runs their code.
    spec = getattr(loaded, "__spec__", None) or importlib.machinery.PathFinder.find_spec(name)
    if spec is None:
        return []
    origins = [spec.origin] if spec.origin and spec.has_location else []
    folders = [pathlib.Path(place, *inner) for place in spec.submodule_search_locations or ()]
    return [pathlib.Path(place).resolve() for place in (*origins, *folders)]
