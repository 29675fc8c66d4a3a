"""Runs as a frame, how groups of it look in a table, and tables as Markdown.

Figures show the mean over the seeds with its band, and say where nothing was run.
"""

import math

import numpy as np
import pandas as pd
import pytest

from launch.runs.run_records import RunRecord
from reproductions.engine import tables
from reproductions.engine.collection import Place, find_first_round
from reproductions.engine.figures import (
    Line,
    Panel,
    arrange,
    compute_curve,
    compute_curve_by_round,
    draw_panels,
    name_line_ends,
)
from reproductions.engine.tables import (
    Section,
    Table,
    format_rounds,
    format_table,
    tabulate_legend,
)


def make_run(experiment, seed, accuracy):
    return RunRecord(None, {"seed": seed}, experiment, {1: {"test_accuracy": accuracy}})


def measure(run):
    accuracy = run.rounds[1]["test_accuracy"]
    return {"name": run.experiment.upper(), "test_accuracy": accuracy} if accuracy else {}


def test_a_frame_has_a_row_for_each_run_in_which_something_is_measured():
    frame = tables.make_frame([make_run("a", 0, 0.7), make_run("b", 1, 0.8), make_run("b", 2, None)], measure, ["loss"])
    assert list(frame.columns) == ["experiment", "seed", "loss", "name", "test_accuracy"]
    assert frame[["experiment", "seed", "name"]].to_numpy().tolist() == [["a", 0, "A"], ["b", 1, "B"]]
    assert frame.loss.isna().all()
    assert list(tables.make_frame([], measure, ["loss"]).columns) == ["experiment", "seed", "loss"]


def test_numbers_of_a_frame_are_results_of_their_place():
    """What was not measured has no seed, and a column of text is no metric."""
    easy, hard = (Place("tuned", "data", setting, "ours") for setting in ("easy", "hard"))
    rows = [(*easy, 0, "x", 0.7, 3), (*easy, 1, "y", 0.8, np.nan), (*hard, 1, "z", np.inf, np.nan)]
    frame = pd.DataFrame(rows, columns=[*Place._fields, "seed", "name", "test_accuracy", "loss"])
    assert tables.list_results(frame, 5) == {
        "printed": {},
        "tuned": {
            easy.make_cell("test_accuracy", 5): {0: 0.7, 1: 0.8},
            easy.make_cell("loss", 5): {0: 3},
            hard.make_cell("test_accuracy", 5): {1: np.inf},
        },
    }
    assert tables.list_results(frame[:0], 5, ("other",)) == {"other": {}}


def test_cells_of_a_table():
    assert (tables.show([0.5]), tables.show([])) == ("50.00", "not run")
    assert (tables.count([1.0], [], [1.0, 2.0, 3.0]), tables.count([])) == ("1 to 3", "0")
    assert (tables.show_range([5.0, 3.0, 4.0]), tables.show_range([4]), tables.show_range([])) == ("3 to 5", "4", "")


def test_a_pair_has_its_difference_seeds_and_verdict():
    first = pd.Series([0.60, 0.70, 0.80, 0.9])
    assert tables.show_difference(first, first[:3] - 0.1) == ["+10.00", "3", "win"]
    assert tables.show_difference(first, first[:0]) == ["not run", "", ""]


def test_axes_are_crossed_with_their_titles():
    crossed = tables.cross({"a": "A", "b": "B"}, {"x": "X", "y": "Y"})
    assert list(crossed) == [
        (("a", "x"), ["A", "X"]), (("a", "y"), ["A", "Y"]), (("b", "x"), ["B", "X"]), (("b", "y"), ["B", "Y"])
    ]  # fmt: skip


def test_headings_and_notes_come_from_the_papers_texts(monkeypatch):
    texts = {"results": {"heading": "Results", "note": "\nOf {number} runs.\n"}, "files": {"heading": "Files"}}
    monkeypatch.setattr(tables, "read_toml", lambda *place: {("paper", "tables.toml"): texts}[place])
    table = Table(["a"], [["1"]])
    assert tables.describe("paper", {"results": table, "files": table}, number=3) == {
        "results": ("Results", table, "Of 3 runs."),
        "files": ("Files", table, ""),
    }


TABLE = Table(("a", "b"), [["1", ""]])
TEXT = "| a | b |\n| --- | --- |\n| 1 |  |"


def test_a_table():
    assert format_table(TABLE) == TEXT
    assert TABLE.records == [{"a": "1", "b": ""}]


def test_a_table_is_turned():
    """Places in their order; a name that is not asked for is left out, two may share a column, and gaps are empty."""
    rows = [
        ["A", "printed", "1", "x"],
        ["A", "ours", "2", "x"],
        ["B", "ours", "3", "x"],
        ["B", "ours, tuned", "4", "x"],
        ["C", "data", "5", "x"],
    ]
    table = Table(["algorithm", "source", "accuracy", "rounds"], rows)
    turned = tables.spread(
        table, ["algorithm"], "source", "accuracy", {"ours": "ours", "printed": "printed", "data": "ours"}
    )
    assert turned == Table(["algorithm", "ours", "printed"], [["A", "2", "1"], ["B", "3", ""], ["C", "5", ""]])


def test_a_legend_says_how_a_table_is_read():
    sections = {"one": Section("One", TABLE, "Read it\nso."), "two": Section("Two", TABLE)}
    legend = tabulate_legend({"all": "For\nall.", "none": ""}, sections)
    assert legend.rows == [["all", "", "For all."], ["one", "One", "Read it so."], ["two", "Two", ""]]


