"""The bar of long work on files: on a terminal, and not at once."""

import io
import sys

from datasets.stored_source import show_progress


class Terminal(io.StringIO):
    """A standard error that says that somebody looks at it."""

    def isatty(self):
        return True


def test_items_pass_and_without_a_terminal_nothing_is_shown(capsys):
    assert list(show_progress(iter("abc"), "letters")) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""


def test_a_terminal_sees_a_bar_once_the_work_takes_long(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    list(show_progress([1, 2], "numbers"))
    assert terminal.getvalue() == ""
    monkeypatch.setattr("datasets.stored_source._SHOWN_AFTER_S", 0.0)
    list(show_progress([1, 2], "numbers"))
    assert "numbers" in terminal.getvalue()
