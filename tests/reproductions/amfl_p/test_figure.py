"""AMFL-P's figures are drawn where there are runs."""

import pandas as pd
import pytest

from launch.pages.plots.personal_plots import compute_bin_means
from reproductions.amfl_p import figure
from reproductions.amfl_p.figure import draw_amfl_p_figures


def test_without_runs_there_is_the_papers_figure_alone(tmp_path, assert_is_picture):
    assert_is_picture(draw_amfl_p_figures([], tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["amfl_p.png"]


def test_accuracy_against_steps_has_a_line_a_start_and_local_training_across(tmp_path, figures):
    """0.49, 0.50, 0.51: deviation 0.01, error 0.005774, t(2) 4.3027: 0.50 give or take 0.02484."""
    found = pd.Series({("members", "16", "fedavg", steps): (0.49, 0.50, 0.51) for steps in (0, 5)})
    found.index.names = ["sensors", "setting", "start", "steps"]
    axes = ({"members": "members"}, {"16": "16 readings"}, {"fedavg": "FedAvg"})
    local = {("members", "16"): [0.4]}
    figure._draw_by_steps(tmp_path / "few_shot.png", "Few", *axes, found, lambda *place: local[place])
    (ax,) = figures["few_shot.png"].axes
    fedavg, local = ax.lines
    assert list(fedavg.get_xdata()) == [0, 1] and list(fedavg.get_ydata()) == pytest.approx([0.5, 0.5])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "5"] and set(local.get_ydata()) == {0.4}
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (pytest.approx(0.5 - 0.02484, abs=1e-5), pytest.approx(0.5 + 0.02484, abs=1e-5))


def test_bins_are_of_equal_size_and_in_order():
    places, values = compute_bin_means([3, 1, 2, 4, 5], [30.0, 10.0, float("nan"), 40.0, 50.0], 2)
    assert places.tolist() == [2, 4.5]  # 1 and 3, 4 and 5; the place with no value is left out
    assert values.tolist() == [20, 45]
