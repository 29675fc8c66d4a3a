"""A fixture for tests that look at what is in a figure, and not at how it is painted."""

import pytest


@pytest.fixture
def sketches(figures, monkeypatch):
    """As `figures`, but nothing is laid out and painted, which takes nearly all of the time: the files are blank."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    monkeypatch.setattr(FigureCanvasAgg, "draw", lambda canvas: canvas.get_renderer())
    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", lambda engine, figure: None)
    return figures