@pytest.mark.parametrize(
    ("metric", "values", "text"),
    [
        ("test_accuracy", [0.7, 0.8, 0.9], "80.00 ± 10.00"),
        ("test_accuracy", [0.7, np.nan, 0.8], "75.00 ± 7.07"),
        ("test_loss", [0.8], "0.80"),
        ("test_loss", [np.nan], "absent"),
        ("test_loss", [], "absent"),
        ("rounds", [5, 15, math.inf], "not reached by all"),
    ],
)
def test_a_result(metric, values, text):
    assert tables.show(values, metric, absent="absent") == text


@pytest.mark.parametrize(
    ("rounds", "text"),
    [
        ([5, 10, 15], "10.00 ± 5.00"),
        ([5, 10, 15, math.inf, math.inf], "median 15; > 50 in 2 of 5"),
        ([5, math.inf, math.inf], "> 50 in 2 of 3"),
        ([math.inf, math.inf], "> 50 in 2 of 2"),
    ],
)
def test_rounds_that_some_seeds_never_reach(rounds, text):
    assert format_rounds(rounds, 50) == text


@pytest.mark.parametrize(("target", "last", "found"), [(0.8, 5, 2), (0.85, 5, math.inf), (0.85, 6, 6)])
def test_the_first_round_with_an_accuracy(target, last, found):
    assert find_first_round({1: 0.5, 2: 0.8, 3: 0.7, 6: 0.9}, target, last) == found


CELL = "fedsikd_mnist_alpha0.1"
STYLE = {"color": "#000000"}


def test_panels_show_lines_and_levels_and_say_what_was_not_run(tmp_path, sketches, assert_is_picture):
    line = Line("ours", compute_curve([1, 2], [[0.5, 0.7], [0.0]]), STYLE)
    level = Line("level", compute_curve([0], [[0.4]]), STYLE)
    lines = [line, line._replace(label="none", curve=compute_curve([], []))]
    panels = [Panel(lines, [level], {"title": "MNIST"}, bounds=(0, 1)),
              Panel(axes={"title": "HAR", "xlabel": "round"}), None]  # fmt: skip
    assert_is_picture(draw_panels([panels], tmp_path / "figure.png", "Figure 3"))
    mnist, har, empty = sketches["figure.png"].axes
    assert (mnist.get_title(), har.get_title(), sketches["figure.png"].get_suptitle()) == ("MNIST", "HAR", "Figure 3")
    np.testing.assert_allclose(mnist.lines[0].get_xydata(), [[1, 0.6], [2, 0.0]])
    # Two seeds are marks, not a band; neither a bound nor a line that lies there is on the axis's end.
    band, marks = mnist.collections
    assert not band.get_paths()
    np.testing.assert_allclose(marks.get_offsets(), [[1, 0.5], [1, 0.7]])
    low, high = mnist.get_ylim()
    assert -0.1 < low < 0 and 1 < high < 1.1
    assert [drawn.get_label() for drawn in mnist.lines] == ["ours", "level"]
    assert [text.get_text() for text in har.texts] == ["not run"] and har.get_xlabel() == "round"
    assert not empty.axison
    (legend,) = sketches["figure.png"].legends
    assert [text.get_text() for text in legend.get_texts()] == ["ours", "level"]


A, B, C = (Panel(axes={"title": title}) for title in "abc")


@pytest.mark.parametrize(
    ("panels", "rows"), [([A, B, C], [[A, B], [C, None]]), ([A, B], [[A, B]]), ([], [[Panel(), None]])]
)
def test_the_last_row_of_panels_is_filled_up_and_of_none_there_is_one_that_was_not_run(panels, rows):
    assert arrange(panels, 2) == rows


def test_lines_may_be_named_at_their_ends(tmp_path, assert_is_picture):
    panel = Panel([Line("ours", compute_curve([1, 2], [[0.5], [0.8]]), STYLE)])
    assert_is_picture(draw_panels([[panel, Panel()]], tmp_path / "ends.png", "", name_lines=name_line_ends))


def test_a_curve_is_the_mean_and_sample_deviation_at_each_place():
    """Of 1, 2 and 3: mean 2, deviation the root of (1 + 0 + 1) / 2. Of two seeds each is shown, and one is the mean."""
    curve = compute_curve([10, 20, 30], [[1.0, 2.0, 3.0], [5.0], [4.0, 6.0]])
    np.testing.assert_allclose(curve[:3], [[10, 20, 30], [2, 5, 5], [1, np.nan, np.nan]])
    assert curve.singles == [[], [], [4.0, 6.0]]


def test_a_band_may_be_the_interval_of_the_mean():
    """0.49, 0.50, 0.51: deviation 0.01, error 0.005774, t(2) 4.3027: 0.50 give or take 0.02484."""
    curve = compute_curve([0, 5, 9], [[0.3], [0.49, 0.50, 0.51], [0.6] * 3], has_intervals=True)
    np.testing.assert_allclose(curve[:3], [[0, 5, 9], [0.3, 0.5, 0.6], [np.nan, 0.02484, 0]], atol=1e-5)


@pytest.mark.parametrize(
    ("column", "asked", "rounds"),
    [
        ("test_accuracy", {}, [1, 2, 3, 4]),
        ("test_accuracy", {"of_all": True}, [1, 2, 3]),
        ("test_accuracy", {"last_round": 2}, [1, 2]),
        ("client_test_accuracy", {}, []),
    ],
)
def test_a_curve_by_round_ends_where_it_is_asked_to_or_where_a_run_does(column, asked, rounds):
    lengths = [{number: {"test_accuracy": 0.5} for number in range(1, 4 + more)} for more in (0, 1)]
    runs = [RunRecord(None, {}, CELL, each) for each in lengths]
    assert compute_curve_by_round(runs, column, **asked).places.tolist() == rounds
