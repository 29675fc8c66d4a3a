"""A user's module is what its source says, also where Python takes what it once compiled for new."""

import importlib
import importlib.machinery
import os
import py_compile
import re
import sys
from typing import NamedTuple

import pytest

from datasets.own_objects import ContractError, _OwnModules, _SourceLoader, describe_failure, import_object

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
    positions = [sys.meta_path.index(each) for each in (_OwnModules, importlib.machinery.PathFinder)]
    assert positions[0] + 1 == positions[1]
    import_object("own_model:build", "--model", ValueError)
    assert sys.meta_path.count(_OwnModules) == 1


PLACE = r" \(test_own_objects.py, line \d+: `raise error`\)"
AUTOGRAPH = """in user code:

    File "/my/place/moon.py", line 42, in work  *
        y = np.mean(x)
    File "/usr/lib/python3/site-packages/numpy/core.py", line 3, in mean
        return x

    ValueError: too few
"""


class Told(NamedTuple):
    client: int


def raise_and_describe(error):
    try:
        raise error
    except BaseException as caught:
        return describe_failure(caught)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("first\nsecond"), "ValueError: first" + PLACE),
        (ValueError(), "ValueError" + PLACE),
        (SystemExit("bye"), "a call of sys.exit" + PLACE),
        (ContractError("the work gave None", raise_and_describe), r"the work gave None \(test_own_objects.py, line.*"),
        (ValueError(AUTOGRAPH), r"ValueError: too few \(moon.py, line 42\)"),
        (ValueError(f'Exception encountered when calling layer "a" (type B).\n\n{AUTOGRAPH}\nCall arguments received '
                    'by layer "a":\n  x=1'), r"ValueError: too few \(moon.py, line 42\)"),
        (ValueError("Exception encountered when calling layer a (type B).\n\ntoo few"), f"ValueError: too few{PLACE}"),
        (ValueError("Graph execution error:\n\nat node 'a'\ntoo few\n\t [[{{a}}]]"), f"ValueError: too few{PLACE}"),
        (NotImplementedError("Cannot convert a symbolic tf.Tensor (a:0) to a numpy array. This error may"),
         r"NotImplementedError: Cannot convert .* array; NumPy needs .* \(tf.reduce_mean for np.mean\)" + PLACE),
        (AttributeError("no 'clint'", name="clint", obj=Told(1)), "AttributeError: no 'clint'; it has client" + PLACE),
        (AttributeError("no 'mu'", name="made", obj=Told(1)), "AttributeError: no 'mu'" + PLACE),
        (AttributeError("no 'uper'", name="uper", obj="text"), r"Attr.*: no 'uper'; did you mean upper\?" + PLACE),
        (ImportError("cannot import name 'dump' from", name="pickle"), r"ImportError: .*; did you mean dump\?" + PLACE),
    ],
)  # fmt: skip
def test_an_error_is_what_was_raised_and_the_line_of_the_users(error, line):
    assert re.fullmatch(line, raise_and_describe(error))


def test_the_place_is_the_deepest_of_the_users_also_below_a_library():
    with pytest.raises(ValueError, match="invalid literal") as caught:
        sorted(["a"], key=lambda text: int(text))
    assert describe_failure(caught.value).endswith("key=lambda text: int(text))`)")
    try:
        import_object("json:NOTHING", "x", ValueError)
    except ValueError as error:
        error.__traceback__ = error.__traceback__.tb_next
        assert describe_failure(error) == "ValueError: x: expected NOTHING in json, there is none"
