"""An algorithm of the user's own: a row of their module, by what they type for it; checked before it is used."""

import dataclasses
import importlib.metadata
import importlib.util
import inspect
import os
import pathlib
import re
import sys
from collections.abc import Collection, Iterator, Mapping

from datasets.own_objects import describe_failure, import_module, import_object, is_module
from launch.settings.algorithms import ALGORITHMS, Algorithm
from launch.settings.errors import FlagError
from launch.settings.flag_fields import DEBUG, FlagField, can_hold, find_idle_flags, iterate_fields, replace_fields
from launch.settings.setting_names import read_name
from launch.settings.trusted_modules import add_to_path
from tff_algos.protocol import COMMON_METRICS, JOULES
from tff_algos.settings.config_fields import AlgorithmConfig, is_own

ENTRY_POINTS = "federated_suite.algorithms"  # the group in which an installed package names its rows
SNAKE_CASE = "[a-z][a-z0-9]*(_[a-z0-9]+)*"
HEX_COLOR = "#[0-9A-Fa-f]{6}"  # which Matplotlib and browsers read alike
# Keys of summary.json beside those that are flags, too; the algorithm's own object stands there under its name.
SUMMARY_KEYS = {"final", "best", "clients", "train_seconds", "seconds_per_round", "fine_tuning_start", "is_personal"}
SUMMARY_KEYS |= {"task", "budget_spent", "stopped_early", "reached_limits", "kept_best", "token_baselines"}
SUMMARY_KEYS |= {*COMMON_METRICS, JOULES, "overall_majority_test_accuracy"}
# What the attributes of a row must be; the name and the config's class have checks of their own.
TEXT, MAPPING = (str, "text"), (Mapping, "a mapping of names to values")
KINDS = {
    **dict.fromkeys(("title", "color", "summary"), TEXT),
    "builder": (str, 'the name of a function, as "build" or "module:build"'),
    **dict.fromkeys(("fixed", "defaults", "shared_defaults", "searched"), MAPPING),
    "unused": (tuple, "a tuple of names"),
}


def settle_spelling(typed: str) -> str:
    """What a user types for an algorithm as the text that records hold: a name of ours, or "module:NAME".

    "module" and "folder/file.py" mean the one row in it. A file is the module that Python finds it as, such as
    `examples.fed_dyn` from the project's folder; else its own folder goes into Python's path, as by PYTHONPATH, and it
    is called by its own name. What is none of these may be a name that an installed package gives a row of its own, in
    its entry points. Call it with nothing but what the user has typed: it runs the module's code.

    Raises:
      FlagError: a file or module without a row, or with several, or that cannot be imported; or two packages use the
        name.
    """
    label, module = f"--algo={typed}", ""
    if typed in ALGORITHMS or is_own(typed):
        return typed
    if typed.endswith(".py"):
        module = name_file(typed, label)
    elif all(part.isidentifier() for part in typed.split(".")) and is_module(typed):
        module = typed
    rows = _list_rows(module, label) if module else []
    if not rows:  # perhaps a package whose row is an entry point of the same name
        values = {each.value for each in importlib.metadata.entry_points(group=ENTRY_POINTS, name=typed)}
        if len(values) > 1:
            raise FlagError(f"{label}: {' and '.join(sorted(values))} have this name; expected one of them")
        for value in values:
            module, rows = value, [value] if is_own(value) else _list_rows(value, label)
    if len(rows) > 1:
        raise FlagError(f"{label}: {module} holds {len(rows)} algorithms, expected one of {', '.join(rows)}")
    if module and not rows:
        raise FlagError(f"{label}: {module} holds no Algorithm (of launch.settings.algorithms), expected one")
    return rows[0] if rows else typed


def _list_rows(module: str, label: str) -> list[str]:
    """ "module:NAME" of each row that a module holds, by its first public name."""
    names: dict[int, str] = {}
    for name, value in vars(import_module(module, label, FlagError)).items():
        if isinstance(value, Algorithm) and not name.startswith("_"):
            names.setdefault(id(value), f"{module}:{name}")
    return list(names.values())


def name_file(typed: str, label: str) -> str:
    """The dotted name by which Python finds a file of the user's, whose folder is put into Python's path if need be.

    Raises:
      FlagError: there is no such file, or Python cannot import it by its name.
    """
    path = pathlib.Path(os.path.expanduser(typed)).resolve()
    if not path.is_file():
        raise FlagError(f"{label}: no such file; expected one that holds your code, or module:NAME")
    # The first folder that finds this very file, as a package's module if it lies in one.
    for folder in map(pathlib.Path.resolve, map(pathlib.Path, sys.path)):
        parts = path.relative_to(folder).with_suffix("").parts if path.is_relative_to(folder) else ()
        if parts and all(map(str.isidentifier, parts)) and _find_origin(".".join(parts)) == path:
            return ".".join(parts)
    if not path.stem.isidentifier():
        raise FlagError(f"{label}: Python imports no file of this name, expected letters, digits and _; rename it")
    if other := _find_origin(path.stem):
        raise FlagError(f"{label}: another {path.stem} is there already, {other}; rename one")
    add_to_path(str(path.parent))
    return path.stem


def _find_origin(module: str) -> pathlib.Path | None:
    """The file that an import would run, if there is one."""
    spec = importlib.util.find_spec(module) if is_module(module) else None
    return pathlib.Path(spec.origin).resolve() if spec else None


