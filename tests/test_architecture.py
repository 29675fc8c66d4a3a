"""Holds the code to the table of imports, sizes and names that the project's design sets."""

import ast
import importlib
import pathlib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from launch.settings.flags import HELP_FLAGS, define_flags

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("datasets", "models", "tff_algos", "launch")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
NAMES = [str(path.relative_to(ROOT)) for path in MODULES]

HEAVY = {"tensorflow", "tensorflow_federated", "tensorflow_model_optimization", "keras"}
FORBIDDEN = {
    "datasets": {"models", "tff_algos", "launch", "absl", *HEAVY},
    "models": {"datasets", "tff_algos", "launch", "absl", "tensorflow_federated"},
    "tff_algos": {"launch", "absl"},
    "launch": set(),
}
# What `tff_algos` may know of the other packages: their types, and what the training loop has to do with a model: take
# the losses from its task, measure what its inputs are scaled by, hand dropout its seed, and heed its own losses and
# constraints; and how what a user names is imported.
KNOWN_TO_ALGORITHMS = {
    "datasets.federated_data",
    "datasets.own_objects",
    "models.model_spec",
    "models.standardization",
    "models.stateless_dropout",
    "models.task",
    "models.training_terms",
}
# What each room of `tff_algos` may import of the package; the folders of algorithms import any of these.
STAND_ALONE = {"protocol", "weights", "seeds"}
ALGORITHM_ROOMS = {
    **dict.fromkeys(STAND_ALONE, STAND_ALONE),
    "settings": set(),
    "simulation": {"settings", *STAND_ALONE},
    "client": {"settings", "simulation", *STAND_ALONE},
    "rounds": {"settings", "simulation", "client", *STAND_ALONE},
}
# The same for `launch`, whose commands import any of these; no room imports a command.
LAUNCH_ROOMS = {
    "progress": set(),
    "stop_signals": set(),
    "temporary_folder": set(),
    "terminal": {"runs"},
    "settings": {"progress"},
    "runtimes": {"progress"},
    "runs": {"progress", "settings"},
    "command_line": {"progress", "settings", "runs", "stop_signals", "temporary_folder", "terminal"},
    "plots": {"progress", "settings", "runs"},
    "pages": set(),
    "comparison": {"pages", "progress", "settings", "runs", "plots"},
    "inspection": {"settings", "runs"},
    # The replay of a paper's published code trains.
    "papers": {"progress", "stop_signals", "settings", "runs", "plots", "runtimes", "training", "command_line"},
    "trackers": {"progress", "settings", "runs"},
    "training": {
        *("progress", "stop_signals", "settings", "runs", "plots", "comparison", "runtimes", "command_line", "trackers")
    },
    "sweeps": {"progress", "stop_signals", "settings", "runs", "plots", "runtimes", "training", "command_line"},
    "tuning": {"progress", "settings", "runs", "plots", "papers", "sweeps", "command_line"},
    "tflite": {"pages", "progress", "settings", "runs", "plots", "runtimes", "training"},
    "benchmarks": {"progress", "settings", "runs", "plots", "runtimes", "training", "tflite", "command_line"},
}
AT_MOST_ONE_MODULE = {"tensorflow_model_optimization": "models"}
MAX_LINES = 400
MAX_FILES = 150
MAX_STATEMENTS = 40
PIP_FLAGS = {"--no", "--require"}  # as the pattern below finds --no-deps and --require-hashes
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
LIGHT = ("command_line", "settings/flags", "settings/algorithms", "runtimes/runtime")
COMMANDS = sorted(path.stem for path in (ROOT / "launch").glob("*.py") if '"__main__"' in path.read_text())
LIGHT_MODULES = [f"launch/{name}.py" for name in (*COMMANDS, *LIGHT)]


class Import(NamedTuple):
    """An imported module by its full name, and whether importing the importer imports it."""

    module: str
    is_at_top: bool


def read_imports(path: pathlib.Path) -> Iterator[Import]:
    """All imports of a module; those inside functions and under TYPE_CHECKING are not at its top."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lazy = set()
    for node in ast.walk(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if is_function or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            lazy.update(ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node not in lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import; name the package"
            # `from package import module` imports package.module
            are_modules = [is_module(f"{node.module}.{alias.name}") for alias in node.names]
            yield Import(node.module, node not in lazy)
            for alias, is_submodule in zip(node.names, are_modules, strict=True):
                if is_submodule:
                    yield Import(f"{node.module}.{alias.name}", node not in lazy)


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def find_path(module: str) -> pathlib.Path | None:
    """The file of a module of ours; None for others'."""
    path = ROOT.joinpath(*module.split("."))
    if module.split(".")[0] not in PACKAGES:
        return None
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@pytest.mark.parametrize("name", NAMES)
def test_imports_keep_to_the_table(name):
    package = name.split("/")[0]
    imported = {imported.module for imported in read_imports(ROOT / name)}
    roots = {module.split(".")[0] for module in imported}
    assert not roots & FORBIDDEN[package]
    if package == "tff_algos":
        ours = {module for module in imported if module.split(".")[0] in ("datasets", "models")}
        assert ours <= KNOWN_TO_ALGORITHMS


