"""`setup.sh` with stand-ins for Python and uv: what is made when, and one line for each failure."""

import os
import pathlib
import re
import shutil

import pytest
from stand_ins import link_programs, run_script, write_program

ROOT = pathlib.Path(__file__).parents[1]
FAKE_PYTHON = """#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in
    "-m venv .venv") mkdir -p .venv/bin .venv/lib/python3.11/site-packages && cp "$0" .venv/bin/python ;;
    "-m venv "*) [ -n "$VENV_FAILS" ] && exit 1; mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    *"--target "*) mkdir -p "${9}/bin" && cp "$FAKE_UV" "${9}/bin/uv"; echo "$PIP_SAYS"; exit "$PIP_EXIT" ;;
    *get-small*) echo "$PIP_SAYS" >&2; echo "the small wheel"; exit "$GET_EXIT" ;;
    *version_info\[0]*) exit 0 ;;
    *pip*) echo "$PIP_SAYS"; exit "$PIP_EXIT" ;;
    *) exit "$PYTHON_EXIT" ;;
esac
"""

# Finds the Python that it got beside the file that $FAKE_UV names.
FAKE_UV = """#!/bin/sh
echo "uv $*" >>"$CALLS"
case "$*" in
    "python install 3.11") echo "$UV_SAYS"; exit "$UV_EXIT" ;;
    "python find --no-project 3.11") echo "${FAKE_UV%uv}managed_python" ;;
    "pip install"*) echo "$UV_SAYS"; exit "$UV_EXIT" ;;
esac
"""


