"""The check of `make test-web` and the set-up of `make web`, with made-up answers and a stand-in for npm."""

import importlib.util
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

from launch.runs.tables import write_json

ROOT = pathlib.Path(__file__).parents[2]
FAKE_NPM = """#!/bin/sh
echo "$*" >>"$CALLS"
echo "$NPM_SAYS"
exit "$NPM_EXIT"
"""


@pytest.fixture(scope="module")
def check_page():
    spec = importlib.util.spec_from_file_location("check_page", ROOT / "tests" / "web" / "check_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run_check(check_page, tmp_path, capsys):
    """(classes, problems) -> (exit code, stdout, stderr) of a page that answered so; 4 of 200 examples are class 1."""
    y = np.zeros(200, np.int32)
    y[::50] = 1
    np.savez(tmp_path / "test_set.npz", y=y, **{"global.int8.tflite": y})
    sample = list(range(0, 200, 2))

    def run(changes=(), problems=(), margin=0.5, labels=None):
        logits = np.stack([1 - y[sample], y[sample]], axis=1).astype(float)
        for place in changes:
            logits[place] = [0, margin] if y[sample][place] == 0 else [0, 0]
        answers = {"global": {"int8": {"classes": logits.argmax(axis=1).tolist(), "logits": logits.tolist()}}}
        visit = {
            "name": "file",
            "build": "compat",
            "strokes": [],
            "trainings": [],
            "answers": answers,
            "problems": list(problems),
        }
        visit["sample"] = {"indices": sample, "labels": labels or y[sample].tolist()}
        write_json(tmp_path / "answers.json", {"size": 1, "visits": [visit]})
        exit_code = check_page.main([str(tmp_path), str(tmp_path / "answers.json")])
        captured = capsys.readouterr()
        return exit_code, captured.out, captured.err

    return run


def test_a_page_that_answers_as_the_report_passes(run_check):
    exit_code, out, err = run_check()
    assert (exit_code, err) == (0, "")
    assert "100 of 100 as in the report, 100 right (report 100)" in out


def test_one_other_answer_of_100_is_listed_and_two_are_too_many(run_check):
    exit_code, out, _ = run_check(changes=[1])
    assert exit_code == 0
    assert "test example 2: 1, in the report 0; logits 0.5 apart" in out
    assert "99 of 100 as in the report" in out
    exit_code, _, err = run_check(changes=[1, 2])
    assert (exit_code, err) == (1, "WRONG file: global.int8.tflite: 2 of 100 classes are not the report's\n")


def test_a_tie_is_named(run_check):
    exit_code, out, _ = run_check(changes=[25])
    assert exit_code == 0
    assert "test example 50: 0, in the report 1; a tie" in out


def test_what_the_browser_complained_of_fails(run_check):
    assert run_check(problems=["request: http://127.0.0.1/x"])[0] == 1
    assert "the labels of the examples are not those of the test set" in run_check(labels=[1] * 100)[2]


def test_a_folder_that_cannot_be_checked_is_one_line(check_page, tmp_path, capsys):
    assert check_page.main([str(tmp_path), str(tmp_path / "answers.json")]) == 2
    assert check_page.main([]) == 2
    assert capsys.readouterr().err.count("\n") == 2


@pytest.fixture
def run_setup(tmp_path):
    """(**environment) -> (exit code, stdout, stderr, calls of npm) of `set_up.sh` in a copy of what it needs."""
    project, programs = tmp_path / "project", tmp_path / "programs"
    folder = project / "launch" / "tflite" / "web"
    folder.mkdir(parents=True)
    programs.mkdir()
    for name in ("set_up.sh", "package.json", "package-lock.json"):
        shutil.copy(ROOT / "launch" / "tflite" / "web" / name, folder)
    shutil.copy(ROOT / "extra_environment.sh", project)
    for name in ("sh", "cat", "cp", "dirname", "flock", "grep", "head", "mkdir", "rm", "sha256sum", "tail"):
        (programs / name).symlink_to(shutil.which(name))

    def run(has_npm=True, **changes):
        calls = tmp_path / "calls"
        calls.write_text("")
        (programs / "npm").unlink(missing_ok=True)
        if has_npm:
            (programs / "npm").write_text(FAKE_NPM)
            (programs / "npm").chmod(0o755)
        environment = {"PATH": str(programs), "CALLS": str(calls), "NPM_SAYS": "", "NPM_EXIT": "0", **changes}
        command = [shutil.which("sh"), str(folder / "set_up.sh")]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        return ended.returncode, ended.stdout, ended.stderr, calls.read_text().splitlines()

    run.project = project
    return run


INSTALL = "ci --prefix .web --ignore-scripts --no-audit --no-fund"


def test_the_runtime_is_installed_once_by_its_lock(run_setup):
    exit_code, out, err, calls = run_setup()
    assert (exit_code, err, calls) == (0, "", [INSTALL])
    assert out.startswith("setting up .web by npm: 2 packages")
    lock = run_setup.project / "launch" / "tflite" / "web" / "package-lock.json"
    assert (run_setup.project / ".web" / "package-lock.json").read_text() == lock.read_text()
    assert run_setup() == (0, "", "", [])
    lock.write_text(lock.read_text() + "\n")
    assert run_setup()[3] == [INSTALL]


@pytest.mark.parametrize(
    ("npm_says", "expected"),
    [
        ("npm error code EAI_AGAIN", "no network: a package could not be downloaded"),
        ("npm error code EINTEGRITY", "not the one of launch/tflite/web/package-lock.json"),
        ("npm error code ENOSPC", "the disk is full; about 0.1 GB"),
        ("npm warn old\nnpm error something new", "npm error something new"),
    ],
)
def test_a_failing_npm_is_one_line_and_tried_again(run_setup, npm_says, expected):
    exit_code, _, err, _ = run_setup(NPM_EXIT="1", NPM_SAYS=npm_says)
    assert exit_code == 1
    assert expected in err and err.startswith("web: ") and err.count("\n") == 1
    assert run_setup()[3] == [INSTALL]


def test_without_npm_one_line_says_what_to_install(run_setup):
    exit_code, _, err, _ = run_setup(has_npm=False)
    assert exit_code == 1
    assert "npm is missing; install Node.js 20 or newer" in err and err.count("\n") == 1


@pytest.mark.parametrize("folder", ["launch/tflite/web", "tests/web"])
def test_locks_of_npm_name_no_address(folder):
    assert "://" not in (ROOT / folder / "package-lock.json").read_text()
