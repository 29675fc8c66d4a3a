"""Holds the code to the contracts of pyproject.toml, and to sizes and names that no rule of Ruff knows."""

import ast
import graphlib
import importlib
import pathlib
import re
import subprocess
import sys
from collections import Counter

import grimp
import pytest

from launch.settings.flag_parsing import HELP_FLAGS
from launch.settings.flags import list_names_of_runs

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("files", "datasets", "models", "tff_algos", "launch", "reproductions")
MAX_LINES, MAX_FUNCTION_LINES = 600, 80  # a function is one thought; its docstring counts
ONE_FILE, MAX_LINES_OF_ONE = "launch/live/join.py", 900  # which people copy to their machines, so it has all in it
MAX_FILES = 150
PIP_FLAGS = {"--no", "--require"}  # as the pattern below finds --no-deps and --require-hashes
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
HEAVY = {"tensorflow", "tensorflow_federated", "keras", "sklearn", "scipy", "matplotlib", "grpc"}
IMPORT = re.compile(r"^\s*(?:import|from) (\w+)", re.MULTILINE)


@pytest.fixture(scope="module")
def sources():
    """The text of each module by its name in the tree; read when a test asks, since every process imports this one."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def test_imports_keep_to_the_contracts():
    """In a process of its own: in one that has imported TensorFlow it ended the tests."""
    command = [pathlib.Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_there_are_no_import_circles():
    """Lazy imports count: a circle of them is a circle of knowledge all the same."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    graphlib.TopologicalSorter(
        {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    ).prepare()


def test_an_algorithm_has_a_process():
    """The folders of `tff_algos` are those of algorithms and the shared ones."""
    folders = {path.parent for path in (ROOT / "tff_algos").glob("*/__init__.py")}
    shared = {folder.name for folder in folders if not (folder / "process.py").exists()}
    assert shared == {"settings", "simulation", "client", "rounds"}


def test_what_answers_help_imports_nothing_heavy(sources):
    commands = [
        name.replace("/", ".").removesuffix(".py")
        for name, text in sources.items()
        if re.fullmatch(r"launch/\w+\.py", name) and '"__main__"' in text
    ]
    program = f"import sys, {', '.join([*commands, 'launch.runtimes.runtime'])}; print(*{HEAVY} & sys.modules.keys())"
    loaded = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert loaded.stdout == "\n"


def test_packages_import_nothing(sources):
    """`launch` looks whether the project's libraries are there at all, before anything imports them."""
    first = {"launch/__init__.py", "launch/runtimes/arenas.py"}
    for name in first | {name for name in sources if name.endswith("__init__.py")}:
        allowed = {*sys.stdlib_module_names, "launch"} if name in first else set()
        assert set(IMPORT.findall(sources[name])) <= allowed, name


def test_one_place_of_the_tool_knows_where_papers_lie(sources):
    """Nor does a string of any other module name the folder, or something in it."""
    naming = {name for name, text in sources.items() if re.search(r'"reproductions(["./])', text)}
    assert {name for name in naming if not name.startswith("reproductions/")} == {"launch/settings/experiments.py"}


def test_one_module_alone_knows_the_converter(sources):
    assert [name for name, text in sources.items() if "TFLiteConverter" in text] == ["models/tflite_converter.py"]


def test_modules_and_functions_are_short(sources):
    most = dict.fromkeys(sources, MAX_LINES) | {ONE_FILE: MAX_LINES_OF_ONE}
    assert not [name for name, text in sources.items() if len(text.splitlines()) > most[name]]
    nodes = ((name, node) for name, text in sources.items() for node in ast.walk(ast.parse(text)))
    functions = ((name, node) for name, node in nodes if isinstance(node, FUNCTION))
    assert not [(name, f.name) for name, f in functions if f.end_lineno - f.lineno >= MAX_FUNCTION_LINES]


def test_flags_that_texts_name_exist(sources):
    """What an error or a docstring tells the user to type must be a flag of the training command, or of pip."""
    known = {*HELP_FLAGS, *PIP_FLAGS, *(f"--{name}" for name in list_names_of_runs())}
    for name, text in sources.items():
        if not name.startswith(("launch/", "reproductions/")):
            assert set(re.findall(r"--[a-z][a-z0-9_]*", text)) <= known, name


def test_names_say_what_is_inside(sources):
    assert not VAGUE_NAMES & {part for name in sources for part in pathlib.PurePath(name).with_suffix("").parts}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_imported_packages_are_ours(package):
    """`datasets` and `models` are names that other distributions have, too."""
    assert pathlib.Path(importlib.import_module(package).__file__) == ROOT / package / "__init__.py"


def test_no_folder_holds_more_files_than_a_reader_can_look_through():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    counts = Counter(str(pathlib.PurePosixPath(name).parent) for name in listed)
    assert {folder: count for folder, count in counts.items() if count > MAX_FILES} == {}
    assert not [name for name in listed if re.fullmatch(r"tests/.*__init__\.py", name)], "tests are no packages"
