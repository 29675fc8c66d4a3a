"""What commands print: any text on any stream, and one line for what is no text."""

import io
import subprocess
import sys

import pytest

from launch.command_line import run_main
from launch.console.terminal import show_text
from launch.runs.errors import RunStopped
from launch.settings.flags import FlagError


@pytest.mark.parametrize(("encoding", "shown"), [("utf-8", "\u00fc \u65e5"), ("latin-1", "\u00fc \\u65e5")])
def test_what_steers_and_what_a_stream_lacks_is_written_out(encoding, shown, monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", out)
    with show_text():
        print("\u00fc \u65e5 \udcfc\x1b[2J\t\u202e", end="\r", flush=True)
    assert out.buffer.getvalue().decode(encoding) == f"{shown} \\udcfc\\u001b[2J\t\\u202e\r"
    assert sys.stdout is out and out.errors == "strict"


def fail(error):
    raise error


@pytest.mark.parametrize(
    ("run", "arguments", "exit_code", "shown"),
    [
        (lambda _: fail(FlagError("a\nb\x1b[2J")), [], 2, "error: a\\u000ab\\u001b[2J"),
        (lambda _: fail(RunStopped("a\nb\x1b[2J", 1)), [], 1, "a\\u000ab\\u001b[2J"),
        (lambda _: fail(OSError(2, "no", "a\nb\x1b[2J")), [], 1, "error: a\\u000ab\\u001b[2J"),
        (lambda _: 1 / 0, ["--run_dir=j\udcfc"], 2, "error: --run_dir=j\\udcfc: not UTF-8; expected "),
        (lambda _: "j\udcfc".encode(), [], 2, "error: j\\udcfc: not UTF-8; expected "),
    ],
)
def test_an_error_is_one_line_whatever_is_in_it(run, arguments, exit_code, shown, capsys):
    assert run_main(run, str, arguments) == exit_code
    err = capsys.readouterr().err
    assert err.startswith(shown) and err.count("\n") == 1 and err[:-1].isprintable()


def test_a_mistake_of_ours_keeps_its_traceback():
    with pytest.raises(UnicodeEncodeError):
        run_main(lambda arguments: "\u00fc".encode("ascii"), str, [])


@pytest.mark.parametrize("closed", ["", ">&-", "2>&-", "<&- >&- 2>&-"])
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
    environment = {"PYTHONPATH": ":".join(sys.path)}
    ended = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, timeout=60)
    assert ended.returncode == 0 and b"Traceback" not in ended.stderr
    assert (tmp_path / "file").read_text() == "True"
