"""The picture of the page: each method with the range in which its result lies beside that of training alone.

A bar is the range of what a method gains over alone, drawn from where alone is. So a bar that does not touch the line
of alone is a difference beyond doubt. Imports no TensorFlow.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from launch.advice.sentences import Numbers, get_numbers
from launch.advice.verdict import Advice
from launch.pages.report.words import NBSP
from launch.runs.task_columns import find_bounds

LEFT, RIGHT = 3.0, 97.0  # percent of the width that values take
MOST_TICKS = 5
WIDE = 3.0  # times the distance of the results, how far ranges go at most beyond them
FAR = 1.5  # times the width of everything else: a row without a model beyond would push all that to one side


class Bar(NamedTuple):
    """A method: places are percents of the width.

    Attributes:
      title: of the method.
      shown: its result.
      role: as a class of styles.
      is_advised: whether it is.
      at: where its result is.
      ends: of the range; None without any.
      leaves: whether the range goes on beyond the picture, to the left and to the right.
    """

    title: str
    shown: str
    role: str
    is_advised: bool
    at: float
    ends: tuple[float, float] | None
    leaves: tuple[bool, bool] = (False, False)


class Picture(NamedTuple):
    """Everything that is drawn.

    Attributes:
      bars: the best method first.
      alone: where training alone is; None if it is unknown.
      trivial: likewise, the best row without a model; None, too, if it is far off.
      row: that row in words; "" where it is not drawn.
      ticks: (place, text) along the axis.
      described: the picture in words.
    """

    bars: list[Bar]
    alone: float | None
    trivial: float | None
    row: str
    ticks: list[tuple[float, str]]
    described: str

    @property
    def has_ranges(self) -> bool:
        return any(bar.ends for bar in self.bars)

    @property
    def has_arrows(self) -> bool:
        return any(any(bar.leaves) for bar in self.bars)


def draw_methods(advice: Advice) -> Picture | None:
    """The picture; None where nothing was measured."""
    numbers, sign = get_numbers(advice), advice.task.sign
    alone, row = (each and each.average() for each in (advice.alone, advice.find(advice.decision.trivial)))
    found = []
    for each in advice.methods:
        result, comparison = each.average(), advice.beside_alone.get(each.name)
        if result is None:
            continue
        ends = None
        if comparison and alone is not None and comparison.ends and comparison.contrast.gain is not None:
            result_beside = alone + sign * comparison.contrast.gain
            # No share is above 100 %.
            least, most = _find_bounds(advice)
            low, high = sorted(alone + sign * end for end in comparison.ends)
            ends = (max(low, least), min(high, most))
        else:
            result_beside = result
        found.append((each, result, result_beside, ends))
    if not found:
        return None
    scale = _Scale([place for _, _, place, _ in found], [ends for *_, ends in found if ends], (alone, row), advice)
    bars = [
        Bar(
            each.title,
            numbers.show(result),
            each.role,
            each.name == advice.decision.advised,
            scale.place(beside),
            None if ends is None else (scale.place(ends[0]), scale.place(ends[1])),
            (False, False)
            if ends is None
            else (scale.find_side(ends[0]) == "left", scale.find_side(ends[1]) == "right"),
        )
        for each, result, beside, ends in found
    ]
    is_there = row is not None and not scale.find_side(row)
    alone_at, row_at = (None if alone is None else scale.place(alone), scale.place(row) if is_there else None)
    told = _say_row(advice, numbers, row) if is_there else ""
    return Picture(bars, alone_at, row_at, told, list(scale.list_ticks(numbers)), _describe(advice, bars))


def _find_bounds(advice: Advice) -> tuple[float, float]:
    """Between which all results lie."""
    least, most = find_bounds([advice.task])[advice.task.client_test]
    return -math.inf if least is None else least, math.inf if most is None else most


class _Scale:
    """Places of results: all dots and lines are inside, and of wide ranges as much as the dots are apart."""

    def __init__(self, dots, ranges, lines, advice: Advice):
        alone, row = lines
        inside = [*dots, *([] if alone is None else [alone])]
        low, high = min(inside), max(inside)
        if row is not None and low - FAR * (high - low) <= row <= high + FAR * (high - low):
            low, high = min(low, row), max(high, row)
        # Ranges that are far wider than that are cut.
        room = max(WIDE * (high - low), 5 * advice.margin) or 1.0
        self._bounds = _find_bounds(advice)
        low = max(low - room, min([low, *(ends[0] for ends in ranges)]), self._bounds[0])
        high = min(high + room, max([high, *(ends[1] for ends in ranges)]), self._bounds[1])
        edge = 0.04 * ((high - low) or room)
        self._low, self._high = low - edge, high + edge

    def find_side(self, value: float) -> str:
        """Where a value is that the picture does not reach: "left" or "right"; "" inside."""
        return "left" if value < self._low else "right" if value > self._high else ""

    def place(self, value: float) -> float:
        share = (value - self._low) / (self._high - self._low)
        return round(LEFT + (RIGHT - LEFT) * min(1.0, max(0.0, share)), 2)

    def list_ticks(self, numbers: Numbers) -> Iterator[tuple[float, str]]:
        rough = (self._high - self._low) / MOST_TICKS
        size = 10 ** math.floor(math.log10(rough))
        step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= rough)
        first = math.ceil(self._low / step)
        for i in range(first, math.floor(self._high / step) + 1):
            # Beyond the bounds is only room for dots.
            if self._bounds[0] <= i * step <= self._bounds[1]:
                yield self.place(i * step), numbers.show(i * step).replace(f".0{NBSP}%", f"{NBSP}%")


def _say_row(advice: Advice, numbers: Numbers, value: float) -> str:
    return f"{advice.find(advice.decision.trivial).title}, without a model: {numbers.show(value)}"


def _describe(advice: Advice, bars: list[Bar]) -> str:
    parts = [f"{bar.title} {bar.shown}" for bar in bars]
    row = advice.find(advice.decision.trivial)
    if row is not None:
        parts.append(f"{row.title} {get_numbers(advice).show(row.average())}")
    return f"{advice.task.heading} of each method: {'; '.join(parts)}."
