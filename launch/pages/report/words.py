"""How the page of a run writes numbers. Imports no TensorFlow."""

import math
from typing import Any

import numpy as np

from launch.console.shown_text import escape_hidden, format_count
from launch.pages.plots.style import SIZES, TIMES, pick_unit
from launch.runs.task_columns import PERCENT, TaskColumns, format_value

NBSP, MINUS = "\N{NO-BREAK SPACE}", "\N{MINUS SIGN}"
UNKNOWN = "\N{EN DASH}"


def count(number: int, noun: str) -> str:
    """ "1 round", "1,200 rounds"."""
    return format_count(number, noun).replace(" ", NBSP, 1)


def read_number(value: Any) -> float | None:
    """A finite number of a run's files, which may be those of anybody; None for everything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def show_metric(value: float | None, task: TaskColumns) -> str:
    """A value of the task's main metric: shares in percent, others with their unit."""
    if value is None:
        return "unknown"
    if task.metric.unit == PERCENT:
        return show_share(value)
    return f"{format_value(value)}{NBSP}{task.metric.unit}".rstrip()


def show_share(share: float) -> str:
    """A share in percent, which says neither 0 nor 100 of what is only near."""
    text = f"{100 * share:.1f}"
    text = "<0.1" if text == "0.0" and share > 0 else ">99.9" if text == "100.0" and share < 1 else text
    return f"{text}{NBSP}%"


def show_gain(reached: float, trivial: float, task: TaskColumns) -> str:
    """How much better the first is: "+73.3 points", or "0.41 lower" where lower is better."""
    if task.metric.unit == PERCENT:
        points = 100 * (reached - trivial)
        return f"{'+' if points >= 0 else MINUS}{abs(points):.1f}{NBSP}points"
    difference = abs(reached - trivial)
    share = f" ({difference / abs(trivial):.0%})" if trivial else ""
    return f"{format_value(difference)} {'lower' if reached <= trivial else 'higher'}{share}"


def show_bytes(number: float) -> str:
    """ "30.7 MB"."""
    return _show(number, SIZES)


def show_seconds(seconds: float) -> str:
    """ "1.08 min"."""
    return _show(seconds, TIMES)


def _show(value: float, units: tuple[tuple[str, float], ...]) -> str:
    unit, size = pick_unit(np.array([value]), units)
    shown = value / size
    return f"{shown:,.0f}{NBSP}{unit}" if shown >= 100 or shown == int(shown) else f"{shown:.3g}{NBSP}{unit}"


def show_cell(value: Any) -> str:
    """A cell of a table: text with what hides or steers written out, numbers rounded, a dash for what is missing."""
    if isinstance(value, str):
        return escape_hidden(value)
    number = read_number(value)
    if number is None:
        return UNKNOWN
    if number == int(number):
        return f"{int(number):,}"
    return f"{number:,.0f}" if abs(number) >= 1000 else format_value(number)
