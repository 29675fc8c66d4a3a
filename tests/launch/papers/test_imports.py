"""Papers stay apart from the tool: of the commands `launch.report` alone reaches them, lazily imported or not."""

import ast
import functools
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[3]
PACKAGES = ("launch", "tff_algos", "models", "datasets")
COMMANDS = sorted(path.stem for path in (ROOT / "launch").glob("*.py") if '"__main__"' in path.read_text())


def find_file(module):
    """The file of a module or package of ours, None for others'."""
    path = ROOT.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


@functools.cache
def list_imports(module):
    """Every module of ours that a module's file imports anywhere, in functions as well, with the packages around it."""
    found = set()
    for node in ast.walk(ast.parse(find_file(module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    found |= {name.rpartition(".")[0] for name in found}
    return {name for name in found if name.startswith(PACKAGES) and find_file(name)}


def reach(module):
    """Every module that is reached from one, by whatever chain."""
    reached, left = set(), [module]
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += list_imports(name)
    return reached


@pytest.mark.parametrize("command", COMMANDS)
def test_only_the_report_reaches_papers(command):
    papers = sorted(name for name in reach(f"launch.{command}") if name.startswith("launch.papers"))
    assert bool(papers) == (command == "report"), papers[:5]
