"""How commands end: one line and an exit code, whatever happens, and silence where nobody reads."""

import errno
import importlib
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

from datasets.errors import DatasetError
from launch.command_line import (
    COMMANDS,
    format_command_help,
    list_fields,
    name_flag,
    put_suggestion_first,
    run_main,
    take_run_dir,
)
from launch.runs.errors import RunStopped
from launch.runtimes.runtime import check_temporary_folder
from launch.settings.errors import FlagError
from launch.settings.flag_fields import FlagField
from tff_algos.settings.config_fields import Setting

ROOT = pathlib.Path(__file__).parents[2]
NAME = pathlib.Path(__file__).name


def test_what_was_probably_meant_stands_right_behind_what_was_typed():
    for message, said in {
        "--rouns: unknown flag; did you mean --rounds?": "--rouns: did you mean --rounds? unknown flag",
        "a.csv: --x=y: a or b; c; did you mean a?": "a.csv: --x=y: did you mean a? a or b; c",
        "--model=m:f: there is none; did you mean g?": "--model=m:f: did you mean g? there is none",
        "--run_dir=my runs: no run; did you mean b?": "--run_dir=my runs: did you mean b? no run",
        "my a.csv: x=y: no such column; did you mean z?": "my a.csv: x=y: did you mean z? no such column",
        "no such thing; did you mean z?": "no such thing; did you mean z?",
        "--x: failed; did you mean a? (m.py, line 1)": "--x: failed; did you mean a? (m.py, line 1)",
        "--rounds=0: expected at least 1": "--rounds=0: expected at least 1",
    }.items():
        assert put_suggestion_first(message) == said


def end_with(error, arguments=()):
    def run(arguments):
        raise error

    return run_main(run, lambda: "help", arguments)


LINE = end_with.__code__.co_firstlineno + 2  # where `run` raises
STEERING, SHOWN = "a\nb\x1b[2J", "a\\u000ab\\u001b[2J"
NOT_UTF8 = "not UTF-8; expected arguments and names of files in UTF-8, with PYTHONUTF8=1 where the locale is not"


@pytest.mark.parametrize(
    ("error", "exit_code", "line"),
    [
        (FlagError("--x=1: expected 2"), 2, "error: --x=1: expected 2\n"),
        (
            DatasetError("no label", {"label_column": ""}),
            2,
            "error: no label; python -m launch.inspect names all that is wrong at once\n",
        ),
        (DatasetError("num_clients=0: expected 1 to 9"), 2, "error: --num_clients=0: expected 1 to 9\n"),
        (DatasetError("/a/b=c: damaged"), 2, "error: /a/b=c: damaged\n"),
        (FlagError(STEERING), 2, f"error: {SHOWN}\n"),
        (RunStopped(STEERING, 1), 1, f"{SHOWN}\n"),
        (KeyboardInterrupt(), 130, "stopped\n"),
        (OSError(28, "No space left on device", STEERING), 1, f"error: {SHOWN}: No space left on device\n"),
        (OSError("two\nlines"), 1, "error: two lines\n"),
        (BrokenPipeError(32, "Broken pipe"), 1, ""),
        (
            MemoryError("Unable to allocate 5.7 GiB for an array with shape (3,)"),
            1,
            "error: this machine has not enough memory for 5.7 GiB more; use fewer or smaller examples, or a larger "
            "machine\n",
        ),
        (UnicodeEncodeError("utf-8", "j\udcfc", 1, 2, "surrogates not allowed"), 2, f"error: j\\udcfc: {NOT_UTF8}\n"),
    ],
)
def test_an_error_is_one_line_whatever_is_in_it(error, exit_code, line, capsys):
    assert end_with(error) == exit_code
    assert capsys.readouterr() == ("", line)


def test_an_argument_that_is_no_text_is_named_before_anything_runs(capsys):
    assert end_with(AssertionError("it runs"), ["--run_dir=j\udcfc"]) == 2
    assert capsys.readouterr() == ("", f"error: --run_dir=j\\udcfc: {NOT_UTF8}\n")


