"""Text of users where it is shown: nothing steers a terminal, a spreadsheet or a page, and names stay readable."""

import csv
import io
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from launch.command_line import run_main
from launch.console.shown_text import decode_cell, encode_cell, escape_hidden, escape_lines, escape_markdown, show_text
from launch.runs.errors import RunStopped
from launch.runs.tables import format_cell, iterate_records, iterate_rows, write_table
from launch.settings.flags import FlagError

EVERY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ward 1/2 \u00fc \N{GRINNING FACE} <b>", "ward 1/2 \u00fc \N{GRINNING FACE} <b>"),
        ("\x1b]52;c;x\x07", "\\u001b]52;c;x\\u0007"),
        ("a\nb\tc\x9b\x7f", "a\\u000ab\\u0009c\\u009b\\u007f"),
        ("a\u202eb\u200f\u2066\ufeff", "a\\u202eb\\u200f\\u2066\\ufeff"),
        ("\udcfc\u2028\U000e0041", "\\udcfc\\u2028\\U000e0041"),
        ("\u0645\u06cc\u200c\u062e \U0001f468\u200d\U0001f469", "\u0645\u06cc\u200c\u062e \U0001f468\u200d\U0001f469"),
    ],
)
def test_what_hides_or_steers_is_written_out(text, shown):
    assert escape_hidden(text) == shown


def test_lines_of_text_keep_their_breaks():
    assert escape_lines("a\tb\n\x1b[31mc\x00\r\b\n") == "a\tb\n\\u001b[31mc\\u0000\r\b\n"


@given(EVERY_TEXT)
@example("'=x")
@example("''@")
@example("\\u001b")
@example("\\\\u0041\x1b")
def test_a_cell_gives_its_text_back_and_is_no_formula(text):
    cell = encode_cell(text)
    assert decode_cell(cell) == text
    assert cell[:1] not in ("=", "+", "-", "@", "\t", "\r", "\uff1d") and len((cell + "|").splitlines()) == 1


@pytest.mark.parametrize("text", ["client_7", "a, b", "it's", "'hello'", "C:\\data", "007", "1e5", "\u00fc"])
def test_names_without_a_meaning_stay_as_they_are(text):
    assert encode_cell(text) == text


def test_numbers_stay_numbers_in_a_table_and_names_stay_names(tmp_path):
    names = ["-5", "=cmd()", "@x", "a\u202eb", "plain"]
    write_table(tmp_path / "t.csv", ["client", "=loss"], [[format_cell(name), format_cell(-0.5)] for name in names])
    written = (tmp_path / "t.csv").read_text("utf-8")
    assert written.splitlines()[:3] == ["client,'=loss", "'-5,-0.5", "'=cmd(),-0.5"]
    assert [row[0] for row in iterate_rows(io.StringIO(written))] == ["client", *names]
    assert [record["=loss"] for record in iterate_records(io.StringIO(written))] == ["-0.5"] * len(names)


def test_a_short_row_lacks_its_last_cells():
    assert list(iterate_records(io.StringIO("a,b\n1\n"))) == [{"a": "1", "b": None}]


@given(st.lists(EVERY_TEXT, min_size=1))
def test_a_row_of_any_texts_is_one_line_of_a_table(texts):
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerow(map(encode_cell, texts))
    assert file.getvalue().count("\n") == 1
    assert list(iterate_rows(io.StringIO(file.getvalue()))) == [texts]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("client_7 of 1,200: 97.5 %", "client_7 of 1,200: 97.5 %"),
        ("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"),
        ("![x](http://a.b)", "!\\[x\\](http://a.b)"),
        ("a|b\nc", "a\\|b\\\\u000ac"),
        ("_x_ **y** `z` ~w~ \\", "\\_x\\_ \\*\\*y\\*\\* \\`z\\` \\~w\\~ \\\\"),
        ("R&D", "R&amp;D"),
    ],
)
def test_markdown_shows_the_text_itself(text, expected):
    assert escape_markdown(text) == expected


@pytest.mark.parametrize(("encoding", "shown"), [("utf-8", "\u00fc \u65e5"), ("latin-1", "\u00fc \\u65e5")])
def test_what_steers_and_what_a_stream_lacks_is_written_out(encoding, shown, monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", out)
    with show_text():
        print("\u00fc \u65e5 \udcfc\x1b[2J\t\u202e", end="\r", flush=True)
    assert out.buffer.getvalue().decode(encoding) == f"{shown} \\udcfc\\u001b[2J\t\\u202e\r"
    assert sys.stdout is out and out.errors == "strict"


def test_blocks_that_end_out_of_turn_leave_the_stream_that_was_there(monkeypatch):
    """As those of two threads may."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", out)
    first, second = show_text(), show_text()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert sys.stdout is out


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
