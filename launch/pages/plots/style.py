"""How all figures look: colours, lines, and how a figure is begun and written.

matplotlib is imported inside the functions, so that `--help` stays quick, and without pyplot, whose figures are global.
Colours are Okabe and Ito's, which colour-blind people can tell apart; series differ in line style or marker as well.
"""

import contextlib
import importlib
import logging
import pathlib
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from files.writing import replace_whole
from launch.console.shown_text import escape_hidden

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Its first use on a slow machine would say on the errors' stream that it lists the fonts.
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
LINES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
PNG = "png"
DATES = {"pdf": "CreationDate", "svg": "Date"}  # what would differ between two files of the same figure
TIMES = (("s", 1.0), ("min", 60.0), ("h", 3600.0), ("days", 86400.0))
SIZES = (("bytes", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12))
ENERGIES = (("J", 1.0), ("kJ", 1e3), ("MJ", 1e6), ("GJ", 1e9))
LONGEST_LABEL = 24  # letters
STYLE = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    # Otherwise the grid would cross bars and points.
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "savefig.dpi": 130,
    "svg.hashsalt": "federated-suite",  # the same figure gives the same bytes
    # A client or class may be called $x$.
    "text.parse_math": False,
}


def import_matplotlib_meanwhile() -> None:
    """Imports matplotlib in a thread, which takes half a second: while the caller waits for others, as for a round."""
    modules = ("matplotlib.figure", "matplotlib.backends.backend_agg")
    threading.Thread(target=lambda: [importlib.import_module(name) for name in modules], daemon=True).start()


def label_names(names: Iterable[str], longest: int = LONGEST_LABEL) -> list[str]:
    """Names of clients or classes as they fit beside an axis: long ones without their middle."""
    half = longest // 2
    shown = map(escape_hidden, names)
    return [name if len(name) <= longest else f"{name[:half]}...{name[-half:]}" for name in shown]


def count_rounds(ax: "Axes") -> None:
    """Whole numbers on the axis of rounds, and room beside a single round."""
    from matplotlib.ticker import MaxNLocator

    places = np.unique(np.concatenate([[], *(line.get_xdata() for line in ax.lines)]))
    if len(places) == 1:
        ax.set_xlim(places[0] - 1, places[0] + 1)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1, steps=(1, 2, 5, 10)))


def count_values(ax: "Axes") -> None:
    """Whole numbers on the axis of counts."""
    from matplotlib.ticker import MaxNLocator

    ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1, steps=(1, 2, 5, 10)))


def span_values(values: np.ndarray, bounds: tuple[float | None, float | None] = (None, None)) -> tuple[float, float]:
    """From where to where an axis goes that shows these values: a margin around them, also around a single one.

    Args:
      values: finite, any number of them.
      bounds: the least and the largest value that there can be, None: no such; the margin beyond them is small.
    """
    if not len(values):
        return 0.0, 1.0
    low, high = float(np.min(values)), float(np.max(values))
    margin = 0.08 * (high - low) or 0.1 * abs(high) or 0.5
    least, most = bounds
    # A line at the bound must not be cut in half.
    beyond = 0.02 * (high - low + 2 * margin)
    start = low - margin if least is None else max(low - margin, least - beyond)
    return start, high + margin if most is None else min(high + margin, most + beyond)


def start_at_zero(ax: "Axes") -> None:
    """Values from 0 on, with room above the highest curve, and below one that lies at 0."""
    measured = [np.asarray(line.get_ydata(), float) for line in ax.lines]
    values = np.concatenate([[0.0], *(each[np.isfinite(each)] for each in measured)])
    ax.set_ylim(*span_values(values, (0, None)))


def pick_unit(values: np.ndarray, units: Sequence[tuple[str, float]]) -> tuple[str, float]:
    """The largest unit, of (name, size) in ascending order, in which the largest value is at least 2."""
    largest = np.nanmax(values, initial=0)
    return next((unit for unit in reversed(units) if largest >= 2 * unit[1]), units[0])


def smooth(values: Sequence[float] | np.ndarray, window: int) -> np.ndarray:
    """The mean over a window of so many values around each; near an end over fewer, as many on either side."""
    numbers = np.asarray(values, np.float64)
    half, last = window // 2, len(numbers) - 1
    reach = [min(half, i, last - i) for i in range(len(numbers))]
    return np.array([numbers[i - near : i + near + 1].mean() for i, near in enumerate(reach)])


def draw_counts(ax: "Axes", values: np.ndarray, **style: Any) -> None:
    """A histogram of whole numbers of at least 0: a bar for each number, or for as many numbers as 60 bars need."""
    width = -(-(int(values.max()) - int(values.min()) + 1) // 60)
    edges = np.arange(int(values.min()), int(values.max()) + width + 1, width) - 0.5
    ax.hist(values, edges, **style)
    ax.grid(visible=False, axis="x")
    count_values(ax)


def new_figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    # Names may have letters that the font lacks.
    warnings.filterwarnings("ignore", "Glyph .* missing from")
    # This layout is the one that makes room for legends "outside" the axes.
    return Figure(figsize=(width, height), layout="constrained")


def settle_ticks(figure: "Figure") -> None:
    """Lays a figure out for a first time: that changes the axes' sizes, and by these the ticks, whose labels take room.

    It is for figures with much beside their axes, since it takes as long as half a plot.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)  # by which texts are measured
    figure.get_layout_engine().execute(figure)


_further_formats: list[str] = []


@contextlib.contextmanager
def write_formats(formats: Sequence[str]) -> Iterator[None]:
    """Inside, every figure that is saved as PNG is written in these formats, too: "svg", "pdf"."""
    _further_formats[:] = [name for name in formats if name in DATES]
    try:
        yield
    finally:
        _further_formats.clear()


def save_figure(figure: "Figure", path: pathlib.Path, maker: str | None = None) -> pathlib.Path:
    """Writes a PNG, SVG or PDF file atomically; the same figure gives the same bytes.

    A PNG file gets files of other formats beside it as `write_formats` says. The name of the `maker` is noted in it.

    `figure.savefig` writes the same file, but draws everything once more beforehand, which takes a fifth of its time.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    dpi = matplotlib.rcParams["savefig.dpi"]
    figure.set_dpi(figure.dpi if dpi == "figure" else dpi)
    canvas = FigureCanvasAgg(figure)
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")  # it is laid out now
    ending = path.suffix.removeprefix(".")
    if ending == PNG:
        with replace_whole(path) as temporary:
            canvas.print_png(temporary, metadata={"Software": maker} if maker else None)
    creator = maker or STYLE["svg.hashsalt"]
    for name in _further_formats if ending == PNG else [ending]:
        with replace_whole(path.with_suffix(f".{name}")) as temporary:
            figure.savefig(temporary, format=name, metadata={"Creator": creator, DATES[name]: None})
    return path


@contextlib.contextmanager
def draw_figure(path: pathlib.Path, width: float, height: float) -> "Iterator[Figure]":
    """Yields a figure in our style, of this size in inches; `save_figure` writes it when the block is done."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure = new_figure(width, height)
        yield figure
        save_figure(figure, path)
