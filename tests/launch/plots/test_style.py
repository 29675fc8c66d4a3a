"""How a figure is written."""

import matplotlib

from launch.plots.style import STYLE, new_figure, save_figure


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
