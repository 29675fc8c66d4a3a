"""The plots show the numbers of the tables under the right names, and are written whole, for short and odd runs."""

import numpy as np
import pytest

from launch.pages.plots.partition_plots import draw_partition, draw_sizes
from launch.pages.plots.personal_plots import draw_client_rounds
from launch.pages.plots.run_plots import draw_run
from launch.runs.run_records import RunRecordError, read_json
from launch.runs.tables import write_json, write_table
from launch.runs.task_columns import find_task_columns

CELL = "fedsikd_mnist_alpha0.1"
PROGRESS = ["by_round.png", "by_virtual_time.png", "by_bytes.png"]
pytestmark = pytest.mark.usefixtures("figures")


def read_lines(ax):
    """{label: (x, y)} of a panel's lines, rounded."""
    return {line.get_label(): (line.get_xdata().round(6).tolist(), line.get_ydata().tolist()) for line in ax.lines}


def write_clients(run_dir, **columns):
    num_clients = len(next(iter(columns.values())))
    table = {"client": [f"client_{i}" for i in range(num_clients)], **columns}
    rows = [[str(value) for value in row] for row in zip(*table.values(), strict=True)]
    write_table(run_dir / "clients.csv", list(table), rows)


def test_a_run_gets_all_its_plots(tmp_path, write_run, figures, assert_is_picture):
    run_dir = write_run(tmp_path, CELL, seed=0, rounds=2)
    config = read_json(run_dir / "config.json")
    data = {"label_counts": [[0, 1], [5, 0], [2, 2], [1, 0]], "class_names": ["no", "yes"]}
    write_json(run_dir / "config.json", config | {"data": data})
    write_clients(run_dir, cluster=[0, 0, 1, 9], plane_x=[0.1, 0.2, -1, 2], plane_y=[1, 2, 3, 4])
    written = draw_run(run_dir)
    expected = [*PROGRESS, "drift.png", "clusters.png", "partition.png"]
    assert [path.relative_to(run_dir / "plots").as_posix() for path in written] == expected
    for path in written:
        assert_is_picture(path)
    assert set(read_lines(figures["by_round.png"].axes[1])) == {"global test set", "training (with distillation)"}
    (drift,) = figures["drift.png"].axes
    assert read_lines(drift) == {"total": ([1, 2], [0.03, 0.015]), "within clusters": ([1, 2], [0.02, 0.01])}
    assert drift.get_yscale() == "log", "drift is compared by its ratio"


def test_the_spread_of_the_clients_by_round(tmp_path, figures):
    """Eleven clients at 0, 0.1, ..., 1 in round 2, all at 1 in round 4: quantiles are the clients themselves."""
    rows = [f"2,c{i},global,0,{i / 10}" for i in range(11)] + [f"4,c{i},global,0,1" for i in range(11)]
    table = "\n".join(["round,client,model,test_loss,test_accuracy", *rows, ""])
    draw_client_rounds(table, find_task_columns("classification"), "a run", tmp_path / "clients_by_round.png")
    [ax] = figures["clients_by_round.png"].axes
    assert read_lines(ax) == {"median": ([2, 4], [0.5, 1])}
    wide, narrow = (np.unique(band.get_paths()[0].vertices[:, 1]).round(6).tolist() for band in ax.collections)
    assert (wide, narrow) == ([0.1, 0.9, 1], [0.25, 0.75, 1])


def test_a_run_without_own_columns_gets_its_progress(tmp_path, write_run, sketches):
    run_dir = write_run(tmp_path, CELL, seed=0, rounds=2)
    columns = ["round", "virtual_time_s", "bytes_down", "bytes_up", "train_loss", "test_loss", "test_accuracy"]
    write_table(run_dir / "metrics.csv", columns, [["1", "0", "0", "0", "1.5", "", ""]])
    write_clients(run_dir, accuracy=[0.5, 0.5, 0.5, ""])
    assert [path.name for path in draw_run(run_dir)] == PROGRESS
    accuracy, loss = sketches["by_round.png"].axes
    assert not accuracy.lines
    assert read_lines(loss) == {"training (with distillation)": ([1], [1.5])}


