"""Modules that wait until they are used, and what TensorFlow's import then leaves out."""

import concurrent.futures
import gc
import importlib
import inspect
import subprocess
import sys
import types

import pytest

from launch.runtimes import quick_import
from launch.runtimes.quick_import import DeferredModule, import_quickly

HEAVY = """
import sys
from deferral_fixture import log
log.append("begun")
import time
time.sleep(0.05)  # a second thread would see a half of the module
from deferral_fixture import heavy  # it and its parts may refer to it while it is loaded
answer = getattr(heavy, "answer", 41) + 1
"""


USER = """
from deferral_fixture import broken, heavy, log
try:
    from deferral_fixture.other import name
except ImportError:
    name = None
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package `deferral_fixture` with a module `user` that imports the deferred `heavy`; its log of executions."""
    folder = tmp_path / "deferral_fixture"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "log.py").write_text("entries = []\nappend = entries.append\n")
    (folder / "heavy.py").write_text(HEAVY)
    (folder / "broken.py").write_text("from deferral_fixture import log\nlog.append('tried')\n1 / 0\n")
    (folder / "other.py").write_text("name = 1\n")
    (folder / "user.py").write_text(USER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(quick_import, "DEFERRED", {"deferral_fixture.heavy", "deferral_fixture.broken", "no.such"})
    monkeypatch.setattr(quick_import, "HIDDEN", {"deferral_fixture.other"})
    yield import_quickly("deferral_fixture.user")
    for name in [name for name in sys.modules if name.startswith("deferral_fixture")]:
        del sys.modules[name]


def test_looking_at_a_module_does_not_load_it_and_nothing_is_deferred_or_hidden_after_the_import(package):
    heavy = package.heavy
    assert heavy.__file__.endswith("heavy.py") and not hasattr(heavy, "__path__")
    assert not hasattr(heavy, "__warningregistry__") and inspect.getmodule(run_in_threads)
    assert importlib.import_module("deferral_fixture.heavy") is heavy
    assert isinstance(heavy, DeferredModule) and package.log.entries == []
    assert package.name is None and importlib.import_module("deferral_fixture.other").name == 1
    assert gc.isenabled() and gc.get_freeze_count() > 0
    assert not any(isinstance(finder, quick_import._DeferringFinder) for finder in sys.meta_path)


def run_in_threads(function):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return [each.result() for each in [pool.submit(function) for _ in range(4)]]


def test_a_module_is_executed_once_is_seen_only_when_whole_and_fails_each_time_it_is_asked(package):
    assert run_in_threads(lambda: package.heavy.answer) == [42] * 4 and package.log.entries == ["begun"]
    assert package.heavy.answer == 42 and type(package.heavy) is types.ModuleType
    for module, error in ((package.heavy, AttributeError), (package.broken, ZeroDivisionError)):
        for _ in range(2):
            with pytest.raises(error):
                module.no_such_name  # noqa: B018
    assert package.log.entries == ["begun", "tried", "tried"]


def test_tff_is_imported_without_what_no_run_uses_and_has_it_all_the_same():
    program = (
        "import sys, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "from launch.runtimes.quick_import import DEFERRED, DeferredModule, import_quickly\n"
        "tff = import_quickly('tensorflow_federated')\n"
        "tf = sys.modules['tensorflow']\n"
        "print(sorted(name for name in DEFERRED if not isinstance(sys.modules.get(name), DeferredModule)))\n"
        "print('scipy.signal' in sys.modules, 'jax' in sys.modules)\n"
        "print(tf.lite.Optimize.DEFAULT.name, callable(tff.learning.programs.train_model))\n"
        "import models.catalog, launch.tflite.export_models, models.tflite_export\n"
        "print(callable(tf.lite.TFLiteConverter.from_concrete_functions))\n"
    )
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, env={"TF_CPP_MIN_LOG_LEVEL": "3"}, check=True)
    assert result.stdout.splitlines() == ["[]", "False False", "DEFAULT True", "True"], result.stdout
