"""`make setup-track`: what is made when, and one line for a failure, with a stand-in for Python."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[3]
FAKE_PYTHON = """#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    *pip*) echo "$PIP_SAYS"; exit "$PIP_EXIT" ;;
esac
"""


@pytest.fixture
def run_setup(tmp_path):
    """A function (**environment) -> (exit code, stderr, calls of Python) that runs the script in a folder."""
    project = tmp_path / "project"
    (project / "launch" / "trackers").mkdir(parents=True)
    (project / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "launch" / "trackers" / "set_up.sh", project / "launch" / "trackers")
    shutil.copy(ROOT / "extra_environment.sh", project)
    python = project / ".venv" / "bin" / "python"
    python.write_text(FAKE_PYTHON)
    python.chmod(0o755)
    (project / "requirements-track.lock").write_text("mlflow==3\n")

    def run(**changes):
        calls = tmp_path / "calls"
        calls.write_text("")
        environment = {"PATH": os.environ["PATH"], "CALLS": str(calls), "PIP_SAYS": "", "PIP_EXIT": "0", **changes}
        command = ["sh", str(project / "launch" / "trackers" / "set_up.sh")]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        return ended.returncode, ended.stderr, calls.read_text().splitlines()

    run.project = project
    return run


def test_the_environment_is_made_once_and_anew_from_another_lock(run_setup):
    install = "-m pip --no-input install --no-deps --require-hashes -r requirements-track.lock"
    made = (0, "", ["-m venv .venv-track", install])
    assert run_setup() == made
    assert run_setup() == (0, "", [])
    (run_setup.project / "requirements-track.lock").write_text("mlflow==4\n")
    assert run_setup() == made


def test_a_failure_is_one_line_and_does_not_count_as_done(run_setup):
    exit_code, errors, _ = run_setup(PIP_EXIT="1", PIP_SAYS="No space left on device")
    assert exit_code == 1 and errors.count("\n") == 1
    assert errors.startswith("setup-track: the disk is full; about 1 GB are needed; fix that and run make setup-track")
    assert not (run_setup.project / ".venv-track" / "setup_done").exists()
