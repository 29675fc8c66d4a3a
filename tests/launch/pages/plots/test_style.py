"""How a figure is written."""

import matplotlib
import numpy as np
import pytest

from launch.pages.plots.style import (
    STYLE,
    count_rounds,
    draw_counts,
    new_figure,
    save_figure,
    smooth,
    span_values,
    write_formats,
)


def draw():
    figure = new_figure(4, 3)
    left, right = figure.subplots(1, 2)
    left.plot([1, 2, 3], [0.2, 0.9, 0.4], label="a line")
    right.bar([1, 2], [5, 3])
    right.set(title="Bars", xlabel="number", ylabel="a long label")
    left.legend()
    figure.suptitle("A title")
    return figure


def test_a_figure_is_written_as_savefig_would(tmp_path):
    with matplotlib.rc_context(STYLE):
        draw().savefig(tmp_path / "expected.png", format="png")
        save_figure(draw(), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes() == (tmp_path / "expected.png").read_bytes()


def test_a_figure_is_drawn_once(tmp_path, monkeypatch):
    figure, draws = draw(), []
    original = type(figure).draw
    monkeypatch.setattr(type(figure), "draw", lambda self, renderer: draws.append(1) or original(self, renderer))
    save_figure(figure, tmp_path / "figure.png")
    assert draws == [1]


def count(values):
    ax = new_figure(4, 3).subplots()
    draw_counts(ax, np.array(values))
    return [(bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in ax.patches]


@pytest.mark.parametrize(("values", "bars"), [([5, 5, 5], [(5, 3)]), ([0, 2, 2], [(0, 1), (1, 0), (2, 2)])])
def test_whole_numbers_are_counted_each_by_itself(values, bars):
    assert count(values) == bars


def test_wide_ranges_are_counted_in_as_many_bars_as_fit():
    """0 to 600 are 601 numbers: 11 of them a bar makes 55 bars, and none of the values is left out."""
    bars = count(range(601))
    assert len(bars) == 55 and sum(height for _, height in bars) == 601 and bars[0] == (5, 11)


def test_counts_stand_on_whole_numbers():
    ax = new_figure(4, 3).subplots()
    draw_counts(ax, np.array([1, 2]))
    assert [tick for tick in ax.get_yticks() if 0 <= tick <= 1] == [0, 1]


@pytest.mark.parametrize(("rounds", "limits", "ticks"), [([10], (9, 11), [9, 10, 11]), ([1, 2, 3], None, [1, 2, 3])])
def test_rounds_are_whole_numbers_and_a_single_one_has_room(rounds, limits, ticks):
    ax = new_figure(4, 3).subplots()
    ax.plot(rounds, rounds)
    count_rounds(ax)
    low, high = ax.get_xlim()
    assert limits is None or (low, high) == limits
    assert [tick for tick in ax.get_xticks() if low <= tick <= high] == ticks


@pytest.mark.parametrize(
    ("values", "bounds", "expected"),
    [
        ([0.5, 1.0], (None, None), (0.46, 1.04)),
        ([0.5, 1.0], (0.0, 1.0), (0.46, 1.0116)),
        ([10.0], (None, None), (9, 11)),
        ([0.0], (0.0, None), (-0.02, 0.5)),
        ([], (None, None), (0, 1)),
    ],
)
def test_an_axis_spans_its_values_and_ends_near_what_can_be(values, bounds, expected):
    assert span_values(np.array(values), bounds) == pytest.approx(expected)


def test_smoothing_keeps_the_ends():
    assert smooth([1, 2, 6, 4], 3).tolist() == [1, 3, 4, 4]
    assert smooth([1, 5], 9).tolist() == [1, 5] and smooth([], 3).tolist() == []


def test_a_figure_is_written_in_further_formats(tmp_path):
    with write_formats(["png", "svg", "pdf"]):
        save_figure(draw(), tmp_path / "figure.png")
    save_figure(draw(), tmp_path / "other.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure.pdf", "figure.png", "figure.svg", "other.png"]
    assert (tmp_path / "figure.svg").read_bytes().startswith(b"<?xml")
