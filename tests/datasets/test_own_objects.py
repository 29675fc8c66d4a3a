"""A user's module is what its source says, also where Python takes what it once compiled for new."""

import importlib
import importlib.machinery
import os
import py_compile
import sys

import pytest

from datasets.own_objects import _OwnModules, _SourceLoader, import_object

SOURCES = {
    "own_rates": "RATE = 8\n",
    "own_shapes/__init__.py": "WIDTH = 8\n",
    "own_shapes/deep.py": "DEPTH = 8\n",
    "own_model": """
import functools
import own_rates
import own_shapes
from own_shapes.deep import DEPTH

class Layer:
    units = 8

def build(units=8):
    import own_late  # when it is called
    return 8, units, own_rates.RATE, own_shapes.WIDTH, DEPTH, Layer.units, scale(1), later(), own_late.LATE

scale = lambda x: 8 * x
later = functools.partial(int, "8")
""",
    "own_late": "LATE = 8\n",
}


@pytest.fixture
def edit(tmp_path, monkeypatch):
    """A function (digit): each 8 of the modules becomes this digit, at the same time of change; nothing is imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", [each for each in sys.meta_path if each is not _OwnModules])
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    def forget():
        for name in [name for name in sys.modules if name.startswith("own_")]:
            del sys.modules[name]
        importlib.invalidate_caches()

    def change(digit):
        for name, source in SOURCES.items():
            path = tmp_path / (name if name.endswith(".py") else f"{name}.py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(source.replace("8", digit))
            os.utime(path, (1e9, 1e9))
        forget()

    yield change
    forget()


def test_an_edit_of_the_same_size_and_second_counts(edit, tmp_path):
    """The module itself, what it imports, a package and its inside, and what it imports when it is called."""
    edit("8")
    for path in tmp_path.rglob("*.py"):
        py_compile.compile(str(path), doraise=True)
    edit("9")
    assert import_object("own_model:build", "--model", ValueError)() == (9,) * 9
    edit("8")  # restored
    assert import_object("own_model:build", "--model", ValueError)() == (8,) * 9


def test_nothing_is_compiled_to_disk_which_another_program_could_take_for_new(edit, tmp_path):
    edit("8")
    import_object("own_model:build", "--model", ValueError)()
    assert not list(tmp_path.rglob("*.pyc"))


def test_what_is_installed_or_ours_is_imported_as_ever(edit):
    edit("8")
    import_object("own_model:build", "--model", ValueError)
    assert isinstance(sys.modules["own_shapes.deep"].__loader__, _SourceLoader)
    for name in ("json.tool", "datasets.own_objects", "pandas", "no_such_module"):
        path = getattr(sys.modules.get(name.rpartition(".")[0]), "__path__", None)
        assert _OwnModules.find_spec(name, path) is None
    places = [sys.meta_path.index(each) for each in (_OwnModules, importlib.machinery.PathFinder)]
    assert places[0] + 1 == places[1]
    import_object("own_model:build", "--model", ValueError)
    assert sys.meta_path.count(_OwnModules) == 1
