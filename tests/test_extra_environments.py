"""What `make` sets up beside `.venv`: an environment once for each lock, packages of npm, a line for each failure."""

import pathlib
import shutil

import pytest
from stand_ins import link_programs, run_script, write_program

ROOT = pathlib.Path(__file__).parents[1]
PROGRAM = '#!/bin/sh\necho "$*" >>"$CALLS"\n'
FAKE_NPM = PROGRAM + 'echo "$SAYS"; exit "$EXIT"\n'
FAKE_PYTHON = PROGRAM + (
    'case "$*" in\n"-m venv"*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;\n'
    '*pip*) echo "$SAYS"; exit "$EXIT" ;;\nesac\n'
)

FAKE_PYTHON_WITHOUT_WORKER = PROGRAM + 'case "$*" in -c*) exit 1 ;; *) echo "$SAYS"; exit "$EXIT" ;; esac\n'


@pytest.fixture
def project(tmp_path):
    """A folder with what a set-up needs, and (script, *arguments, says, code) -> (exit code, stderr, calls) of it.

    Stand-ins for Python and npm note what they are called with, say what they are told to, and end with that code.
    """
    folder, programs = tmp_path / "project", tmp_path / "programs"
    for script, needs in {
        "tests/litert/check.sh": (),
        "tests/kotlin/check.sh": (),
        "tests/live/check.sh": (),
        "launch/runtimes/setup_tff.sh": (),
        "launch/tflite/web/set_up.sh": ("package.json", "package-lock.json"),
    }.items():
        (folder / script).parent.mkdir(parents=True, exist_ok=True)
        for name in (pathlib.Path(script).name, *needs):
            shutil.copy((ROOT / script).with_name(name), (folder / script).with_name(name))
    shutil.copy(ROOT / "extra_environment.sh", folder)
    for name in ("litert", "live", "tff"):
        (folder / f"requirements-{name}.lock").write_text("a==1\n")
    for path, program in ((folder / ".venv" / "bin" / "python", FAKE_PYTHON), (programs / "npm", FAKE_NPM)):
        write_program(path, program)
    link_programs(programs, "sh cat cp dirname flock grep head mkdir rm cksum tail mktemp uname")

    def run(script, *arguments, says="", code=0, **environment):
        told = {"SAYS": says, "EXIT": str(code), "TMPDIR": str(tmp_path), "PATH": str(programs), **environment}
        return run_script(folder / script, *arguments, calls=tmp_path / "calls", **told)

    run.folder, run.programs = folder, programs
    return run


VENV = "-m venv .venv-litert"
PIP = "-m pip --no-input install --no-deps --require-hashes -r requirements-litert.lock"
MODELS = "build/litert_models"
CHECKS = [
    "-m launch.export --run_dir=runs/x --on_device_training=full --save_test_set",
    "tests/litert/check_export.py runs/x/export",
]


def test_an_environment_is_made_once_for_each_lock(project):
    script = "tests/litert/check.sh"
    code, _, error, calls = project(script, "runs/x", says="ERROR: something new", code=1)
    assert (code, calls) == (1, [VENV, PIP]) and "ERROR: something new" in error and error.count("\n") == 1
    assert project(script, "runs/x")[2:] == ("", [VENV, PIP, *CHECKS])
    assert project(script, "runs/x")[2:] == ("", CHECKS)
    (project.folder / "requirements-litert.lock").write_text("a==2\n")
    calls = project(script)[3]  # without a run, one is trained
    assert calls[:2] == [VENV, PIP] and "--algo=fedsikd --quantize=qat --rounds=3" in calls[2]
    assert calls[5:] == [f"tests/litert/make_models.py {MODELS}", f"tests/litert/check_models.py {MODELS}"]


