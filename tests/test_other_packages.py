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
    """A folder as of an environment in which their package is installed."""
    package = tmp_path / "theirs" / "datasets"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from datasets.arrow_dataset import Dataset\n")
    (package / "arrow_dataset.py").write_text("class Dataset: pass\n")
    return package.parent


def run(*arguments, cwd, path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)


def check_refused(ended, *words):
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("error: ") and ended.stderr.count("\n") == 1
    assert all(word in ended.stderr for word in words)


def test_commands_of_the_checkout_do_not_see_theirs_nor_a_folder_of_files_of_that_name(theirs, tmp_path):
    """Such as where somebody keeps her data: a folder without modules is no package where there is one."""
    (tmp_path / "datasets").mkdir()
    for ended in (
        run("-m", "launch.train", "--help", cwd=ROOT, path=[theirs]),
        run("-m", "launch.card", "--help", cwd=tmp_path, path=[ROOT]),
    ):
        assert (ended.returncode, ended.stderr) == (0, "")


def test_theirs_before_ours_is_one_line(theirs):
    """As in a clone of theirs, or in an environment that has ours by a link. A program gets an ImportError."""
    ended = run("-m", "launch.train", "--help", cwd=theirs, path=[ROOT])
    check_refused(ended, f"the package datasets is at {theirs / 'datasets'}", "start Python from another folder")
    ended = run("-c", "try: import launch\nexcept ImportError as error: print(error)", cwd=theirs, path=[ROOT])
    assert ended.stdout.startswith("the package datasets is at ") and not ended.stderr


def test_both_installed_into_one_folder_are_one_line(theirs, tmp_path):
    """The files lie among each other then, whichever was installed last."""
    for name in ("files", "datasets", "models", "tff_algos", "launch"):
        (theirs / name).mkdir(exist_ok=True)
        shutil.copy(ROOT / name / "__init__.py", theirs / name)
    check_refused(
        run("-m", "launch.train", cwd=tmp_path, path=[theirs]),
        *("holds Hugging Face's package datasets as well as the suite's", "an environment of its own"),
    )
