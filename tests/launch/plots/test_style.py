"""How a figure is written."""

import matplotlib
import numpy as np

from launch.plots.style import STYLE, draw_counts, new_figure, save_figure


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


def test_whole_numbers_are_counted_each_by_itself():
    assert count([5, 5, 5]) == [(5, 3)]
    assert count([0, 2, 2]) == [(0, 1), (1, 0), (2, 2)]


def test_wide_ranges_are_counted_in_as_many_bars_as_fit():
    """0 to 600 are 601 numbers: 11 of them a bar makes 55 bars, and none of the values is left out."""
    bars = count(range(601))
    assert len(bars) == 55 and sum(height for _, height in bars) == 601 and bars[0] == (5, 11)
