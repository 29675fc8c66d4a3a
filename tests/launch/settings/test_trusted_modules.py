"""Whose modules a stored run may have imported: nobody's whom the user has not named, and none from its own folder."""

import json
import os
import pathlib
import sys
import types

import pytest

from launch import compare, evaluate, track
from launch.pages.comparison.compared_run import list_fields
from launch.runs.run_records import find_stored_idle
from launch.settings.errors import FlagError
from launch.settings.flags import parse_config, read_stored_flags
from launch.settings.module_sums import sum_run_modules
from launch.settings.run_config import build_run_config, shared_fields
from launch.settings.run_titles import show_stored_algorithm
from launch.settings.trusted_modules import (
    VARIABLE,
    check_trusted,
    list_modules,
    list_session_names,
    read_trusted,
    spell_program,
    spell_trust,
    sum_session,
)

OWN = {"algo": "numpy.their:ALGORITHM", "dataset": "digits", "model": "wave:build", "teacher_model": "wave:large"}
ROOT = pathlib.Path(__file__).parents[3]
PLANTED = "import pathlib\npathlib.Path(__file__).with_name('has_run').touch()\n"


@pytest.fixture
def planted(store_run, tmp_path, monkeypatch):
    """A function (flag, value, folder of the module) -> (run folder, mark): the mark is there once the code has run."""

    def plant(flag, value, folder="elsewhere"):
        store_run({}, **{flag: value})
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "planted_module.py").write_text(PLANTED)
        monkeypatch.syspath_prepend(str(tmp_path / folder))
        return tmp_path / "run", tmp_path / folder / "has_run"

    yield plant
    sys.modules.pop("planted_module", None)


@pytest.mark.parametrize(
    ("flags", "modules", "foreign"),
    [
        (OWN, ["numpy.their", "wave"], " --trust_module=numpy.their,wave"),
        ({"algo": "fedavg", "model": "auto", "dataset": None, "npz": "c:d", "aggregator": "median"}, [], ""),
        # An aggregator has a flag of its own with each algorithm, a user's own too, and so have several models.
        ({"algo": "fedavg", "my_algorithm_aggregator": "sums:F"}, ["sums"], " --trust_module=sums"),
        ({"models": "perceptron, one:f,two.three:g", "num_models": 2}, ["one", "two.three"], None),
        ({"algo": "examples.fed_dyn:ALGORITHM"}, ["examples.fed_dyn"], ""),
    ],
)
def test_the_modules_that_flags_name(flags, modules, foreign):
    assert list_modules(flags) == modules
    assert foreign is None or spell_trust(flags) == foreign
    assert list_session_names(["fedavg:A", "__main__:build", "__main__:large", "__main__:build"]) == ["build", "large"]


def test_what_the_user_names_is_trusted(monkeypatch):
    monkeypatch.setenv(VARIABLE, "a, b.c")
    assert read_trusted("", {"model": "mine:build"}) == {"a", "b.c", "mine"}
    monkeypatch.delenv(VARIABLE)
    assert read_trusted("x,y") == {"x", "y"} and read_trusted("") == frozenset()
    check_trusted(OWN, "run", {"numpy.their", "wave"})
    check_trusted({"algo": "examples.fed_dyn:ALGORITHM"}, "run", ())
    check_trusted({"model": "no_such_module_anywhere:build"}, "run", ())  # which the import will say


def test_a_command_names_the_folder_where_it_would_not_look(monkeypatch, tmp_path):
    """As that of a script, which is first in `sys.path` wherever the script is started."""
    folder, named = tmp_path / "my scripts", tmp_path / "named"
    for place in (folder, named, folder / "kit"):
        place.mkdir()
    for path in (folder / "beside_it.py", folder / "kit" / "__init__.py", folder / "kit" / "nets.py", named / "far.py"):
        path.touch()
    for place in (folder, named):
        monkeypatch.syspath_prepend(str(place))
    monkeypatch.setenv("PYTHONPATH", str(named))
    program = f"PYTHONPATH='{folder}:{named}' python -m launch.evaluate"
    for model in ("beside_it:build", "kit.nets:build"):
        assert spell_program("launch.evaluate", {"model": model}) == program
    for model in ("far:build", "json:build", "perceptron", "no_such_module_anywhere:build"):
        assert spell_program("launch.evaluate", {"model": model}) == "python -m launch.evaluate"
    monkeypatch.chdir(folder)
    assert spell_program("launch.evaluate", {"model": "beside_it:build"}) == "python -m launch.evaluate"


