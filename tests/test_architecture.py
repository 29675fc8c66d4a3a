"""Holds the code to the table of imports, sizes and names that the project's design sets, beside the rules of Ruff."""

import ast
import functools
import importlib
import pathlib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

from launch.settings.flag_parsing import HELP_FLAGS
from launch.settings.flags import list_names_of_runs

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("files", "datasets", "models", "tff_algos", "launch", "reproductions")
NAMES = [str(path.relative_to(ROOT)) for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]

HEAVY = {"tensorflow", "tensorflow_federated", "tensorflow_model_optimization", "keras"}
FORBIDDEN = {
    "files": {"datasets", "models", "tff_algos", "launch", "reproductions", "absl", "pandas", "pyarrow", *HEAVY},
    "datasets": {"models", "tff_algos", "launch", "reproductions", "absl", *HEAVY},
    "models": {"datasets", "tff_algos", "launch", "reproductions", "absl", "tensorflow_federated"},
    "tff_algos": {"launch", "reproductions", "absl"},
    "launch": {"reproductions"},
    "reproductions": {"absl"},
}
# What every package may import: how what a user names is imported, with the same errors for all of it.
KNOWN_TO_ALL = "datasets.own_objects"
# What `datasets` may know of the other packages: how a setting is declared, as the options of its readers are.
KNOWN_TO_DATA = "tff_algos.settings.config_fields"
# What `models` may know of `datasets`: what an example is.
KNOWN_TO_MODELS = {"datasets.example_format", "datasets.label_format"}
# What `tff_algos` may know of the other packages: their types, and what the training loop has to do with a model: take
# the losses from its task, measure what its inputs are scaled by, hand dropout its seed, heed its own losses and
# constraints, and look at what goes into its last layer.
KNOWN_TO_ALGORITHMS = {
    "datasets.federated_data",
    "models.embedding",
    "models.model_spec",
    "models.standardization",
    "models.stateless_dropout",
    "models.task",
    "models.training_terms",
}
# What each part of `tff_algos` may import of the package; the folders of algorithms import any of these.
STAND_ALONE = {"protocol", "weights", "seeds", "late_computation"}
ALGORITHM_PARTS = {
    **dict.fromkeys(STAND_ALONE, STAND_ALONE),
    "settings": set(),
    "simulation": {"settings", *STAND_ALONE},
    "client": {"settings", "simulation", *STAND_ALONE},
    "rounds": {"settings", "simulation", "client", *STAND_ALONE},
}
# The same for `launch`, whose commands import any of these; no part imports a command.
LAUNCH_PARTS = {
    "library_versions": set(),
    "arenas": set(),
    "progress": set(),
    "stop_signals": set(),
    "temporary_folder": set(),
    "terminal": {"runs"},
    "settings": {"progress"},
    "runtimes": {"library_versions", "arenas", "progress"},
    "given_data": {"runs", "settings"},
    "given_examples": {"given_data", "settings"},
    "runs": {"library_versions", "progress", "settings"},
    "completion": {"settings", "command_line"},
    "command_line": {"progress", "settings", "runs", "stop_signals", "temporary_folder", "terminal"},
    "plots": {"progress", "settings", "runs"},
    "pages": set(),
    "comparison": {"pages", "progress", "settings", "runs", "plots"},
    "inspection": {"settings", "runs"},
    "trackers": {"settings", "runs", "temporary_folder"},
    "training": {
        *("progress", "stop_signals", "settings", "runs", "plots", "comparison", "runtimes", "command_line", "trackers")
    },
    "sweeps": {"progress", "stop_signals", "settings", "runs", "plots", "runtimes", "training", "command_line"},
    "tuning": {"progress", "settings", "runs", "plots", "comparison", "sweeps", "command_line"},
    "tflite": {"pages", "progress", "settings", "runs", "plots", "runtimes", "training"},
    "benchmarks": {"library_versions", "arenas", "settings", "runs", "runtimes", "training"},
}
AT_MOST_ONE_MODULE = {"tensorflow_model_optimization": "models"}
MAX_LINES, MAX_FUNCTION_LINES = 600, 80  # a function is one thought; its docstring counts
MAX_FILES = 150
PIP_FLAGS = {"--no", "--require"}  # as the pattern below finds --no-deps and --require-hashes
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
LIGHT = ("command_line", "settings/flags", "settings/algorithms", "runtimes/runtime")
COMMANDS = sorted(path.stem for path in (ROOT / "launch").glob("*.py") if '"__main__"' in path.read_text())
NAMING_PAPERS = {"launch/settings/experiments.py"}  # finds the folder by its path, for what is typed
# Commands that look at what runs have left, and the one folder of theirs that knows how TFF is run; it imports TFF only
# when a runtime is opened, which these commands never do.
WITHOUT_TFF = {"card", "compare", "evaluate", "inspect", "report", "track"}
WITHOUT_TENSORFLOW = {"card", "compare", "report"}
RUNTIMES = "launch/runtimes/"
LIGHT_MODULES = [f"launch/{name}.py" for name in (*COMMANDS, *LIGHT)]


