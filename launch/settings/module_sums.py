"""What a run's own modules held: the SHA-256 of the source of each, and of those beside it that it imports.

A run names a user's own model, algorithm, aggregator or data set as "module:NAME", which says nothing of the code. So
`config.json` holds the sums of the modules from when the run began. Nothing is imported here: sources are read, and
what they import is looked for in the same package and, unless libraries are installed there, in the same folder.
"""

import ast
import contextlib
import hashlib
import importlib.machinery
import pathlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from launch.settings.run_config import RunConfig, find_algorithm, flag_values
from launch.settings.trusted_modules import (
    PACKAGES,
    SESSION,
    is_ours,
    list_library_folders,
    list_objects,
    list_session_names,
    resolve,
    sum_session,
)

_EXAMPLES = "examples."  # of ours, but there to be changed
_SPELLING = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_SUFFIXES = (*importlib.machinery.SOURCE_SUFFIXES, *importlib.machinery.EXTENSION_SUFFIXES)
_IMPORTERS = frozenset({"import_module", "__import__"})


def sum_run_modules(config: RunConfig, counts: Callable[[str], bool] = lambda flag: True) -> dict[str, str]:
    """{module: SHA-256 (hex)} of a run's own modules, by their dotted names in order; empty without any.

    Of a script or notebook it is that of what the run takes from it.

    Args:
      config: of the run.
      counts: of which flags, by name.
    """
    objects = list_objects({name: value for name, value in flag_values(config).items() if counts(name)})
    if objects and counts("algo"):
        objects.append(find_algorithm(config.algo).builder)
    sums = sum_modules([module for module, _, _ in (each.partition(":") for each in objects) if module != SESSION])
    of_session = sum_session(list_session_names(objects))
    return {**({SESSION: of_session} if of_session else {}), **sums}


def sum_modules(modules: Collection[str]) -> dict[str, str]:
    """{module: SHA-256 (hex)} of these modules and of those beside them that they import; what has no file is left out.

    Args:
      modules: dotted names; those of this project, but for its examples, are left out. Of an installed library only the
        module itself counts.
    """
    sums: dict[str, str] = {}
    for module in (each for each in modules if each.startswith(_EXAMPLES) or not is_ours(each)):
        top = module.partition(".")[0]
        root = _find_root(top)
        waiting, beside = [module], {top: True}  # by the first part of a name: whether it is looked at
        while waiting:
            each = waiting.pop()
            top = each.partition(".")[0]
            if top and top not in beside:
                beside[top] = top not in PACKAGES and _find_root(top) == root
            path = find_file(each) if beside.get(top) and each not in sums else None
            if path is None:
                continue
            with contextlib.suppress(OSError):
                content = path.read_bytes()
                sums[each] = hashlib.sha256(content).hexdigest()
                if root:  # a library's imports are its own
                    # With the packages around it, whose code an import runs as well.
                    parts = each.split(".")
                    waiting += [".".join(parts[:count]) for count in range(1, len(parts))]
                    waiting += _list_imports(content, each, path.stem == "__init__")
    return dict(sorted(sums.items()))


def list_changed(stored: Any, now: Mapping[str, str]) -> list[str]:
    """The modules of `now` that were others, or were not there, when a run began.

    Args:
      stored: the sums that its `config.json` holds; None of an earlier version, of which nothing is known.
      now: as from `sum_modules`.
    """
    if not isinstance(stored, Mapping):
        return []
    return [name for name, digest in now.items() if stored.get(name) != digest]


def _find_spec(top: str) -> importlib.machinery.ModuleSpec | None:
    with contextlib.suppress(ImportError, ValueError):
        return importlib.machinery.PathFinder.find_spec(top)
    return None


def find_file(module: str) -> pathlib.Path | None:
    """Where the code of a module lies, without importing anything; None for what has no file."""
    top, *inner = module.split(".")
    spec = _find_spec(top)
    if spec is None or not all(inner):
        return None
    if not inner:
        return pathlib.Path(spec.origin) if spec.origin and spec.has_location else None
    for place in (pathlib.Path(folder, *inner) for folder in spec.submodule_search_locations or ()):
        found = [place / f"__init__{suffix}" for suffix in _SUFFIXES]
        found += [place.with_name(place.name + suffix) for suffix in _SUFFIXES]
        if path := next((each for each in found if each.is_file()), None):
            return path
    return None


def _find_root(top: str) -> pathlib.Path | None:
    """The folder in which a module or package lies that no other holds; None for none, and for that of libraries."""
    spec = _find_spec(top)
    place = next(iter(spec.submodule_search_locations or ()), spec.origin) if spec else None
    if not place or not (spec.has_location or spec.submodule_search_locations):
        return None
    folder = pathlib.Path(place).parent.resolve()
    return None if folder in resolve(list_library_folders()) else folder


def _list_imports(content: bytes, module: str, is_package: bool) -> Iterator[str]:
    """The modules that a source may import, wherever it does: some of the names may be objects of a module."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError):  # of a compiled one, or one that its import will complain of
        return
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            source = ".".join(filter(None, (base, node.module)))
            yield source
            yield from (f"{source}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _SPELLING.fullmatch(node.value):
            yield node.value.partition(":")[0]  # a builder or a loader, as rows name them
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in _IMPORTERS:
            yield from (str(each.value) for each in node.args[:1] if isinstance(each, ast.Constant))
