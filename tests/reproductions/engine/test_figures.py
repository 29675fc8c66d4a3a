"""Figures show the mean over the seeds with its band, and say where nothing was run."""

import numpy as np

from reproductions.engine.counted_runs import collect_runs
from reproductions.engine.figures import (
    Line,
    Panel,
    arrange,
    compute_curve,
    compute_curve_by_round,
    draw_panels,
    name_line_ends,
)

CELL = "fedsikd_mnist_alpha0.1"
STYLE = {"color": "#000000"}


def test_panels_show_lines_and_levels_and_say_what_was_not_run(tmp_path, figures, assert_is_picture):
    line = Line("ours", compute_curve([1, 2], [[0.5, 0.7], [0.8]]), STYLE)
    level = Line("level", compute_curve([0], [[0.4]]), STYLE)
    panels = [Panel([line, line._replace(label="none", curve=compute_curve([], []))], [level], {"title": "MNIST"}),
              Panel(axes={"title": "HAR", "xlabel": "round"}), None]  # fmt: skip
    assert_is_picture(draw_panels([panels], tmp_path / "figure.png", "Figure 3"))
    mnist, har, empty = figures["figure.png"].axes
    assert (mnist.get_title(), har.get_title(), figures["figure.png"].get_suptitle()) == ("MNIST", "HAR", "Figure 3")
    np.testing.assert_allclose(mnist.lines[0].get_xydata(), [[1, 0.6], [2, 0.8]])
    assert [drawn.get_label() for drawn in mnist.lines] == ["ours", "level"]
    assert [text.get_text() for text in har.texts] == ["not run"] and har.get_xlabel() == "round"
    assert not empty.axison
    (legend,) = figures["figure.png"].legends
    assert [text.get_text() for text in legend.get_texts()] == ["ours", "level"]


def test_the_last_row_of_panels_is_filled_up_and_of_none_there_is_one_that_was_not_run():
    first, second, third = (Panel(axes={"title": title}) for title in "abc")
    assert arrange([first, second, third], 2) == [[first, second], [third, None]]
    assert arrange([first, second], 2) == [[first, second]]
    assert arrange([], 2) == [[Panel(), None]]


def test_lines_may_be_named_at_their_ends(tmp_path, assert_is_picture):
    panel = Panel([Line("ours", compute_curve([1, 2], [[0.5], [0.8]]), STYLE)])
    assert_is_picture(draw_panels([[panel, Panel()]], tmp_path / "ends.png", "", name_lines=name_line_ends))


def test_a_curve_is_the_mean_and_sample_deviation_at_each_place():
    """Of 1 and 3: mean 2, deviation the root of (1 + 1) / 1; of 5 alone: no deviation."""
    curve = compute_curve([10, 20], [[1.0, 3.0], [5.0]])
    np.testing.assert_allclose(curve, [[10, 20], [2, 5], [2**0.5, 0]])


def test_a_band_may_be_the_interval_of_the_mean():
    """0.49, 0.50, 0.51: deviation 0.01, error 0.005774, t(2) 4.3027: 0.50 give or take 0.02484."""
    curve = compute_curve([0, 5, 9], [[0.3], [0.49, 0.50, 0.51], [0.6, 0.6]], has_intervals=True)
    np.testing.assert_allclose(curve, [[0, 5, 9], [0.3, 0.5, 0.6], [0, 0.02484, 0]], atol=1e-5)


def test_a_curve_by_round_ends_where_it_is_told_to_or_where_a_run_does(tmp_path, write_run):
    for seed in (0, 1):
        write_run(tmp_path, CELL, seed=seed, rounds=3 + seed)
    runs = collect_runs(tmp_path)[0]
    assert compute_curve_by_round(runs, "test_accuracy").places.tolist() == [1, 2, 3, 4]
    assert compute_curve_by_round(runs, "test_accuracy", of_all=True).places.tolist() == [1, 2, 3]
    assert compute_curve_by_round(runs, "test_accuracy", last_round=2).places.tolist() == [1, 2]
    assert compute_curve_by_round(runs, "client_test_accuracy").places.tolist() == []
