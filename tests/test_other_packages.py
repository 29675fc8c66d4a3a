"""The suite's packages beside others of their names: Hugging Face's `datasets` above all, here a stand-in."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]


@pytest.fixture
def theirs(tmp_path):
    """A folder as of an environment in which their package is installed, beside a folder of files of that name."""
    package = tmp_path / "theirs" / "datasets"
    package.mkdir(parents=True)
    (tmp_path / "datasets").mkdir()
    (package / "__init__.py").write_text("from datasets.arrow_dataset import Dataset\n")
    (package / "arrow_dataset.py").write_text("class Dataset: pass\n")
    return package.parent


PROGRAM = "try: import launch\nexcept ImportError as error: print(error)"
STRANGE = "the package datasets is at {theirs}/datasets, expected it at "


@pytest.mark.parametrize(
    ("command", "cwd", "path", "expected"),
    [
        # Neither theirs nor a folder of somebody's data, which is no package where there is one.
        ("-m launch.train --help", "{ROOT}", "{theirs}", (0, "python -m launch.train ", "")),
        ("-m launch.card --help", "{theirs}/..", "{ROOT}", (0, "python -m launch.card ", "")),
        # As in a clone of theirs, or where ours is installed by a link. A program gets an ImportError.
        ("-m launch.train --help", "{theirs}", "{ROOT}", (2, "", f"error: {STRANGE}")),
        (PROGRAM, "{theirs}", "{ROOT}", (0, STRANGE, "")),
        # Both in one folder, where the files lie among each other, whichever was installed last.
        ("-m launch.train", "/", "{theirs}", (2, "", "error: {theirs}/datasets holds Hugging Face's package datasets")),
    ],
)
def test_other_packages_are_not_seen_or_are_one_line(theirs, command, cwd, path, expected):
    if cwd == "/":
        for name in ("files", "datasets", "models", "tff_algos", "launch"):
            (theirs / name).mkdir(exist_ok=True)
            shutil.copy(ROOT / name / "__init__.py", theirs / name)
        (theirs / "launch" / "runtimes").mkdir()
        for name in ("__init__.py", "arenas.py"):
            shutil.copy(ROOT / "launch" / "runtimes" / name, theirs / "launch" / "runtimes")
    code, out, err = (each.format(theirs=theirs) if isinstance(each, str) else each for each in expected)
    cwd, path = (each.format(theirs=theirs, ROOT=ROOT) for each in (cwd, path))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    arguments = ["-c", command] if command is PROGRAM else command.split()
    ended = subprocess.run([sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr.count("\n")) == (code, bool(err))
    assert ended.stdout.startswith(out) and bool(out) == bool(ended.stdout)
    assert ended.stderr.startswith(err)
    assert not err or "environment" in ended.stderr
