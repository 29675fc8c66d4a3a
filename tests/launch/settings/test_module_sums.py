"""The sums of a user's own code: of which files, and that only what they hold counts."""

import hashlib

import pytest

from launch.settings.module_sums import list_changed, sum_modules, sum_run_modules
from launch.settings.run_config import build_run_config

SOURCES = {
    "own_wave.py": "import numpy, own_parts\ndef build(shape, outputs):\n    from own_kit.deep import layer\n",
    "own_parts.py": "import json\nUNITS = 4\n",
    "own_kit/__init__.py": "",
    "own_kit/deep.py": "from . import sibling\nfrom ..elsewhere import gone\n",
    "own_kit/sibling.py": "import importlib\nimportlib.import_module('own_late')\n",
    "own_late.py": "BUILDER = 'own_builders:build'\n",
    "own_builders.py": "",
    "own_unused.py": "",
    "own_space/model.py": "from own_space.other import z\n",  # a package without __init__.py
    "own_space/other.py": "z = 1\n",
}
OF_WAVE = ["own_builders", "own_kit", "own_kit.deep", "own_kit.sibling", "own_late", "own_parts", "own_wave"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, source in SOURCES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_module_counts_with_what_it_imports_beside_it(folder):
    sums = sum_modules(["own_wave"])
    assert list(sums) == OF_WAVE
    assert sums["own_parts"] == hashlib.sha256(b"import json\nUNITS = 4\n").hexdigest()
    assert list(sum_modules(["own_space.model"])) == ["own_space.model", "own_space.other"]


def test_this_project_and_the_imports_of_libraries_do_not_count(folder):
    assert sum_modules(["models.cnn", "launch.api", "no_such_module"]) == {}
    assert list(sum_modules(["json.decoder"])) == ["json.decoder"]
    assert "examples.fed_dyn" in sum_modules(["examples.fed_dyn"])  # an example is there to be changed
    assert not [name for name in sum_modules(["examples.fed_dyn"]) if not name.startswith("examples")]


def test_only_what_the_files_hold_counts(folder):
    before = sum_modules(["own_wave"])
    (folder / "own_unused.py").write_text("x = 2\n")
    (folder / "own_parts.py").touch()
    assert sum_modules(["own_wave"]) == before
    (folder / "own_kit" / "sibling.py").write_text("x = 2\n")
    assert list_changed(before, sum_modules(["own_wave"])) == ["own_kit.sibling"]
    (folder / "own_parts.py").write_text("(")  # not even Python
    assert list_changed(before, sum_modules(["own_wave"])) == ["own_kit.sibling", "own_parts"]
    assert list_changed(None, before) == [], "of an earlier version, nothing is known"


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ({}, []),
        ({"loss": "own_parts:weigh"}, ["own_parts"]),
        (
            {"model": "own_wave:build", "aggregator": "own_space.model:F"},
            [*OF_WAVE, "own_space.model", "own_space.other"],
        ),
    ],
)
def test_all_modules_that_a_run_names_count(folder, flags, names):
    assert list(sum_run_modules(build_run_config({"algo": "fedavg", **flags}))) == sorted(names)
