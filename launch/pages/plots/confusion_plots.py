"""The confusion matrix of a model: how many examples of each class got which answer."""

import pathlib
from collections.abc import Sequence

import numpy as np

from launch.pages.plots.style import draw_figure, label_names

MOST_NUMBERED = 20  # classes: in smaller cells no number could be read
LONGEST_LEVEL_NAME = 3  # letters of a class name that stay level below the columns
CELL = 0.62  # inches
DARK = 0.68  # share from which white is easier to read on the colour than black


def draw_confusions(confusions: np.ndarray, class_names: Sequence[str], title: str, path: pathlib.Path) -> pathlib.Path:
    """Draws a row for each class and a column for each answer, with counts and the shares of the row.

    Args:
      confusions: integers, shape (classes, answers); a row without examples stays empty.
      class_names: one a class.
      title: which model, on which examples.
      path: the PNG file.
    """
    counts, class_names = np.asarray(confusions), label_names(class_names)
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros(counts.shape), where=totals > 0)
    num_classes = len(counts)
    cell = CELL if num_classes <= MOST_NUMBERED else MOST_NUMBERED * CELL / num_classes
    # Two classes would make a figure that is smaller than its title.
    side = max(num_classes * cell, 2.4)
    with draw_figure(path, side + 3.2, side + 1.9) as figure:
        ax = figure.add_subplot()
        image = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        if num_classes <= MOST_NUMBERED:
            for (row, column), count in np.ndenumerate(counts):
                # A class that is never found must not look like one without examples.
                if count or (row == column and totals[row, 0]):
                    share = shares[row, column]
                    # Whole percent, without rounding what is not nothing to 0, or what is not everything to 100.
                    percent = ">99" if 0.995 <= share < 1 else "<1" if 0 < share < 0.005 else f"{100 * share:.0f}"
                    style = {"color": "white" if share > DARK else "black", "ha": "center", "va": "center"}
                    weight = "bold" if row == column else "normal"
                    ax.text(column, row, f"{count:,}\n{percent} %", fontsize=8, weight=weight, **style)
        numbers = [f"{name} ({total:,})" for name, total in zip(class_names, totals[:, 0], strict=True)]
        are_long = max(map(len, class_names)) > LONGEST_LEVEL_NAME
        turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if are_long else {}
        ax.set_xticks(np.arange(num_classes), class_names, **turned)
        ax.set_yticks(np.arange(num_classes), numbers)
        ax.set(xlabel="answer", ylabel="class (test examples)")
        ax.grid(visible=False)
        ax.spines[:].set_visible(False)
        bar = figure.colorbar(image, ax=ax, shrink=0.8, label="share of the class")
        bar.outline.set_visible(False)
        right = np.trace(counts) / max(1, counts.sum())
        figure.suptitle(f"{title}\n{100 * right:.1f} % of {counts.sum():,} right", fontsize=11)
    return path
