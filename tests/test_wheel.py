"""A wheel built from the tree holds what the code reads at run time."""

import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("datasets", "models", "tff_algos", "launch")
READ_AT_RUN_TIME = ("datasets/*.csv", "launch/experiments/*/*.flags", "launch/reports/*/*.csv", "launch/tflite/web/*")


@pytest.mark.slow
def test_a_wheel_holds_the_modules_the_flagfiles_and_the_printed_tables(tmp_path):
    source = tmp_path / "source"  # a copy, since a build leaves its folders behind
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    build = subprocess.run([*pip, f"--wheel-dir={tmp_path}", str(source)], capture_output=True, text=True)
    assert build.returncode == 0, build.stderr[-2000:]
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    modules = {str(path.relative_to(ROOT)) for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    data = {str(path.relative_to(ROOT)) for pattern in READ_AT_RUN_TIME for path in ROOT.glob(pattern)}
    assert modules | data <= held
    tables = {"amfl_p/table_1.csv", "amfl_p/pooled_reference.csv", "fedcd/table_1.csv", "fedsikd/table_v.csv"}
    assert {f"launch/reports/{name}" for name in tables} <= data
