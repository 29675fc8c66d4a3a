"""A wheel built from the tree holds what the code reads at run time, and works beside another package `datasets`."""

import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("files", "datasets", "models", "tff_algos", "launch")
READ_AT_RUN_TIME = ("*/py.typed", "datasets/*.csv", "launch/**/*.j2", "launch/**/web/*")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The path of a wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # a copy, since a build leaves its folders behind
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    build = subprocess.run([*pip, f"--wheel-dir={folder}", str(source)], capture_output=True, text=True)
    assert build.returncode == 0, build.stderr[-2000:]
    [path] = folder.glob("*.whl")
    return path


def test_every_folder_with_modules_is_a_package():
    folders = {path.parent for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").is_file()] == [], "a wheel leaves it out"


@pytest.mark.slow
def test_a_wheel_holds_the_modules_and_what_they_read_but_no_papers(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    modules = {str(path.relative_to(ROOT)) for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    data = {str(path.relative_to(ROOT)) for pattern in READ_AT_RUN_TIME for path in ROOT.glob(pattern)}
    assert modules | data <= held
    assert not [name for name in held if name.startswith("reproductions")]


@pytest.mark.slow
def test_the_script_of_the_wheel_runs_the_commands(wheel, tmp_path):
    """As a script of an installed package: it lists the commands, and a command answers as `python -m` does."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    [entry_points] = tmp_path.glob("*.dist-info/entry_points.txt")
    assert "federated = launch.federated:run_script" in entry_points.read_text().splitlines()
    script = tmp_path / "federated"
    script.write_text("import sys\nfrom launch.federated import run_script\nsys.exit(run_script())\n")

    def run(*arguments, cwd=tmp_path):
        command = [sys.executable, str(script), *arguments]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)

    assert run().returncode == 0 and "  train  " in run().stdout
    assert run("--version").stdout == "federated 0.1.0\n"
    assert run("train", "--help").stdout.startswith("python -m launch.train --algo=")
    wrong = run("train", "--algo=fedavg", "--round=3")
    assert (wrong.returncode, wrong.stderr) == (2, "error: --round: did you mean --rounds? unknown flag\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "own_module.py").write_text("ALGORITHM = 3\n")
    found = run("train", "--algo=own_module:ALGORITHM", cwd=tmp_path / "folder")
    assert "expected an Algorithm" in found.stderr and "got int" in found.stderr
