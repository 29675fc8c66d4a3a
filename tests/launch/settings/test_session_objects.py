"""What a script or notebook has itself: known by its code, and refused with a way out where it is not there."""

import sys
import types

import pytest

from launch.settings.module_sums import sum_run_modules
from launch.settings.run_config import build_run_config
from launch.settings.session_objects import list_session_names, sum_session
from launch.settings.trusted_modules import check_trusted

SOURCE = """
WIDTH = 8

def halve(width):
    return width // 2

class Layer:
    def call(self, x):
        return 2 * x

def build(shape, outputs):
    return [Layer() for _ in range(halve(WIDTH))], shape in {1, 2}, shape.real

unused = 3
real = 3  # called as an attribute that build looks at
"""


@pytest.fixture
def define(monkeypatch):
    """Makes this source what `__main__` holds."""

    def run(source, spec=None):
        main = types.ModuleType("__main__")
        main.__spec__ = spec
        exec(source, vars(main))
        monkeypatch.setitem(sys.modules, "__main__", main)

    return run


def test_the_names_of_a_session():
    assert list_session_names(["fedavg:A", "__main__:build", "__main__:large", "__main__:build"]) == ["build", "large"]


@pytest.mark.parametrize(
    ("before", "after", "is_other"),
    [
        ("unused = 3", "unused = 4", False),
        ("real = 3", "real = 4", False),
        ("WIDTH = 8", "\n\n# a remark\nWIDTH = 8", False),  # it stands elsewhere
        ("WIDTH = 8", "WIDTH = 16", True),
        ("width // 2", "width // 4", True),
        ("2 * x", "3 * x", True),
        ("{1, 2}", "{1, 3}", True),
        ("[Layer()", "[object()", True),
    ],
)
def test_the_code_that_a_function_needs_counts_and_no_other(define, before, after, is_other):
    define(SOURCE)
    first = sum_session(["build"])
    for _ in range(100):  # which makes other instructions of it in memory
        sys.modules["__main__"].build(1, 2)
    assert sum_session(["build"]) == first
    define(SOURCE.replace(before, after))
    assert (sum_session(["build"]) != first) == is_other and len(first) == 64
    config = build_run_config({"algo": "fedavg", "model": "__main__:build"})
    assert sum_run_modules(config) == {"__main__": sum_session(["build"])}
    assert sum_run_modules(build_run_config({"algo": "fedavg"})) == {} and sum_session(["gone"]) == ""


def test_a_stored_run_needs_it_there_and_trusted(define, refuse):
    flags = {"algo": "fedavg", "model": "__main__:build"}
    define(SOURCE)
    check_trusted(flags, "run", {"__main__"})
    command = types.SimpleNamespace(name="launch.evaluate")
    for source, spec, trusted in ((SOURCE, None, ()), ("", None, {"__main__"}), (SOURCE, command, {"__main__"})):
        define(source, spec)
        assert refuse([flags, "run", trusted], lambda given: check_trusted(*given)) == (
            "--run_dir=run: its build was in a script or notebook (__main__), which no command can import; in Python, "
            'define it under this name and give trust_module="__main__" to load_run or fit; for commands, write it to '
            "a module of its own, such as my_module.py beside it, and import it from there, and train again"
        )