@pytest.mark.parametrize("flag", ["algo", "dataset", "model", "teacher_model", "models"])
@pytest.mark.parametrize("resume", [True, False])
def test_a_stored_module_is_asked_for_before_its_code_runs(planted, flag, resume):
    run_dir, mark = planted(flag, "planted_module:X")
    with pytest.raises(FlagError, match=r"needs your module planted_module, .* add --trust_module=planted_module"):
        parse_config(["--resume", f"--run_dir={run_dir}"]) if resume else read_stored_flags(str(run_dir))
    assert not mark.exists()


@pytest.mark.parametrize("module", ["os", "sys", "posix", "subprocess", "numpy", "numpy.their"])
def test_modules_of_python_and_of_packages_are_nobodys_own_and_not_trusted_with_another(module):
    with pytest.raises(FlagError, match=f"needs your module {module},"):
        check_trusted({"model": f"{module}:system"}, "run", {"numpy.other", *({"numpy"} - {module})})


def test_a_folder_that_the_environment_names_for_imports_is_trusted(planted, monkeypatch, tmp_path):
    run_dir, mark = planted("model", "planted_module:X")
    monkeypatch.setenv("PYTHONPATH", f"{os.pathsep}/nowhere{os.pathsep}{mark.parent}")
    read_stored_flags(str(run_dir))
    assert not mark.exists()  # a model is imported when it is built
    monkeypatch.setenv("PYTHONPATH", os.pathsep)  # the current folder, which nobody named
    monkeypatch.chdir(mark.parent)
    with pytest.raises(FlagError, match="needs your module planted_module"):
        read_stored_flags(str(run_dir))


@pytest.mark.parametrize("trust", ["--trust_module=planted_module", "--algo=planted_module:X"])
def test_a_trusted_module_is_imported(planted, trust):
    run_dir, mark = planted("algo", "planted_module:X")
    with pytest.raises(FlagError, match="expected X in planted_module"):
        parse_config(["--resume", f"--run_dir={run_dir}", trust])
    assert mark.exists()


@pytest.mark.parametrize("value", ["planted_module:X", "run.planted_module:X"])
def test_nothing_is_imported_from_the_run_folder_even_if_trusted(planted, monkeypatch, tmp_path, value):
    run_dir, mark = planted("model", value, folder="run")
    monkeypatch.syspath_prepend(str(tmp_path))  # `run` is a package there
    with pytest.raises(FlagError, match="lies in the run folder"):
        read_stored_flags(str(run_dir), {value.partition(":")[0]})
    assert not mark.exists()


def test_a_loss_must_be_trusted_to_go_on_and_for_nothing_else(planted):
    run_dir, mark = planted("loss", "planted_module:X")
    with pytest.raises(FlagError, match="needs your module planted_module, whose code would run"):
        parse_config(["--resume", f"--run_dir={run_dir}"])
    assert read_stored_flags(str(run_dir), to_train=False)["loss"] == "planted_module:X" and not mark.exists()
    assert spell_trust({"loss": "planted_module:X"}) == " --trust_module=planted_module"


@pytest.mark.parametrize(
    ("command", "arguments"),
    [(compare, "--runs={}"), (track, "--run_dir={} --to=tensorboard"), (evaluate, "--run_dir={}")],
    ids=["compare", "track", "evaluate"],
)
def test_who_only_reads_runs_no_code_of_a_stranger(planted, command, arguments, monkeypatch, capfd):
    """The stranger's folder is the current one, and among those in which Python looks for modules."""
    run_dir, mark = planted("algo", "planted_module:X")
    flags = json.loads((run_dir / "config.json").read_text())["flags"]
    for name in ("metrics.csv", "summary.json"):
        (run_dir / name).write_text('{"rounds": 1}' if name.endswith("json") else "round\n1\n")
    monkeypatch.chdir(mark.parent)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    code = command.main(arguments.format(run_dir).split())
    assert command is not evaluate or (code == 2 and "needs your module planted_module" in capfd.readouterr().err)
    assert find_stored_idle(flags) == find_stored_idle({**flags, "algo": "fedavg", "dataset": "planted_module:X"})
    assert show_stored_algorithm("planted_module:X").title == "planted_module:X"
    assert list_fields("planted_module:X") == shared_fields()
    assert not mark.exists() and "planted_module" not in sys.modules


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