@pytest.fixture
def run_setup(tmp_path):
    """A function (**environment) -> (exit code, stdout, stderr, calls) that runs `setup.sh` in a folder.

    The calls are those of Python and of uv, which is on the PATH; the temporary folder in them is "TOOLS".
    """
    project, programs = tmp_path / "project", tmp_path / "programs"
    project.mkdir()
    programs.mkdir()
    shutil.copy(ROOT / "setup.sh", project)
    (project / "setup.py").write_text("")
    for name, lock in LOCKS.items():
        (project / name).write_text(lock)
    for name in ("python3.11", "python3", "python"):
        write_program(programs / name, FAKE_PYTHON)
    uv = tmp_path / "uv"
    for path in (uv, programs / "uv"):
        write_program(path, FAKE_UV)
    write_program(tmp_path / "managed_python", FAKE_PYTHON.replace('"$PYTHON_EXIT"', "0"))

    def run(**changes):
        environment = {"PATH": f"{programs}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
        environment |= {"PIP_SAYS": "", "PIP_EXIT": "0", "GET_EXIT": "0", "PYTHON_EXIT": "0", "VENV_FAILS": ""}
        environment |= {"FAKE_UV": str(uv), "UV_SAYS": "", "UV_EXIT": "0", **changes}
        *ended, calls = run_script(project / "setup.sh", calls=tmp_path / "calls", **environment)
        said = re.sub(rf"{tmp_path}/tmp\.\w+", "TOOLS", "\n".join(calls))
        said = re.sub("(?<=-m compileall ).*", "...", said)
        return *ended, [line for line in said.splitlines() if not line.startswith("-c")]

    run.project, run.programs = project, programs
    return run


LOCKS = {
    "requirements.lock": "a==1\nb==2\n",
    "requirements-linux-aarch64.lock": "a==3\n",
    "requirements-macos-arm64.lock": "a==4\n",
    "requirements-tff.lock": "tensorflow-federated==0.87.0 \\\n    --hash=sha256:0\n",
}
GET_TFF = "launch/runtimes/tff_package.py get-small TOOLS"
TOOLS = "--require-hashes --only-binary=:all: -r TOOLS/build_tools.lock"
PACKAGES = "--require-hashes --no-build-isolation -r requirements.lock -r TOOLS/tff.lock"
PROJECT = "--no-build-isolation -e ."
BY_UV = "uv pip install --python .venv/bin/python --no-deps"
BY_PIP = "-m pip --no-input install --no-deps --no-compile"
COMPILE = "-m compileall ..."
GET_UV = "-m pip --no-input install --no-deps --only-binary=:all: --require-hashes"
GET_UV += " --target TOOLS/uv -r requirements-uv.lock"
INSTALLS = [GET_TFF, *(f"{BY_UV} {what}" for what in (TOOLS, PACKAGES, PROJECT)), COMPILE]


def test_the_environment_is_made_once_and_gets_a_changed_lock_but_no_second_tff(run_setup):
    """A TFF that is there stays, since it may have its worker."""
    exit_code, stdout, stderr, calls = run_setup()
    assert (exit_code, stderr, calls) == (0, "", ["-m venv .venv", *INSTALLS])
    assert stdout.startswith("setting up .venv: 3 packages")
    assert run_setup() == (0, "", "", [])
    for lock, installed in (("a==3\n", INSTALLS), ("a==4\n", INSTALLS[1:])):
        (run_setup.project / "requirements.lock").write_text(lock)
        assert run_setup()[3] == installed
        assert run_setup()[3] == []
        package = run_setup.project / ".venv/lib/python3.11/site-packages/tensorflow_federated-0.87.0.dist-info"
        package.mkdir(exist_ok=True)


def test_without_uv_pip_gets_that_of_the_lock_for_the_moment(run_setup, tmp_path):
    before = set(tmp_path.iterdir())
    exit_code, stdout, stderr, calls = run_setup(PATH=hide_uv(run_setup))
    assert (exit_code, stderr) == (0, "") and stdout.endswith("set-up done\n")
    assert calls == ["-m venv .venv", GET_TFF, GET_UV, *INSTALLS[1:]]
    assert set(tmp_path.iterdir()) <= before | {tmp_path / "calls"}


def test_where_uv_fails_pip_installs(run_setup):
    """As where pip alone knows the index to ask. Both are given the hashes."""
    exit_code, _, stderr, calls = run_setup(UV_EXIT="2", UV_SAYS="error: no index")
    assert (exit_code, stderr) == (0, "")
    by_uv, by_pip = ([f"{by} {what}" for what in (TOOLS, PACKAGES, PROJECT)] for by in (BY_UV, BY_PIP))
    both = [call for pair in zip(by_uv, by_pip, strict=True) for call in pair]
    assert calls == ["-m venv .venv", GET_TFF, *both, COMPILE]


def test_build_tools_come_from_the_lock_with_their_hashes(run_setup, tmp_path):
    shutil.copy(ROOT / "requirements.lock", run_setup.project)
    copied = tmp_path / "tools"
    write_program(run_setup.programs / "uv", f'#!/bin/sh\n[ -e {copied} ] || cat "${{9}}" >{copied}\n')
    run_setup()
    tools = copied.read_text()
    lines = [line for line in tools.splitlines() if not line.lstrip().startswith(("--hash=sha256:", "#"))]
    assert [line.partition("==")[0] for line in lines] == ["setuptools", "wheel"]
    assert tools.count("--hash=sha256:") >= 2


def test_an_environment_of_another_origin_is_completed_and_kept(run_setup):
    (run_setup.project / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(run_setup.programs / "python", run_setup.project / ".venv" / "bin" / "python")
    (run_setup.project / ".venv" / "mine").write_text("")
    assert run_setup(UV_EXIT="1", PIP_EXIT="1")[0] == 1
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
    ("says", "expected"),
    [
        ("after connection broken by 'NewConnectionError('", "no network: a package could not be downloaded"),
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "not the one of requirements.lock"),
        ("ERROR: something new", "ERROR: something new"),
    ],
)
def test_a_failing_pip_gives_one_line_and_is_tried_again(run_setup, says, expected):
    exit_code, _, stderr, _ = run_setup(UV_EXIT="1", UV_SAYS="error: not found", PIP_EXIT="1", PIP_SAYS=says)
    assert exit_code == 1
    assert expected in stderr
    assert stderr.count("\n") == 1
    assert says in (run_setup.project / ".venv" / "setup.log").read_text()
    assert run_setup()[3] == ["-m venv .venv", *INSTALLS]


def test_a_tff_that_cannot_be_got_is_one_line_before_anything_is_installed(run_setup):
    exit_code, _, stderr, calls = run_setup(GET_EXIT="1", PIP_SAYS="ERROR: THESE PACKAGES DO NOT MATCH THE HASHES")
    assert (exit_code, calls) == (1, ["-m venv .venv", GET_TFF])
    assert "not the one of requirements-tff.lock; fix that" in stderr and stderr.count("\n") == 1


def pretend(run_setup, system, machine):
    write_program(run_setup.programs / "uname", f'#!/bin/sh\n[ "$1" = -m ] && echo {machine} || echo {system}\n')