def test_progress_shows_each_column_under_its_name(tmp_path, write_run, sketches):
    """60 s and 6 MB a round, accuracy 0.51 and 0.52, losses 1 / r and 0.8 / r."""
    draw_run(write_run(tmp_path, "fedavg_har_alpha1.0", seed=3, rounds=2))
    axes = {
        "by_round.png": ("round", [1, 2]),
        "by_virtual_time.png": ("virtual time (min)", [1, 2]),
        "by_bytes.png": ("sent both ways, all clients (MB)", [6, 12]),
    }
    for name, (label, x) in axes.items():
        accuracy, loss = sketches[name].axes
        assert read_lines(accuracy) == {"global test set": (x, [0.51, 0.52])}
        assert read_lines(loss) == {"global test set": (x, [1, 0.5]), "training": (x, [0.8, 0.4])}
        assert accuracy.get_xlabel() == loss.get_xlabel() == label
        assert (accuracy.get_xlim()[0] == 0) == (name != "by_round.png")
    assert sketches["by_round.png"].get_suptitle() == "FedAvg on HAR, alpha 1.0, seed 3"


def test_drift_that_vanishes_is_shown(tmp_path, write_run, sketches):
    run_dir = write_run(tmp_path, CELL, seed=0, rounds=1)
    columns = ["round", "virtual_time_s", "bytes_down", "bytes_up", "total_drift", "within_cluster_drift"]
    write_table(run_dir / "metrics.csv", columns, [["1", "60", "1", "1", "0.5", "0"]])
    draw_run(run_dir)
    (ax,) = sketches["drift.png"].axes
    assert (ax.get_yscale(), read_lines(ax)["within clusters"]) == ("linear", ([1], [0]))


@pytest.mark.parametrize("num_clients", [6, 61])
def test_clusters_name_their_clients_if_they_are_not_too_many(tmp_path, write_run, figures, num_clients):
    run_dir = write_run(tmp_path, CELL, seed=0, rounds=1)
    x = np.linspace(-1, 1, num_clients)
    write_clients(run_dir, cluster=[0, 7] + [0] * (num_clients - 2), plane_x=x, plane_y=x**2)
    draw_run(run_dir)
    (ax,) = figures["clusters.png"].axes
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [f"0 ({num_clients - 1})", "7 (1)"]
    assert ax.collections[1].get_offsets().tolist() == pytest.approx(np.array([[x[1], x[1] ** 2]]), abs=1e-5)
    named = {text.get_text(): text.xy[0] for text in ax.texts}
    assert named == (pytest.approx({str(i): x[i] for i in range(6)}, abs=1e-5) if num_clients == 6 else {})


def test_no_run_to_draw_is_one_line(tmp_path, sketches):
    with pytest.raises(RunRecordError, match="cannot be read"):
        draw_run(tmp_path)


@pytest.mark.parametrize("num_clients", [1, 200])
def test_partitions_of_any_size(tmp_path, sketches, num_clients):
    counts = np.arange(num_clients * 6).reshape(num_clients, 6)
    names = [f"client_{i}" for i in range(num_clients)]
    draw_partition(counts, list("abcdef"), names, tmp_path / "partition.png", "HAR, iid")
    heat, totals, _ = sketches["partition.png"].axes
    assert totals.get_title() == f"HAR, iid\n{num_clients} clients, {counts.sum():,} train examples"
    assert [bar.get_height() for bar in totals.patches] == counts.sum(axis=1).tolist()
    np.testing.assert_array_equal(heat.images[0].get_array().filled(0), counts.T)


def test_one_example_looks_other_than_none_and_than_the_most(tmp_path, sketches):
    draw_partition(np.array([[0, 1, 3000]]), ["a", "b", "c"], ["client_0"], tmp_path / "partition.png")
    image = sketches["partition.png"].axes[0].images[0]
    none, one, most = image.to_rgba(image.get_array()).reshape(3, 4)
    assert none[3] == 0  # the white ground
    assert one[3] == 1 and one[:3].mean() < 0.85
    assert most[:3].mean() < 0.3


def test_a_partition_without_examples_is_drawn(tmp_path, assert_is_picture):
    draw_partition(np.zeros((2, 3), int), ["a", "b", "c"], ["client_0", "client_1"], tmp_path / "partition.png")
    assert_is_picture(tmp_path / "partition.png")


def test_a_private_run_shows_accuracy_against_epsilon(tmp_path, write_run, sketches, assert_is_picture):
    """Accuracies 0.51 and 0.53; the second round was not evaluated."""
    run_dir = write_run(tmp_path, "fedavg_mnist_1000clients_budget8", seed=0, rounds=3, accuracy=[0.51, "", 0.53])
    metrics = (run_dir / "metrics.csv").read_text().splitlines()
    spent = ["epsilon_spent", "2.5", "3.0", "3.25"]
    lines = [f"{line},{cell}" for line, cell in zip(metrics, spent, strict=True)]
    (run_dir / "metrics.csv").write_text("\n".join(lines) + "\n")
    path = run_dir / "plots" / "epsilon.png"
    assert path in draw_run(run_dir)
    assert_is_picture(path)
    (ax,) = sketches["epsilon.png"].axes
    assert read_lines(ax) == {"global test set": ([2.5, 3.25], [0.51, 0.53])}


