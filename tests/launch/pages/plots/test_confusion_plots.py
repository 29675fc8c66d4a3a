"""What stands in the cells of a confusion matrix."""

import numpy as np
import pytest

from launch.pages.plots.confusion_plots import draw_confusions


@pytest.fixture
def draw(tmp_path, figures, assert_is_picture):
    """(confusions, names) -> the axes that were drawn."""

    def draw_file(confusions, names):
        path = draw_confusions(np.array(confusions), names, "a.tflite", tmp_path / "a.png")
        assert_is_picture(path)
        return figures["a.png"]

    return draw_file


def test_cells_have_counts_and_shares(draw):
    figure = draw([[9012, 640], [3, 2762]], ["empty", "occupied"])
    ax = figure.axes[0]
    assert [text.get_text() for text in ax.texts] == ["9,012\n93 %", "640\n7 %", "3\n<1 %", "2,762\n>99 %"]
    assert [text.get_color() for text in ax.texts] == ["white", "black", "black", "white"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["empty (9,652)", "occupied (2,765)"]
    assert figure.get_suptitle().endswith("94.8 % of 12,417 right")


def test_a_class_never_found_shows_0_and_one_without_examples_nothing(draw):
    ax = draw([[0, 5, 0], [0, 4, 0], [0, 0, 0]], list("abc")).axes[0]
    assert [(text.get_position(), text.get_text()) for text in ax.texts] == [
        ((0, 0), "0\n0 %"),
        ((1, 0), "5\n100 %"),
        ((1, 1), "4\n100 %"),
    ]


def test_many_classes_have_no_numbers(draw):
    assert not draw(np.eye(30, dtype=int), [f"class {i}" for i in range(30)]).axes[0].texts


@pytest.mark.parametrize("num_classes", [2, 10])
def test_numbers_stay_in_their_cells(draw, num_classes):
    figure = draw(np.full((num_classes, num_classes), 12345), [f"class {i}" for i in range(num_classes)])
    ax = figure.axes[0]
    cell = ax.transData.transform((1, 0))[0] - ax.transData.transform((0, 0))[0]
    assert all(text.get_window_extent().width < cell for text in ax.texts)


@pytest.mark.filterwarnings("error")
def test_names_of_classes_are_text(draw):
    """No formula, which would not be drawn if it is wrong, no letter that the font lacks, and no name too long."""
    names = ["$\\frac$", "a_$x$", "\N{GRINNING FACE}\u65e5", "\u202eabc", "x" * 300]
    ax = draw(np.eye(5, dtype=int), names).axes[0]
    shown = ["$\\frac$", "a_$x$", "\N{GRINNING FACE}\u65e5", "\\u202eabc", "x" * 12 + "..." + "x" * 12]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == shown
    assert not any(tick.get_parse_math() for tick in ax.get_xticklabels())
