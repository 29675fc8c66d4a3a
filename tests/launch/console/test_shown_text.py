"""Text of users where it is shown: nothing steers a terminal, a spreadsheet or a page, and names stay readable."""

import io
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from launch.console.shown_text import (
    decode_cell,
    encode_cell,
    escape_hidden,
    escape_lines,
    escape_markdown,
    format_count,
    show_text,
)
from launch.runs.tables import format_cell, format_lines, iterate_records, iterate_rows, write_table

EVERY_TEXT = st.text(st.characters(exclude_categories=()))


def test_a_number_of_things_has_the_plural_unless_it_is_one():
    assert [format_count(number, "run") for number in (0, 1, 2000)] == ["0 runs", "1 run", "2,000 runs"]
    assert [format_count(number, "class", "classes") for number in (1, 2)] == ["1 class", "2 classes"]


@given(st.lists(EVERY_TEXT, min_size=1))
@example(["'=x", "''@", "\\u001b", "\\\\u0041\x1b"])
def test_cells_give_their_texts_back_and_are_no_formulas_in_a_row_of_one_line(texts):
    cells = [encode_cell(text) for text in texts]
    assert [decode_cell(cell) for cell in cells] == texts
    assert not {cell[:1] for cell in cells} & {"=", "+", "-", "@", "\t", "\r", "\uff1d"}
    row = format_lines([cells])
    assert row.count("\n") == len((row[:-1] + "|").splitlines()) == 1
    assert list(iterate_rows(io.StringIO(row))) == [texts]


@pytest.mark.parametrize(
    ("escape", "text", "shown"),
    [
        (escape_hidden, "ward 1/2 \u00fc \N{GRINNING FACE} <b>", "ward 1/2 \u00fc \N{GRINNING FACE} <b>"),
        (escape_hidden, "\x1b]52;c;x\x07", "\\u001b]52;c;x\\u0007"),
        (escape_hidden, "a\nb\tc\x9b\x7f", "a\\u000ab\\u0009c\\u009b\\u007f"),
        (escape_hidden, "a\u202eb\u200f\u2066\ufeff", "a\\u202eb\\u200f\\u2066\\ufeff"),
        (escape_hidden, "\udcfc\u2028\U000e0041", "\\udcfc\\u2028\\U000e0041"),
        (escape_hidden, "\u06cc\u200c\U0001f468\u200d\U0001f469", "\u06cc\u200c\U0001f468\u200d\U0001f469"),
        (escape_lines, "a\tb\n\x1b[31mc\x00\r\b\n", "a\tb\n\\u001b[31mc\\u0000\r\b\n"),
        *(
            (encode_cell, text, text)
            for text in ("client_7", "a, b", "it's", "'hello'", "C:\\data", "007", "1e5", "\u00fc")
        ),
        (escape_markdown, "client_7 of 1,200: 97.5 %", "client_7 of 1,200: 97.5 %"),
        (escape_markdown, "<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"),
        (escape_markdown, "![x](http://a.b)", "!\\[x\\](http://a.b)"),
        (escape_markdown, "a|b\nc", "a\\|b\\\\u000ac"),
        (escape_markdown, "_x_ **y** `z` ~w~ \\", "\\_x\\_ \\*\\*y\\*\\* \\`z\\` \\~w\\~ \\\\"),
        (escape_markdown, "R&D", "R&amp;D"),
    ],
)
def test_what_hides_steers_or_means_something_is_written_out_and_all_else_stays(escape, text, shown):
    assert escape(text) == shown


def test_numbers_stay_numbers_in_a_table_names_stay_names_and_a_short_row_lacks_its_last_cells(tmp_path):
    names = ["-5", "=cmd()", "@x", "a\u202eb", "plain", "a,b"]
    write_table(tmp_path / "t.csv", ["client", "=loss"], [[format_cell(name), format_cell(-0.5)] for name in names])
    written = (tmp_path / "t.csv").read_text("utf-8")
    assert written.splitlines()[:3] == ["client,'=loss", "'-5,-0.5", "'=cmd(),-0.5"]
    records = list(iterate_records(io.StringIO(f"{written}last\n")))
    assert [(each["client"], each["=loss"]) for each in records] == [
        *((name, "-0.5") for name in names),
        ("last", None),
    ]


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


def test_without_streams_a_command_ends_as_with_them(tmp_path):
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
    closed = {"all": "", "no_output": ">&-", "no_errors": "2>&-", "none": "<&- >&- 2>&-"}
    command = " & ".join(
        f'("{sys.executable}" {script} {tmp_path}/{name} {how}; echo $? >>{tmp_path}/{name})'
        for name, how in closed.items()
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    ended = subprocess.run(["sh", "-c", f"{command} & wait"], env=environment, capture_output=True, timeout=60)
    assert b"Traceback" not in ended.stderr
    assert [(tmp_path / name).read_text() for name in closed] == ["True0\n"] * 4
