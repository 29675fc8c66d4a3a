"""Tables in the Markdown pages of an export. Imports no TensorFlow."""

from collections.abc import Sequence

from launch.runs.shown_text import escape_markdown


def format_table(rows: Sequence[Sequence[str]], num_texts: int | None = None) -> str:
    """A table of texts that may be anything: its headings, then its rows.

    Args:
      rows: the headings first.
      num_texts: how many columns hold text; those behind them hold numbers. None: all.
    """
    return join_table([[escape_markdown(cell) for cell in row] for row in rows], num_texts)


def join_table(rows: Sequence[Sequence[str]], num_texts: int | None = None) -> str:
    """The same of cells that are Markdown already."""
    head, *others = rows
    texts = len(head) if num_texts is None else num_texts
    rule = ["---"] * texts + ["---:"] * (len(head) - texts)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *others))
