"""What commands print: any text on any stream, and one line for what is no text."""

import io
import subprocess
import sys

import pytest

from launch.command_line import run_main
from launch.runs.errors import RunStopped
from launch.settings.flags import FlagError
from launch.terminal import show_text


def make_stream(encoding):
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding)


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", "97.0\u00a0% \u00fc \u65e5 \u2026 \\udcfc"),
        ("latin-1", "97.0\u00a0% \u00fc ? ... \\udcfc"),
        ("ascii", "97.0 % u ? ... \\udcfc"),
    ],
)
def test_what_a_stream_lacks_is_replaced(encoding, shown, monkeypatch):
    out = make_stream(encoding)
    monkeypatch.setattr(sys, "stdout", out)
    with show_text():
        print("97.0\u00a0% \u00fc \u65e5 \u2026 \udcfc", end="", flush=True)
    assert out.buffer.getvalue().decode(encoding) == shown
    assert sys.stdout is out and out.errors == "strict"


def test_commands_in_two_threads_leave_the_output_as_it_was(capsys):
    """The second begins within the first, and ends last."""
    before = sys.stdout, sys.stderr
    first, second = show_text(), show_text()
    first.__enter__()
    second.__enter__()
    print("a\x1b")
    first.__exit__(None, None, None)
    print("b\x1b")
    second.__exit__(None, None, None)
    assert (sys.stdout, sys.stderr) == before
    print("c\x1b")
    assert capsys.readouterr().out == "a\\u001b\nb\\u001b\nc\x1b\n"


def test_what_steers_a_terminal_is_written_out(capsys):
    assert run_main(lambda arguments: print("a\x1b[2J\tb\r\x9b\u202e"), lambda: "help", []) == 0
    assert capsys.readouterr().out == "a\\u001b[2J\tb\r\\u009b\\u202e\n"


@pytest.mark.parametrize(
    "error", [FlagError("a\nb\x1b[2J"), RunStopped("a\nb\x1b[2J", 1), OSError(2, "no", "a\nb\x1b[2J")]
)
def test_an_error_is_one_line_whatever_is_in_it(error, capsys):
    def run(arguments):
        raise error

    assert run_main(run, lambda: "help", []) in (1, 2)
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and err[:-1].isprintable() and "a\\u000ab\\u001b[2J" in err


def test_an_argument_that_is_no_text_is_one_line(capsys):
    assert run_main(lambda arguments: 1 / 0, lambda: "help", ["--run_dir=j\udcfc"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: --run_dir=j\\udcfc: not UTF-8; expected ") and err.count("\n") == 1


def test_a_name_of_a_file_that_is_no_text_is_one_line(capsys):
    assert run_main(lambda arguments: "j\udcfc".encode(), lambda: "help", []) == 2
    assert capsys.readouterr().err.startswith("error: j\\udcfc: not UTF-8; expected ")
    with pytest.raises(UnicodeEncodeError):  # a mistake of ours keeps its traceback
        run_main(lambda arguments: "\u00fc".encode("ascii"), lambda: "help", [])


@pytest.mark.parametrize("closed", ["", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_without_streams_a_command_ends_as_with_them(closed, tmp_path):
    """What it opens is not taken for a stream: its file holds what was written to it alone."""
    script = tmp_path / "command.py"
    script.write_text(
        "import sys\n"
        "from launch.command_line import run_main\n"
        "def run(arguments):\n"
        "    with open(arguments[0], 'w') as file:\n"
        "        print('to a stream', flush=True)\n"
        "        print('to the other', file=sys.stderr, flush=True)\n"
        "        file.write(f'{file.fileno() > 2}')\n"
        "sys.exit(run_main(run, str))\n"
    )
    command = f'"{sys.executable}" "{script}" "{tmp_path / "file"}" {closed}'
    ended = subprocess.run(
        ["sh", "-c", command], env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, timeout=60
    )
    assert ended.returncode == 0 and b"Traceback" not in ended.stderr
    assert (tmp_path / "file").read_text() == "True"