def load_own_algorithm(spelling: str, shared_flags: Collection[FlagField]) -> Algorithm:
    """Imports and checks a user's row; a builder without a module is one of the row's own module.

    Args:
      spelling: "module:NAME".
      shared_flags: the flags of every algorithm.

    Raises:
      FlagError: the module cannot be imported, or what it holds is no row that can be used.
    """
    label = f"--algo={spelling}"
    row = import_object(spelling, label, FlagError)
    if not isinstance(row, Algorithm):
        raise FlagError(f"{label}: expected an Algorithm (of launch.settings.algorithms), got {type(row).__name__}")
    for mistake in _find_mistakes(row, {field.name: field for field in shared_flags}, label):
        raise FlagError(f"{label}: its {mistake}{_find_line(spelling, mistake.partition(' ')[0])}")
    if ":" in row.builder:
        return row
    builder = f"{spelling.partition(':')[0]}:{row.builder}"
    import_object(builder, label, FlagError)
    return dataclasses.replace(row, builder=builder)


def _find_line(spelling: str, attribute: str) -> str:
    """Where the module gives the row this attribute, or else makes it: " (my_module.py, line 42: `...`)"."""
    module, _, name = spelling.partition(":")
    lines = inspect.getsource(sys.modules[module]).splitlines() if hasattr(sys.modules[module], "__file__") else []
    begin = next((number for number, line in enumerate(lines) if re.match(rf"{name}\b", line)), 0)
    found = (n for n, line in enumerate(lines) if n >= begin and re.match(rf"\s+{attribute}=", line))
    number = next(found, begin)
    file = f"{module.rpartition('.')[2]}.py"
    return f" ({file}, line {number + 1}: `{lines[number].strip()}`)" if lines else ""


def _find_mistakes(row: Algorithm, shared_flags: Mapping[str, FlagField], label: str) -> Iterator[str]:
    """What is wrong with a row, each in words that go on after "its".

    The name must be free as a key of summary.json, and no setting may begin with it: it would have two readings. The
    config must give its defaults, and flags of types that the command line can read, under names of their own.
    """
    name = row.name
    if not isinstance(name, str) or not re.fullmatch(SNAKE_CASE, name):
        yield f"name is {name!r}, expected one in snake case, such as my_algorithm"
    if name in ALGORITHMS:
        yield f"name {name} is that of --algo={name}, expected another"
    taken = {*shared_flags, *SUMMARY_KEYS} & {name} | {flag for flag in shared_flags if flag.startswith(f"{name}_")}
    for flag in sorted(taken):
        yield f"name {name} clashes with {flag}, which every run has, expected another"
    for algo, flag in ((row.name, flag) for row in ALGORITHMS.values() for flag in sorted(row.names)):
        if flag.startswith(f"{name}_"):
            meant = flag.removeprefix(f"{name}_")
            yield (f"name {name} makes --{flag} of --algo={algo} ambiguous, which could be its {meant}; "
                   "expected another")  # fmt: skip
    for attribute, (kind, expected) in KINDS.items():
        if not isinstance(getattr(row, attribute), kind):
            yield f"{attribute} is {getattr(row, attribute)!r}, expected {expected}"
    if not re.fullmatch(HEX_COLOR, row.color):
        yield f"color is {row.color!r}, expected one such as #0072B2"
    if not (isinstance(row.config_class, type) and issubclass(row.config_class, AlgorithmConfig)):
        yield f"config_class is {row.config_class!r:.60}, expected a subclass of AlgorithmConfig"
    declared = [
        (kind, name)
        for kind in row.config_class.__mro__
        for name, value in vars(kind).items()
        if isinstance(value, dataclasses.Field)
    ]
    for kind, name in declared:  # the decorator puts a default, or nothing, in their place
        fix = "write @dataclasses.dataclass(frozen=True) above the class"
        yield f"{kind.__name__} declares {name} but is no dataclass; {fix}"
    try:
        config = row.default_config()
        find_idle_flags(config, row.fields_without_flag)  # fails where `needs` names no field
        # A resumed run reads the defaults from `config.json`, so they must be read there as they were written.
        replace_fields(config, {field.name: field.default for field in row.fields})
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        raise FlagError(f"{label}: its config cannot be made: {describe_failure(error, row.config_class)}") from error
    known = {field.name for field in (*iterate_fields(config), *dataclasses.fields(config))}
    for unknown in sorted(set(row.unused) - known):
        yield f"unused has {unknown}, expected settings of its config"
    for field in row.fields:
        if type(field.default) not in (bool, int, float, str):
            kind = type(field.default).__name__
            yield f"setting --{field.name} is {kind}, expected bool, int, float, str or a tuple of int"
        if field.name in shared_flags or field.name == DEBUG.removeprefix("--"):
            yield f"setting {field.name} is called as a flag of every run, expected another name"
        if (other := read_name(field.name, row)) != field.name:
            yield f"setting {field.name} could mean {other} of {name}, too; expected another name"
    for unknown in sorted(set(row.searched) - row.names):
        yield f"searched names {unknown}, expected settings of its own"
    for unknown in sorted(set(row.shared_defaults) - set(shared_flags)):
        yield f"shared_defaults name {unknown}, expected flags of every algorithm"
    for flag, value in row.shared_defaults.items():
        if not can_hold(shared_flags[flag], value):
            yield f"shared_defaults have {flag}={value!r}, which --{flag} cannot be"