class Import(NamedTuple):
    """An imported module by its full name, and whether importing the importer imports it."""

    module: str
    is_at_top: bool


# Read when a test asks: each process that shares the tests imports this module, and one of them runs it.
@functools.cache
def read_text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@functools.cache
def read_tree(name: str) -> ast.Module:
    return ast.parse(read_text(name))


@functools.cache
def list_imports(name: str) -> list[Import]:
    return list(find_imports(read_tree(name)))


def find_imports(tree: ast.Module) -> Iterator[Import]:
    """All imports of a module; those inside functions and under TYPE_CHECKING are not at its top."""
    lazy = set()
    for node in ast.walk(tree):
        is_function = isinstance(node, FUNCTION | ast.Lambda)
        if is_function or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            lazy.update(ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node not in lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from package import module` imports package.module
            are_modules = [is_module(f"{node.module}.{alias.name}") for alias in node.names]
            yield Import(node.module, node not in lazy)
            for alias, is_submodule in zip(node.names, are_modules, strict=True):
                if is_submodule:
                    yield Import(f"{node.module}.{alias.name}", node not in lazy)


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def find_name(module: str) -> str | None:
    """The file of a module of ours; None for others'."""
    path = module.replace(".", "/")
    return next((name for name in (f"{path}/__init__.py", f"{path}.py") if name in NAMES), None)


def test_imports_keep_to_the_table():
    wrong = []
    for name in NAMES:
        imported = {found.module for found in list_imports(name)} - {KNOWN_TO_ALL}
        package = name.split("/")[0]
        if package == "datasets":
            imported.discard(KNOWN_TO_DATA)
        forbidden = {module for module in imported if module.split(".")[0] in FORBIDDEN[package]}
        if package == "models":
            forbidden -= KNOWN_TO_MODELS
        if package == "tff_algos":
            ours = {module for module in imported if module.split(".")[0] in ("datasets", "models")}
            forbidden |= ours - KNOWN_TO_ALGORITHMS
        wrong += [f"{name} imports {module}" for module in sorted(forbidden)]
    assert not wrong


def name_part(module: str) -> str:
    """The part of a package that a module of ours is: its folder in the package or, without one, its own name."""
    package, *rest = module.split(".")
    return rest[0] if rest else package


def list_wrong_imports(package: str, parts: Mapping[str, set[str]]) -> list[str]:
    """A line for each import of a module from a part that its own may not import, lazily too."""
    wrong = []
    for name in (name for name in NAMES if name.startswith(f"{package}/")):
        own = name_part(name_module(ROOT / name))
        used = {name_part(each.module) for each in list_imports(name) if each.module.startswith(f"{package}.")} - {own}
        wrong += [f"{name} imports {part}" for part in sorted(used - parts.get(own, parts.keys()))]
    return wrong


def name_module(path: pathlib.Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_parts_of_the_algorithms_keep_to_the_table():
    """An algorithm's folder imports shared parts alone, never another algorithm; a part what the table allows it."""
    assert not list_wrong_imports("tff_algos", ALGORITHM_PARTS)


def test_parts_of_launch_keep_to_the_table():
    """Commands may import all parts."""
    assert not list_wrong_imports("launch", LAUNCH_PARTS)


def find_reached(name: str, border: str = "") -> set[str]:
    """The files of ours that a module imports, and what these import, lazily too; none below the folder `border`."""
    reached, waiting = set(), [name]
    while waiting:
        name = waiting.pop()
        if name not in reached and not (border and name.startswith(border)):
            reached.add(name)
            waiting.extend(filter(None, (find_name(found.module) for found in list_imports(name))))
    return reached


def test_one_place_of_the_tool_knows_where_papers_lie():
    """Imports are in the table above; nor does a string of any other module name the folder, or something in it."""
    tool = [name for name in NAMES if not name.startswith("reproductions/")]
    naming = {
        name
        for name in tool
        for node in ast.walk(read_tree(name))
        if isinstance(node, ast.Constant) and re.fullmatch(r"reproductions([./]\S*)?", str(node.value))
    }
    assert naming == NAMING_PAPERS


@pytest.mark.parametrize(
    ("commands", "library"), [(WITHOUT_TFF, "tensorflow_federated"), (WITHOUT_TENSORFLOW, "tensorflow")]
)
def test_commands_that_do_not_train_need_no_such_library(commands, library):
    for command in sorted(commands):
        start = "reproductions/report.py" if command == "report" else f"launch/{command}.py"  # which it hands over to
        for name in find_reached(start, RUNTIMES):
            assert library not in {found.module.split(".")[0] for found in list_imports(name)}, (command, name)


def test_what_the_algorithms_share_lies_in_parts():
    """Beside the shared parts and the folders of algorithms, `tff_algos` has the three modules that stand alone."""
    folder = ROOT / "tff_algos"
    assert {path.stem for path in folder.glob("*.py")} == {"__init__", *STAND_ALONE}
    folders = {path.parent.name for path in folder.glob("*/__init__.py")}
    assert all((folder / name / "process.py").exists() for name in folders - ALGORITHM_PARTS.keys())


def test_simulated_devices_need_no_tensorflow():
    for name in (name for name in NAMES if name.startswith("tff_algos/simulation/")):
        assert not {found.module.split(".")[0] for found in list_imports(name)} & HEAVY, name


def test_there_are_no_import_circles():
    """Lazy imports count: a circle of them is a circle of knowledge all the same."""
    modules = {name_module(ROOT / name): name for name in NAMES}
    waiting = {
        module: {found.module for found in list_imports(name)} & modules.keys() - {module}
        for module, name in modules.items()
    }
    while free := [module for module, imported in waiting.items() if not imported & waiting.keys()]:
        for module in free:
            del waiting[module]
    assert not waiting, f"a circle, or what leads to one: {sorted(waiting)}"


@pytest.mark.parametrize("library", AT_MOST_ONE_MODULE)
def test_one_module_alone_knows_the_library(library):
    knowing = [name for name in NAMES for found in list_imports(name) if found.module.split(".")[0] == library]
    assert len(set(knowing)) <= 1
    assert all(name.startswith(AT_MOST_ONE_MODULE[library]) for name in knowing)


def test_one_module_alone_knows_the_converter():
    knowing = [name for name in NAMES if "TFLiteConverter" in read_text(name)]
    assert knowing == ["models/tflite_converter.py"]


def test_what_answers_help_imports_nothing_heavy():
    heavy = {*HEAVY, "sklearn", "scipy", "matplotlib", "grpc"}
    seen, waiting = set(), list(LIGHT_MODULES)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for module in [found.module for found in list_imports(name) if found.is_at_top]:
            assert module.split(".")[0] not in heavy, f"{name} imports {module}"
            waiting.extend(filter(None, [find_name(module), find_name(module.rpartition(".")[0])]))


def test_packages_import_nothing():
    """`launch` looks whether the project's libraries are there at all, before anything imports them."""
    first = {"launch/__init__.py", "launch/arenas.py"}
    for name in first | {name for name in NAMES if name.endswith("__init__.py")}:
        imported = {found.module for found in list_imports(name)} - {"launch.arenas"}
        imported = {module.split(".")[0] for module in imported}
        assert imported <= (sys.stdlib_module_names if name in first else set()), name


def test_modules_are_short():
    assert not [name for name in NAMES if len(read_text(name).splitlines()) > MAX_LINES]


def test_functions_are_short():
    functions = [(name, node) for name in NAMES for node in ast.walk(read_tree(name)) if isinstance(node, FUNCTION)]
    assert not [(name, f.name) for name, f in functions if f.end_lineno - f.lineno >= MAX_FUNCTION_LINES]


def test_flags_that_texts_name_exist():
    """What an error or a docstring tells the user to type must be a flag of the training command, or of pip."""
    known = {*HELP_FLAGS, *PIP_FLAGS, *(f"--{name}" for name in list_names_of_runs())}
    for name in (name for name in NAMES if not name.startswith(("launch/", "reproductions/"))):
        constants = [node.value for node in ast.walk(read_tree(name)) if isinstance(node, ast.Constant)]
        texts = [constant for constant in constants if isinstance(constant, str)]
        assert {flag for text in texts for flag in re.findall(r"--[a-z][a-z0-9_]*", text)} <= known, name


def test_names_say_what_is_inside():
    parts = {part for name in NAMES for part in pathlib.PurePath(name).with_suffix("").parts}
    assert not parts & VAGUE_NAMES


@pytest.mark.parametrize("package", PACKAGES)
def test_the_imported_packages_are_ours(package):
    """`datasets` and `models` are names that other distributions have, too."""
    assert pathlib.Path(importlib.import_module(package).__file__) == ROOT / package / "__init__.py"


def test_tests_are_no_packages():
    assert not list((ROOT / "tests").rglob("__init__.py"))


def test_no_folder_holds_more_files_than_a_reader_can_look_through():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    counts = Counter(str(pathlib.PurePosixPath(name).parent) for name in listed.splitlines())
    assert {folder: count for folder, count in counts.items() if count > MAX_FILES} == {}
