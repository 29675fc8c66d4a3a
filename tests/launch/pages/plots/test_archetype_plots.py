"""The pictures of runs with archetypes: FedCD's and any other's."""

import json

import numpy as np
import pytest
from PIL import Image

from launch.pages.plots.archetype_plots import (
    draw_archetypes,
    draw_models,
    draw_preferences,
    read_preferences,
    style_archetypes,
)
from launch.pages.plots.run_plots import draw_run
from launch.runs.round_table import EventLog
from launch.runs.run_records import read_columns
from reproductions.engine.counted_runs import collect_runs
from reproductions.fedcd.figure import draw_fedcd_figure

FEDCD_CPU = "fedcd_cifar10_hierarchical_cpu"
MODELS = {"live_models": [1, 2, 2], "preferred_models": [1, 1, 2], "active_models": [30, 60, 40]}
MODELS |= {"max_active_models": [1, 2, 2], "score_deviation": [0.0, 0.1, 0.05]}
pytestmark = pytest.mark.usefixtures("figures")


def write_preferences(path, preferences):
    log = EventLog(path)
    for i, row in enumerate(preferences):
        events = [(0.0, client, "prefers", slot) for client, slot in enumerate(row)]
        log.append(i + 1, [(0.0, 0, "cloned", 7), *events])


def test_archetypes_of_a_group_have_colours_of_their_own_and_its_line_style():
    styles = style_archetypes([0, 0, 1, 1])
    assert len({tuple(style.items()) for style in styles}) == 4
    assert styles[0]["color"] == styles[2]["color"] and styles[0]["linestyle"] == styles[1]["linestyle"]


def test_a_client_without_a_row_still_prefers_its_last_model(tmp_path):
    log = EventLog(tmp_path / "events.csv")
    log.append(1, [(0.0, 0, "prefers", 4)])
    log.append(3, [(0.0, 1, "prefers", 5)])
    assert read_preferences(tmp_path / "events.csv").tolist() == [[4, -1], [4, -1], [4, 5]]


def test_a_run_of_fedcd_gets_its_pictures(tmp_path, write_archetype_run, sketches):
    run_dir = write_archetype_run(tmp_path, FEDCD_CPU, [0.2, 0.3, 0.4], swing=0.1, mixed=[1, 1, 0], **MODELS)
    write_preferences(run_dir / "events.csv", [[0] * 30, [0] * 30, [0] * 15 + [1] * 15])
    names = [path.name for path in draw_run(run_dir)]
    assert names[-3:] == ["archetypes.png", "models.png", "preferences.png"]
    accuracy, change = sketches["archetypes.png"].axes
    assert [line.get_label() for line in accuracy.lines] == [str(number) for number in range(10)]
    assert accuracy.lines[9].get_ydata().tolist() == pytest.approx([0.1, 0.4, 0.3])
    assert change.lines[0].get_xdata().tolist() == [2, 3], "the first round has no change"
    first = sketches["models.png"].axes[0]
    assert first.lines[0].get_ydata().tolist() == [1, 2, 2]
    assert [line.get_xdata()[0] for line in first.lines[3:]] == [5, 15, 25, 30], "the milestones"
    assert sketches["models.png"].axes[1].get_title() == "Active models (at most 2 on a device)"
    heat = sketches["preferences.png"].axes[0].images[0].get_array()
    assert heat.shape == (30, 3) and heat[:, 2].tolist() == [0] * 15 + [1] * 15


def test_fedcd_on_another_partition_has_a_picture_of_its_models_alone(tmp_path, write_archetype_run, sketches):
    run_dir = write_archetype_run(tmp_path, FEDCD_CPU, [0.2, 0.3, 0.4], **MODELS)
    config = json.loads((run_dir / "config.json").read_text())
    del config["data"]["archetypes"]
    (run_dir / "config.json").write_text(json.dumps(config))
    metrics = (run_dir / "metrics.csv").read_text().replace("mixed_models", "other")
    (run_dir / "metrics.csv").write_text(metrics)
    assert [path.name for path in draw_run(run_dir)][3:] == ["own_columns.png", "models.png"]
    assert sketches["models.png"].axes[0].get_legend_handles_labels()[1] == ["live", "preferred"]


def find_panel(figure, title):
    [panel] = [ax for ax in figure.axes if ax.get_title().startswith(title)]
    return panel


def test_figure_7_is_drawn_of_the_first_seed_if_its_events_are_there(tmp_path, write_archetype_run, sketches):
    run_dir = write_archetype_run(
        tmp_path, FEDCD_CPU, [0.5] * 45, **{name: column[-1] for name, column in MODELS.items()}
    )
    draw_fedcd_figure(collect_runs(tmp_path)[0], tmp_path)
    assert [text.get_text() for text in find_panel(sketches["fedcd.png"], "Figure 7").texts] == ["not run"]
    write_preferences(run_dir / "events.csv", [[0] * 30] * 5 + [[0] * 15 + [1] * 15] * 40)
    draw_fedcd_figure(collect_runs(tmp_path)[0], tmp_path)
    panel = find_panel(sketches["fedcd.png"], "Figure 7")
    assert panel.images[0].get_array().shape == (30, 45)
    assert [text.get_text() for text in panel.texts[:3]] == ["0", "0", "0"]


def test_a_run_of_another_algorithm_has_accuracy_by_archetype_alone(tmp_path, write_archetype_run, sketches):
    run_dir = write_archetype_run(tmp_path, "fedavg_cifar10_hypergeometric_cpu", [0.2, 0.3])
    assert [path.name for path in draw_run(run_dir)][3:] == ["archetypes.png"]


def test_rounds_that_were_not_evaluated_are_left_out(tmp_path, write_archetype_run, figures):
    metrics = read_columns(
        write_archetype_run(tmp_path, FEDCD_CPU, [0.2, float("nan"), 0.4], mixed=0, **MODELS) / "metrics.csv"
    )
    archetypes = {"names": ["a", "b"], "meta_archetypes": [0, 1], "of_clients": [1, 0]}
    draw_archetypes(metrics, archetypes, "a run", tmp_path / "archetypes.png")
    assert figures["archetypes.png"].axes[0].lines[1].get_xdata().tolist() == [1, 3]
    assert figures["archetypes.png"].axes[0].lines[1].get_label() == "1 b"
    draw_models(metrics, [], "a run", tmp_path / "models.png")
    draw_preferences(np.array([[4, 2]]), archetypes, "a run", tmp_path / "preferences.png")
    ax = figures["preferences.png"].axes[0]
    assert ax.images[0].get_array().tolist() == [[0], [1]], "client 1 is of archetype 0: model 2, then model 4"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["2", "4"]
    for name in ("archetypes", "models", "preferences"):
        with Image.open(tmp_path / f"{name}.png") as image:
            assert len(image.convert("L").getcolors(1 << 16)) > 10  # something is drawn


def test_preferences_of_many_clients_fit_on_a_page_without_numbers(tmp_path, sketches):
    """500 clients of two archetypes over six rounds: 0.17 inches each would be 85."""
    kinds = {"names": ["x", "y"], "meta_archetypes": [0, 1], "of_clients": [i % 2 for i in range(500)]}
    draw_preferences(np.zeros((6, 500), int), kinds, "a run", tmp_path / "preferences.png")
    figure = sketches["preferences.png"]
    assert figure.get_figheight() == 14 and not figure.axes[0].texts
