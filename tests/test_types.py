"""What authors import says its types: packages are marked as typed, and public functions are annotated."""

import ast
import pathlib
import tomllib

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("files", "datasets", "models", "tff_algos", "launch")


def list_functions(node):
    """The public functions of a module or a class, and the methods of its public classes."""
    for each in node.body:
        if isinstance(each, ast.ClassDef):
            yield from list_functions(each)
        elif isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
            yield each


def is_annotated(function):
    given = function.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    others = [each for each in arguments if each is not None and each.arg not in ("self", "cls")]
    return function.returns is not None and all(each.annotation is not None for each in others)


def test_every_package_is_marked_as_typed():
    assert [name for name in PACKAGES if not (ROOT / name / "py.typed").is_file()] == []


def test_functions_that_authors_use_are_annotated():
    """`make test-types` checks that the types are right. A method may leave them to the one that it overrides."""
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["types"]["without_errors"]
    files = [sorted(ROOT.glob(pattern)) for pattern in patterns]
    assert all(files), patterns
    functions = [
        (path, each) for part in files for path in part for each in list_functions(ast.parse(path.read_text()))
    ]
    known = {function.name for _, function in functions if is_annotated(function)}
    missing = [f"{path.name}: {each.name}" for path, each in functions if not is_annotated(each)]
    assert [name for name in missing if name.split(": ")[1] not in known] == []