def name_room(module: str) -> str:
    """The room of a module of ours: its folder inside the package, or for one that lies in the package, its name."""
    package, *rest = module.split(".")
    return rest[0] if rest else package


def read_rooms_used(path: pathlib.Path) -> set[str]:
    """The rooms of its own package that a module imports, lazily too, its own room left out."""
    module = name_module(path)
    package = module.split(".")[0]
    used = {found.module for found in read_imports(path) if found.module.startswith(f"{package}.")}
    return {name_room(each) for each in used} - {name_room(module)}


def name_module(path: pathlib.Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("tff_algos/")])
def test_rooms_of_the_algorithms_keep_to_the_table(name):
    """An algorithm's folder imports rooms alone, never another algorithm; a room what the table allows it."""
    room = name_room(name_module(ROOT / name))
    assert read_rooms_used(ROOT / name) <= ALGORITHM_ROOMS.get(room, ALGORITHM_ROOMS.keys())


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("launch/")])
def test_rooms_of_launch_keep_to_the_table(name):
    room = name_room(name_module(ROOT / name))
    allowed = LAUNCH_ROOMS.get(room, LAUNCH_ROOMS.keys())  # commands may import all rooms
    assert read_rooms_used(ROOT / name) <= allowed


def test_what_the_algorithms_share_lies_in_rooms():
    """Beside the rooms and the folders of algorithms, `tff_algos` has the three modules that stand alone."""
    folder = ROOT / "tff_algos"
    assert {path.stem for path in folder.glob("*.py")} == {"__init__", *STAND_ALONE}
    folders = {path.parent.name for path in folder.glob("*/__init__.py")}
    assert all((folder / name / "process.py").exists() for name in folders - ALGORITHM_ROOMS.keys())


def test_simulated_devices_need_no_tensorflow():
    for path in (ROOT / "tff_algos" / "simulation").glob("*.py"):
        assert not {found.module.split(".")[0] for found in read_imports(path)} & HEAVY


def test_there_are_no_import_circles():
    """Lazy imports count: a circle of them is a circle of knowledge all the same."""
    modules = {name_module(path): path for path in MODULES}
    waiting = {
        module: {found.module for found in read_imports(path)} & modules.keys() - {module}
        for module, path in modules.items()
    }
    while free := [module for module, imported in waiting.items() if not imported & waiting.keys()]:
        for module in free:
            del waiting[module]
    assert not waiting, f"a circle, or what leads to one: {sorted(waiting)}"


@pytest.mark.parametrize("library", AT_MOST_ONE_MODULE)
def test_one_module_alone_knows_the_library(library):
    knowing = [name for name in NAMES for found in read_imports(ROOT / name) if found.module.split(".")[0] == library]
    assert len(set(knowing)) <= 1
    assert all(name.startswith(AT_MOST_ONE_MODULE[library]) for name in knowing)


def test_one_module_alone_knows_the_converter():
    knowing = [name for name, path in zip(NAMES, MODULES, strict=True) if "TFLiteConverter" in path.read_text()]
    assert knowing == ["models/tflite_converter.py"]


@pytest.mark.parametrize("name", LIGHT_MODULES)
def test_what_answers_help_imports_nothing_heavy(name):
    heavy = {*HEAVY, "sklearn", "scipy", "matplotlib", "grpc"}
    seen, waiting = set(), [ROOT / name]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for module in [found.module for found in read_imports(path) if found.is_at_top]:
            assert module.split(".")[0] not in heavy, f"{path.relative_to(ROOT)} imports {module}"
            waiting.extend(filter(None, [find_path(module), find_path(module.rpartition(".")[0])]))


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("__init__.py")])
def test_packages_import_nothing(name):
    imported = {found.module.split(".")[0] for found in read_imports(ROOT / name)}
    # `launch` looks whether the project's libraries are there at all, before anything imports them.
    assert imported <= (sys.stdlib_module_names if name == "launch/__init__.py" else set())


@pytest.mark.parametrize("name", NAMES)
def test_modules_are_short_and_described(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_LINES
    assert ast.get_docstring(ast.parse(text)), "no docstring"


@pytest.mark.parametrize("name", NAMES)
def test_functions_are_short(name):
    for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            num_statements = sum(isinstance(inner, ast.stmt) for inner in ast.walk(node)) - 1
            assert num_statements <= MAX_STATEMENTS, f"{node.name} has {num_statements} statements"


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("launch/")])
def test_flags_that_texts_name_exist(name):
    """What an error or a docstring tells the user to type must be a flag of the training command, or of pip."""
    constants = [
        node.value for node in ast.walk(ast.parse((ROOT / name).read_text())) if isinstance(node, ast.Constant)
    ]
    texts = [constant for constant in constants if isinstance(constant, str)]
    named = {flag for text in texts for flag in re.findall(r"--[a-z][a-z0-9_]*", text)}
    assert named <= {*HELP_FLAGS, *PIP_FLAGS, *(f"--{flag}" for flag in define_flags())}


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