def test_many_clients_are_counted_not_shown_one_by_one(tmp_path, sketches, assert_is_picture):
    """400 clients: 100 with one example of a, 200 with two of b, 100 with one of each."""
    counts = np.repeat([[1, 0], [0, 2], [1, 1]], [100, 200, 100], axis=0)
    draw_partition(counts, ["a", "b"], [f"client_{i}" for i in range(400)], tmp_path / "partition.png", "HAR")
    assert_is_picture(tmp_path / "partition.png")
    figure = sketches["partition.png"]
    assert figure.get_suptitle() == "HAR\n400 clients, 700 train examples"
    examples, held, labels = figure.axes
    centers = {round(bar.get_x() + bar.get_width() / 2, 6): bar.get_height() for bar in examples.patches}
    assert centers == {1: 100, 2: 300}
    assert {round(bar.get_x() + bar.get_width() / 2, 6): bar.get_height() for bar in held.patches} == {1: 300, 2: 100}
    assert [bar.get_width() for bar in labels.patches] == [200, 500]


def test_an_error_is_drawn_under_its_own_name_and_clients_without_classes_by_their_sizes(tmp_path, write_run, sketches):
    """The error falls from 60 to 50; the clients have 4 and 9 train examples."""
    run_dir = write_run(tmp_path, CELL, seed=0, rounds=2)
    data = {"task": {"kind": "regression"}, "class_names": [], "label_counts": [[], []]}
    write_json(run_dir / "config.json", read_json(run_dir / "config.json") | {"data": data})
    columns = ["round", "virtual_time_s", "bytes_down", "bytes_up", "train_loss", "test_loss", "test_rmse"]
    rows = [["1", "0", "0", "0", "2", "2", "60"], ["2", "1", "9", "9", "1", "1", "50"]]
    write_table(run_dir / "metrics.csv", columns, rows)
    write_clients(run_dir, num_train=[4, 9], rmse=[55, 45])
    assert [path.name for path in draw_run(run_dir)] == [*PROGRESS, "partition.png"]
    error, _ = sketches["by_round.png"].axes
    assert (error.get_title(), error.get_ylabel()) == ("RMSE (lower is better)", "RMSE")
    assert read_lines(error) == {"global test set": ([1, 2], [60, 50])}
    [sizes] = sketches["partition.png"].axes
    assert [bar.get_height() for bar in sizes.patches] == [4, 9] and "2 clients, 13 train" in sizes.get_title()


def test_many_clients_without_classes_are_counted(tmp_path, sketches):
    draw_sizes(np.repeat([3, 5], 200), [f"client_{i}" for i in range(400)], tmp_path / "partition.png", "npz")
    [ax] = sketches["partition.png"].axes
    assert sum(bar.get_height() for bar in ax.patches) == 400 and ax.get_ylabel() == "clients"


def test_an_algorithms_own_columns_are_drawn_under_readable_names(tmp_path, write_run, sketches):
    run_dir = write_run(tmp_path, CELL, seed=0, rounds=2)
    rows = [line.split(",") for line in (run_dir / "metrics.csv").read_text().splitlines()]
    own = {"aggregator_clipping_norm": ["0.5", "0.25"], "my_count": ["3", "4"], "empty": ["", ""]}
    table = [[*row, *(values[i] for values in own.values())] for i, row in enumerate(rows[1:])]
    write_table(run_dir / "metrics.csv", [*rows[0], *own], table)
    draw_run(run_dir)
    norm, count = sketches["own_columns.png"].axes
    assert (norm.get_title(), count.get_title()) == ("Clipping norm of the aggregator", "My count")
    assert norm.lines[0].get_ydata().tolist() == [0.5, 0.25]
    assert all(tick == int(tick) for tick in count.get_yticks())


def test_plots_are_smoothed_and_written_as_svg_where_the_flags_say_so(tmp_path, write_run, sketches):
    run_dir = write_run(tmp_path, CELL, 0, 5, arguments=["--plot_smoothing=3", "--plot_formats=png,svg"])
    draw_run(run_dir)
    assert (run_dir / "plots" / "by_round.svg").exists()
    raw, smoothed = sketches["by_round.png"].axes[1].lines[:2]
    assert raw.get_ydata().tolist() == [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]
    assert smoothed.get_ydata()[1] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert smoothed.get_label() == "global test set"
    without = write_run(tmp_path, CELL, 1, 5, arguments=["--plot_formats=none"])
    assert draw_run(without) == [] and not (without / "plots").exists()