@pytest.mark.parametrize(
    ("system", "machine", "lock"),
    [
        ("Linux", "aarch64", "requirements-linux-aarch64.lock"),
        ("Darwin", "arm64", "requirements-macos-arm64.lock"),
        ("Darwin", "x86_64", ""),
        ("Linux", "riscv64", ""),
    ],
)
def test_each_platform_has_its_lock_and_another_machine_gets_one_line(run_setup, system, machine, lock):
    pretend(run_setup, system, machine)
    exit_code, stdout, stderr, calls = run_setup()
    if lock:
        assert (exit_code, stderr) == (0, "") and stdout.startswith("setting up .venv: 2 packages")
        assert calls == ["-m venv .venv", *(call.replace("requirements.lock", lock) for call in INSTALLS)]
    else:
        assert (exit_code, stdout, stderr.count("\n")) == (1, "", 1)
        assert stderr.endswith(f"or macOS on arm64, and this is {system} on {machine}; on Windows use WSL\n")


MISSING = (
    "set-up: no Python 3.11 found, which TensorFlow Federated 0.87 needs; "
    "install it, or name it: make setup PYTHON=<path>"
)
GETTING = "no Python 3.11 here: getting CPython 3.11 with uv\n"
UV_CALLS = ["uv python install 3.11", "uv python find --no-project 3.11"]


PROGRAMS = "sh awk cat cksum cp dirname flock grep mkdir mktemp rm sed tail touch uname"


def hide_uv(run_setup):
    """The PATH for a run without any uv: the programs that set-up calls and nothing else."""
    (run_setup.programs / "uv").unlink()
    link_programs(run_setup.programs, PROGRAMS)
    return str(run_setup.programs)


def test_without_python_3_11_the_uv_of_the_path_gets_it(run_setup):
    exit_code, stdout, stderr, calls = run_setup(PYTHON_EXIT="1")
    assert (exit_code, stderr) == (0, "")
    assert stdout.startswith(f"{GETTING}setting up .venv: 3 packages")
    assert calls == [*UV_CALLS, "-m venv .venv", *INSTALLS]
    assert run_setup(PYTHON_EXIT="1")[:3] == (0, "", "")


def test_without_uv_too_pip_gets_that_of_the_lock_once(run_setup, tmp_path):
    before = set(tmp_path.iterdir())
    exit_code, stdout, stderr, calls = run_setup(PYTHON_EXIT="1", PATH=hide_uv(run_setup))
    assert (exit_code, stderr) == (0, "")
    assert stdout.startswith(GETTING)
    assert calls == ["-m venv TOOLS/environment", GET_UV, *UV_CALLS, "-m venv .venv", *INSTALLS]
    assert set(tmp_path.iterdir()) <= before | {tmp_path / "calls"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"VENV_FAILS": "1"}, "python3 cannot make a virtual environment (Debian, Ubuntu: apt install python3-venv)"),
        (
            {"PIP_EXIT": "1", "PIP_SAYS": "after connection broken by 'NewConnectionError('"},
            "no network: a package could not be downloaded",
        ),
        (
            {"PIP_EXIT": "1", "PIP_SAYS": "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES"},
            "a downloaded package is not the one of requirements-uv.lock",
        ),
        (
            {"UV_EXIT": "2", "UV_SAYS": "error: Failed\n  cause: client error (Connect)\n  cause: dns error"},
            "no network: CPython could not be downloaded",
        ),
        (
            {"UV_EXIT": "1", "UV_SAYS": "error: Failed\n  cause: Hash mismatch for `cpython`"},
            "the downloaded CPython is not the one that uv expects",
        ),
        ({"UV_EXIT": "2", "UV_SAYS": "error: no subcommand\nhint: try again"}, "error: no subcommand"),
    ],
)
def test_a_python_that_cannot_be_got_is_one_line_with_what_to_type(run_setup, tmp_path, changes, reason):
    before = set(tmp_path.iterdir())
    exit_code, stdout, stderr, _ = run_setup(PYTHON_EXIT="1", PATH=hide_uv(run_setup), **changes)
    assert (exit_code, stdout) == (1, GETTING)
    assert stderr.startswith(MISSING) and reason in stderr
    assert stderr.count("\n") == 1
    assert not (run_setup.project / ".venv").exists()
    assert set(tmp_path.iterdir()) <= before | {tmp_path / "calls"}


def test_without_any_python_or_with_a_named_one_of_another_version_it_is_one_line(run_setup):
    assert run_setup(PYTHON_EXIT="1", PYTHON="python3") == (1, "", f"{MISSING}\n", [])
    assert not (run_setup.project / ".venv").exists()
    path = hide_uv(run_setup)
    for name in ("python3.11", "python3", "python"):
        (run_setup.programs / name).unlink()
    exit_code, _, stderr, calls = run_setup(PATH=path)
    assert (exit_code, calls) == (1, [])
    assert stderr == f"{MISSING} (error: no uv and no Python 3 to get it with)\n"
