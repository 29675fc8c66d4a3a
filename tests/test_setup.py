"""`setup.sh` with a stand-in for Python: what is made when, and one line for each failure."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[1]
FAKE_PYTHON = """#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in
    "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    *pip*) echo "$PIP_SAYS"; exit "$PIP_EXIT" ;;
    *) exit "$PYTHON_EXIT" ;;
esac
"""


@pytest.fixture
def run_setup(tmp_path):
    """A function (**environment) -> (exit code, stdout, stderr, calls of Python) that runs `setup.sh` in a folder."""
    project, programs = tmp_path / "project", tmp_path / "programs"
    project.mkdir()
    programs.mkdir()
    shutil.copy(ROOT / "setup.sh", project)
    (project / "setup.py").write_text("")
    (project / "requirements.lock").write_text("a==1\nb==2\n")
    for name in ("python3.11", "python3", "python"):
        write_program(programs / name, FAKE_PYTHON)

    def run(**changes):
        calls = tmp_path / "calls"
        calls.write_text("")
        environment = {"PATH": f"{programs}:{os.environ['PATH']}", "CALLS": str(calls), "PIP_SAYS": ""}
        environment |= {"PIP_EXIT": "0", "PYTHON_EXIT": "0", **changes}
        command = ["sh", str(project / "setup.sh")]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        made = [line for line in calls.read_text().splitlines() if not line.startswith("-c")]
        return ended.returncode, ended.stdout, ended.stderr, made

    run.project, run.programs = project, programs
    return run


def write_program(path: pathlib.Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


INSTALLS = [
    "-m pip --no-input install --no-deps --require-hashes -r requirements.lock",
    "-m pip --no-input install --no-deps --no-build-isolation -e .",
]


def test_the_environment_is_made_once(run_setup):
    exit_code, stdout, stderr, calls = run_setup()
    assert (exit_code, stderr, calls) == (0, "", ["-m venv .venv", *INSTALLS])
    assert stdout.startswith("setting up .venv: 2 packages")
    assert run_setup() == (0, "", "", [])


def test_a_changed_lock_is_installed_into_the_same_environment(run_setup):
    run_setup()
    (run_setup.project / "requirements.lock").write_text("a==3\n")
    assert run_setup()[3] == INSTALLS
    assert run_setup()[3] == []


def test_an_environment_of_another_origin_is_completed_and_kept(run_setup):
    (run_setup.project / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(run_setup.programs / "python", run_setup.project / ".venv" / "bin" / "python")
    (run_setup.project / ".venv" / "mine").write_text("")
    assert run_setup(PIP_EXIT="1")[0] == 1
    assert run_setup()[3] == INSTALLS
    assert (run_setup.project / ".venv" / "mine").exists()


def test_a_killed_set_up_is_made_anew(run_setup):
    run_setup()
    (run_setup.project / ".venv" / "setup_unfinished").write_text("")
    (run_setup.project / ".venv" / "half").write_text("")
    (run_setup.project / "setup.py").write_text("# changed")
    assert run_setup()[3] == ["-m venv .venv", *INSTALLS]
    assert not (run_setup.project / ".venv" / "half").exists()


@pytest.mark.parametrize(
    ("pip_says", "expected"),
    [
        ("after connection broken by 'NewConnectionError('", "no network: a package could not be downloaded"),
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "not the one of requirements.lock"),
        ("ERROR: something new", "ERROR: something new"),
    ],
)
def test_a_failing_pip_gives_one_line_and_is_tried_again(run_setup, pip_says, expected):
    exit_code, _, stderr, _ = run_setup(PIP_EXIT="1", PIP_SAYS=pip_says)
    assert exit_code == 1
    assert expected in stderr
    assert stderr.count("\n") == 1
    assert pip_says in (run_setup.project / ".venv" / "setup.log").read_text()
    assert run_setup()[3] == ["-m venv .venv", *INSTALLS]


def test_another_machine_gets_one_line(run_setup):
    write_program(run_setup.programs / "uname", '#!/bin/sh\n[ "$1" = -m ] && echo arm64 || echo Darwin\n')
    exit_code, stdout, stderr, _ = run_setup()
    assert (exit_code, stdout) == (1, "")
    assert stderr.endswith("runs on x86-64 Linux only, and this is Darwin on arm64\n")
    assert stderr.count("\n") == 1


def test_another_python_gets_one_line(run_setup):
    exit_code, stdout, stderr, _ = run_setup(PYTHON_EXIT="1")
    assert (exit_code, stdout) == (1, "")
    assert stderr.startswith("set-up: no Python 3.11 found")
    assert stderr.count("\n") == 1
    assert not (run_setup.project / ".venv").exists()
