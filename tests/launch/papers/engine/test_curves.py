"""The figure of several runs shows the mean over the seeds, and says where there are none."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from launch.papers.engine.curves import Panel, compute_curve, compute_curve_by_round, draw_comparison
from launch.report import collect_runs
from launch.settings.algorithms import ALGORITHMS

CELL = "fedsikd_mnist_alpha0.1"
pytestmark = pytest.mark.usefixtures("figures")


def test_a_comparison_shows_the_mean_over_seeds_and_panels_without_runs(
    tmp_path, write_run, figures, assert_is_picture
):
    """Accuracy 0.51, 0.52, 0.53 and 0.61, 0.62, 0.63, 0.64: the mean of both, where both are."""
    for seed in (0, 1):
        write_run(tmp_path, CELL, seed=seed, rounds=3 + seed, accuracy=0.5 + 0.1 * seed)
    runs = collect_runs(tmp_path)[0]
    panels = [Panel("MNIST", {"FedSiKD": runs, "FedAvg": []}), Panel("HAR", {"FedSiKD": [], "FedAvg": []})]
    draw_comparison(panels, tmp_path / "figure.png", "Figure 3")
    assert_is_picture(tmp_path / "figure.png")
    mnist, har = figures["figure.png"].axes
    assert (mnist.get_title(), har.get_title(), figures["figure.png"].get_suptitle()) == ("MNIST", "HAR", "Figure 3")
    (curve,) = mnist.lines
    assert curve.get_label() == "FedSiKD"
    np.testing.assert_allclose(curve.get_xydata(), [[1, 0.56], [2, 0.57], [3, 0.58], [4, 0.64]])
    assert [text.get_text() for text in har.texts] == ["not run"]
    draw_comparison(panels[1:], tmp_path / "empty.png")
    assert_is_picture(tmp_path / "empty.png")


def test_a_curve_is_the_mean_and_sample_deviation_at_each_place():
    """Of 1 and 3: mean 2, deviation the root of (1 + 1) / 1; of 5 alone: no deviation."""
    curve = compute_curve([10, 20], [[1.0, 3.0], [5.0]])
    np.testing.assert_allclose(curve, [[10, 20], [2, 5], [2**0.5, 0]])


def test_a_curve_by_round_ends_where_it_is_told_to_or_where_a_run_does(tmp_path, write_run):
    for seed in (0, 1):
        write_run(tmp_path, CELL, seed=seed, rounds=3 + seed)
    runs = collect_runs(tmp_path)[0]
    assert compute_curve_by_round(runs, "test_accuracy").places.tolist() == [1, 2, 3, 4]
    assert compute_curve_by_round(runs, "test_accuracy", of_all=True).places.tolist() == [1, 2, 3]
    assert compute_curve_by_round(runs, "test_accuracy", last_round=2).places.tolist() == [1, 2]
    assert compute_curve_by_round(runs, "client_test_accuracy").places.tolist() == []


def test_variants_share_a_colour_and_differ_in_their_line(tmp_path, write_run, figures):
    write_run(tmp_path, CELL, seed=0, rounds=2)
    labels = ("FedSiKD", "FedAvg", "FedSiKD, tuned")
    draw_comparison([Panel("MNIST", dict.fromkeys(labels, collect_runs(tmp_path)[0]))], tmp_path / "figure.png")
    (ax,) = figures["figure.png"].axes
    drawn = {line.get_label(): (to_hex(line.get_color()).upper(), line.get_linestyle()) for line in ax.lines}
    blue, pink = (ALGORITHMS[algo].color for algo in ("fedsikd", "fedavg"))
    assert drawn == {"FedSiKD": (blue, "-"), "FedAvg": (pink, "-"), "FedSiKD, tuned": (blue, "--")}
    (legend,) = figures["figure.png"].legends
    assert [text.get_text() for text in legend.get_texts()] == ["FedSiKD", "FedSiKD, tuned", "FedAvg"]
