"""Text where it is shown: on a terminal and on none, in a CSV file, in Markdown. Imports no TensorFlow.

A name is shown as it is, apart from characters that are no letters and that do something instead: control characters,
which steer a terminal or end a line, and marks that hide text or turn its direction, so that a reader sees something
else than what is there. These are shown as in Python, such as \\u001b. So is what a terminal cannot show; where nobody
listens, what a command prints goes nowhere.
"""

import contextlib
import html
import io
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# Control characters, line separators, halves of surrogate pairs; then what is invisible: soft hyphens, spaces of no
# width, marks of direction, tags. The joiners U+200C and U+200D stay: Persian and emojis are written with them.
_HIDDEN = (
    "\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
    "\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
_HIDDEN_CHARACTER = re.compile(f"[{_HIDDEN}]")
_UNPRINTABLE = re.compile(f"(?![\b\t\n\r])[{_HIDDEN}]")  # in lines of text; progress lines go back to their start
# In a cell, also the backslash of what would be read as an escape.
_ESCAPED_IN_CELL = re.compile(rf"[{_HIDDEN}]|\\(?=[uU])")
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|U([0-9a-f]{8}))")
# A spreadsheet takes what begins so for a formula, the wide forms as well.
_FORMULA = re.compile("'*[=+@\uff1d\uff0b\uff0d\uff20-]")
MOST_FILLED = 12  # columns that are named in a line
_MARKDOWN = re.compile(r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])")


def escape_hidden(text: str) -> str:
    """`text`, in which every character that hides or steers is written out; it has no line break any more."""
    return _HIDDEN_CHARACTER.sub(_write_out, text)


def escape_lines(text: str) -> str:
    """The same for lines of text: their breaks and tabs stay, and what goes back in a line, as progress lines do."""
    return _UNPRINTABLE.sub(_write_out, text)


def _write_out(match: re.Match) -> str:
    number = ord(match[0])
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def encode_cell(text: str) -> str:
    """`text` for a cell of a CSV file, which no spreadsheet takes for a formula; `decode_cell` gives it back."""
    escaped = _ESCAPED_IN_CELL.sub(_write_out, text)
    return f"'{escaped}" if _FORMULA.match(escaped) else escaped


def decode_cell(cell: str) -> str:
    """The text, or the number as text, that stands in a cell."""
    escaped = cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell
    return _ESCAPE.sub(_read_escape, escaped) if "\\" in escaped else escaped


def _read_escape(match: re.Match) -> str:
    number = int(match[1] or match[2], 16)
    return chr(number) if number <= 0x10FFFF else match[0]


def escape_markdown(text: str) -> str:
    """`text` for a line or a cell of Markdown, which shows it as it is: no HTML, link, picture or further cell."""
    return _MARKDOWN.sub(lambda match: f"\\{match[0]}", html.escape(escape_hidden(text), quote=False))


def align_columns(rows: Sequence[Sequence[str]], num_texts: int = 1) -> Iterator[str]:
    """The rows as lines for a terminal: the first columns, of text, to the left, those behind them to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        sized = enumerate(zip(row, widths, strict=True))
        yield "  ".join(f"{cell:{'<' if i < num_texts else '>'}{width}}" for i, (cell, width) in sized)


def format_markdown_table(rows: Sequence[Sequence[str]], num_texts: int | None = None) -> str:
    """A table of cells that are Markdown already: its headings, then its rows.

    Args:
      rows: the headings first.
      num_texts: how many columns hold text; those behind them hold numbers. None: all.
    """
    head, *others = rows
    texts = len(head) if num_texts is None else num_texts
    rule = ["---"] * texts + ["---:"] * (len(head) - texts)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *others))


def format_count(number: int, noun: str, plural: str = "") -> str:
    """A number of things, "1 run" or "2,000 runs"; `plural` is that of a noun which takes more than an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def describe_filled(filled: Mapping[str, int]) -> str:
    """How many missing values of which columns were filled in, by what, in words."""
    counts = ", ".join(f"{name} {count:,}" for name, count in list(filled.items())[:MOST_FILLED])
    more = f" and {format_count(len(filled) - MOST_FILLED, 'more column')}" if len(filled) > MOST_FILLED else ""
    return (
        f"{format_count(sum(filled.values()), 'missing value')}, by the median or the most frequent text of the train "
        f"part, by column: {counts}{more}"
    )


class _ShownText:
    """A text stream in which what steers a terminal is written out, see `escape_lines`."""

    def __init__(self, stream: Any):
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(escape_lines(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def show_text() -> Iterator[None]:
    """Inside, standard output takes any text, and both streams exist, whatever this program was started with.

    The streams are the whole program's: a block inside of another, or in another thread, takes those of the first,
    which alone puts back what was there, so that no end out of turn leaves its own stream behind.
    """
    if isinstance(sys.stdout, _ShownText):
        yield
        return
    # Those of 0 to 2 that were closed are opened, or the next file, such as a table, would be taken for the output.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # gets the lowest number that is free
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    before = sys.stdout, sys.stderr
    with contextlib.ExitStack() as stack:
        out, err = (stream or stack.enter_context(open(os.devnull, "w", encoding="utf-8")) for stream in before)
        if isinstance(out, io.TextIOWrapper):  # stderr writes out what its encoding lacks by itself
            stack.callback(_put_back, out, out.errors)
            out.reconfigure(errors="backslashreplace")
        sys.stdout, sys.stderr = _ShownText(out), err
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before


def _put_back(stream: io.TextIOWrapper, errors: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # what is left cannot be written, or the stream is closed
        stream.reconfigure(errors=errors)