@pytest.mark.parametrize(
    ("arguments", "calls"),
    [
        (
            ["--only=a,b"],
            [f"tests/litert/make_models.py {MODELS} --only=a,b", f"tests/litert/check_models.py {MODELS}"],
        ),
        (["--write"], [f"tests/litert/make_models.py {MODELS}", f"tests/litert/check_models.py {MODELS} --write"]),
        (
            ["--only=a", "--write"],
            "test-litert: --write: it is of the table of all models, expected no --only beside it",
        ),
        (["--ony=a"], "test-litert: --ony=a: expected --only=<models> or --write"),
    ],
)
def test_some_models_are_checked_with_litert_alone(project, arguments, calls):
    code, _, error, called = project("tests/litert/check.sh", "", *arguments)
    if isinstance(calls, str):
        assert (code, error, called) == (2, calls + "\n", [])
        return
    assert (code, error, called[2:]) == (0, "", calls)
    error = project("tests/litert/check.sh", "runs/x", *arguments)[2]
    assert error == f"test-litert: {arguments[0]}: it is of the models, expected no RUN_DIR beside it\n"


def test_clients_of_live_rounds_have_an_environment_of_their_own_and_the_server_has_that_of_the_project(project):
    pip = PIP.replace("litert", "live")
    tests = "-m pytest tests/live -k kills"
    assert project("tests/live/check.sh", "-k", "kills")[2:] == ("", ["-m venv .venv-live", pip, tests])
    assert project("tests/live/check.sh", "-k", "kills")[2:] == ("", [tests])


def test_what_needs_java_says_that_it_is_skipped(project):
    code, out, _, calls = project("tests/kotlin/check.sh")
    assert (code, calls) == (0, []) and out.startswith("test-kotlin: SKIPPED, nothing was compiled: there is no java")


def test_tffs_worker_is_got_once_by_the_python_that_wants_it_and_a_failure_is_one_line(project, tmp_path):
    script, environment = "launch/runtimes/setup_tff.sh", tmp_path / "mine"
    python = environment / "bin" / "python"
    write_program(python, FAKE_PYTHON_WITHOUT_WORKER)
    pretend(project, "Linux", "x86_64")
    code, out, error, [asked, got] = project(script, PYTHON=str(python))
    assert (code, error) == (0, "") and asked.startswith("-c") and "get-worker" in got
    assert out == "getting TFF's worker: 72 MB to download, 301 MB on disk\n"
    code, _, error, _ = project(script, PYTHON=str(python), code=1, says="after ... NewConnectionError('")
    assert code == 1 and error.count("\n") == 1
    assert error.startswith("setup-tff: no network: a package could not be downloaded; fix that")
    assert error.endswith(f"(whole log: {environment}/setup_tff.log)\n")
    assert not list(tmp_path.glob("tmp.*"))
    python.write_text(PROGRAM)  # says that it is there
    assert project(script, PYTHON=str(python))[:3] == (0, "", "")


def pretend(project, system, machine):
    (project.programs / "uname").unlink()
    write_program(project.programs / "uname", f'#!/bin/sh\n[ "$1" = -m ] && echo {machine} || echo {system}\n')


def test_there_is_no_worker_for_other_machines(project):
    pretend(project, "Darwin", "arm64")
    (project.folder / ".venv" / "bin" / "python").write_text(FAKE_PYTHON_WITHOUT_WORKER)
    code, _, error, _ = project("launch/runtimes/setup_tff.sh")
    assert (code, error) == (1, "setup-tff: TFF's worker runs on x86-64 Linux only, and this is Darwin on arm64\n")


INSTALL = "ci --prefix .web --ignore-scripts --no-audit --no-fund"


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ("npm error code EAI_AGAIN", "no network: a package could not be downloaded"),
        ("npm error code EINTEGRITY", "not the one of launch/tflite/web/package-lock.json"),
        ("npm warn old\nnpm error something new", "npm error something new"),
    ],
)
def test_a_failing_npm_is_one_line_and_tried_again(project, says, expected):
    script = "launch/tflite/web/set_up.sh"
    code, _, error, _ = project(script, says=says, code=1)
    assert code == 1 and expected in error and error.startswith("web: ") and error.count("\n") == 1
    assert project(script)[2:] == ("", [INSTALL])
    assert project(script) == (0, "", "", [])
    (project.programs / "npm").unlink()
    shutil.rmtree(project.folder / ".web")
    assert "npm is missing; install Node.js 20 or newer" in project(script)[2]


@pytest.mark.parametrize("folder", ["launch/tflite/web", "tests/web"])
def test_locks_of_npm_name_no_address(folder):
    assert "://" not in (ROOT / folder / "package-lock.json").read_text()
