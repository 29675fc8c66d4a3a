"""How all figures look: colours, lines, and how a figure is begun and written.

matplotlib is imported inside the functions, so that `--help` stays quick, and without pyplot, whose figures are global.
Colours are Okabe and Ito's, which colour-blind people can tell apart; series differ in line style or marker as well.
"""

import importlib
import pathlib
import threading
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from launch.runs.shown_text import escape_hidden
from launch.runs.tables import replace_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
LINES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
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
    "text.parse_math": False,  # a client or class may be called $x$
}


def import_matplotlib_meanwhile() -> None:
    """Imports matplotlib in a thread, which takes half a second: while the caller waits for others, as for a round."""
    modules = ("matplotlib.figure", "matplotlib.backends.backend_agg")
    threading.Thread(target=lambda: [importlib.import_module(name) for name in modules], daemon=True).start()


def label_names(names: Iterable[str]) -> list[str]:
    """Names of clients or classes as they fit beside an axis: long ones without their middle."""
    half = LONGEST_LABEL // 2
    shown = map(escape_hidden, names)
    return [name if len(name) <= LONGEST_LABEL else f"{name[:half]}...{name[-half:]}" for name in shown]


def count_rounds(ax: "Axes") -> None:
    """Whole numbers on the axis of rounds."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))


def draw_counts(ax: "Axes", values: np.ndarray, **style: Any) -> None:
    """A histogram of whole numbers of at least 0: a bar for each number, or for as many numbers as 60 bars need."""
    width = -(-(int(values.max()) - int(values.min()) + 1) // 60)
    edges = np.arange(int(values.min()), int(values.max()) + width + 1, width) - 0.5
    ax.hist(values, edges, **style)
    ax.grid(visible=False, axis="x")


def new_figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    warnings.filterwarnings("ignore", "Glyph .* missing from")  # names may have letters that the font lacks
    # This layout is the one that makes room for legends "outside" the axes.
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: "Figure", path: pathlib.Path) -> pathlib.Path:
    """Writes a PNG file atomically.

    `figure.savefig` writes the same file, but draws everything once more beforehand, which takes a fifth of its time.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    dpi = matplotlib.rcParams["savefig.dpi"]
    figure.set_dpi(figure.dpi if dpi == "figure" else dpi)
    canvas = FigureCanvasAgg(figure)
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")  # it is laid out now
    with replace_whole(path) as temporary:
        canvas.print_png(temporary)
    return path