def test_help_of_a_flag_that_may_be_repeated_is_one_line():
    field = FlagField("files", Setting("Files.", repeated=True), "a", tuple)
    lines = format_command_help("usage", [field]).splitlines()
    assert lines[:4] == ["usage", "", "  --files [a]", "      Files. May be given several times."]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_a_line_for_each_flag(name, capsys):
    command = importlib.import_module(f"launch.{name}")
    assert command.main(["--helpfull"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"python -m launch.{name} ")
    assert all(
        f"  --{field.name}" in shown for field in (list_fields(command.Flags) if hasattr(command, "Flags") else ())
    )


@pytest.mark.parametrize("run", [name_flag, lambda arguments: "\u00fc".encode("ascii")])
def test_a_bug_keeps_its_traceback(run):
    with pytest.raises((TypeError, UnicodeEncodeError)):
        run_main(run, str, [])


@pytest.mark.parametrize(("error", "line"), [(SystemExit(0), "the command was ended by a call of sys.exit"),
                                             (ZeroDivisionError("no luck"), "ZeroDivisionError: no luck")])  # fmt: skip
def test_an_error_of_own_code_is_a_line_with_its_place_and_the_file_of_its_traceback(
    error, line, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert end_with(error) == 2
    start, _, path = capsys.readouterr().err.strip().partition("; traceback: ")
    assert start == f"error: {line} ({NAME}, line {LINE}: `raise error`)"
    assert "in run\n    raise error\n" in pathlib.Path(path).read_text()


def test_debug_prints_the_traceback_and_a_cache_that_cannot_be_written_says_so(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    def run(arguments):
        assert arguments == ["--x=1"]
        return 1 / 0

    assert run_main(run, str, ["--x=1", "--debug"]) == 2
    *traceback, line = capsys.readouterr().err.splitlines()
    assert traceback[0].startswith("Traceback") and line.endswith("; --debug prints the traceback")


def test_help_that_nobody_reads_is_no_error_to_speak_of_and_that_on_a_full_disk_is_one_line():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "launch.train", "--help"]
    with os.fdopen(writer, "w") as pipe, open("/dev/full", "w") as full:
        ended = [
            subprocess.run(command, cwd=ROOT, stdout=out, stderr=subprocess.PIPE, text=True) for out in (pipe, full)
        ]
    assert [each.returncode for each in ended] == [1, 1]
    assert [each.stderr for each in ended] == ["", "error: No space left on device\n"]


def test_another_python_is_told_to_take_the_environment():
    done = subprocess.run(
        [sys.executable, "-S", "-m", "launch.train", "--help"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stderr == "error: not the project's environment; run: make setup && . .venv/bin/activate\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["RUN"], ["--run_dir=RUN"]),
        (["RUN", "--model=a"], ["--run_dir=RUN", "--model=a"]),
        (["--model=a", "RUN"], ["--model=a", "--run_dir=RUN"]),
        (["nowhere/x"], ["--run_dir=nowhere/x"]),  # the error then says that there is no run
        (["--model=a", "nowhere/x"], ["--model=a", "nowhere/x"]),
        (["--model", "RUN"], ["--model", "RUN"]),  # may be the flag's value
        (["--run_dir=b", "RUN"], ["--run_dir=b", "RUN"]),
        (["--run_dir", "RUN"], ["--run_dir", "RUN"]),
        (["--", "RUN"], ["--", "RUN"]),
        ([], []),
    ],
)
def test_a_runs_folder_may_stand_alone(tmp_path, arguments, expected):
    place = str(tmp_path)
    found = take_run_dir([argument.replace("RUN", place) for argument in arguments])
    assert found == [argument.replace("RUN", place) for argument in expected]


def test_a_full_temporary_folder_is_named_before_tensorflow_needs_it(monkeypatch, capsys, tmp_path):
    def fail(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    check_temporary_folder()
    monkeypatch.setattr(tempfile, "TemporaryFile", fail)
    assert run_main(lambda arguments: check_temporary_folder(), str, []) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {tmp_path}") and error.endswith(": No space left on device\n")
