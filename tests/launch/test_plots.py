"""The plots are written whole, for short, long and odd runs."""

import numpy as np
import pytest
from PIL import Image

from launch.plots import Curves, draw_comparison, draw_partition, draw_run
from launch.run_folder import write_table
from launch.run_records import RunRecordError

CELL = "fedsikd_mnist_alpha0.1"


def assert_is_picture(path):
    """A PNG file in more than one colour, and nothing unfinished beside it."""
    with Image.open(path) as image:
        assert image.format == "PNG"
        assert min(image.size) > 200
        assert len(image.convert("RGB").getcolors(2**24)) > 20
    assert not [other for other in path.parent.iterdir() if other.name.startswith(".")]


def write_clients(run_dir, **columns):
    table = {"client": [f"client_{i}" for i in range(4)], **columns}
    rows = [[str(value) for value in row] for row in zip(*table.values(), strict=True)]
    write_table(run_dir / "clients.csv", list(table), rows)


def names(paths):
    return [path.name for path in paths]


def test_a_run_gets_progress_drift_and_clusters(tmp_path, write_run):
    run_dir = write_run(tmp_path, CELL, seed=0, rounds=3)
    write_clients(run_dir, cluster=[0, 0, 1, 9], plane_x=[0.1, 0.2, -1, 2], plane_y=[1, 2, 3, 4])
    written = draw_run(run_dir)
    assert names(written) == ["by_round.png", "by_virtual_time.png", "by_bytes.png", "drift.png", "clusters.png"]
    for path in written:
        assert path.parent == run_dir / "plots"
        assert_is_picture(path)


def test_a_run_without_own_columns_gets_its_progress(tmp_path, write_run):
    run_dir = write_run(tmp_path, CELL, seed=0, rounds=2)
    columns = ["round", "virtual_time_s", "bytes_down", "bytes_up", "train_loss", "test_loss", "test_accuracy"]
    write_table(run_dir / "metrics.csv", columns, [["1", "0", "0", "0", "1.5", "", ""]])
    write_clients(run_dir, accuracy=[0.5, 0.5, 0.5, ""])
    assert names(draw_run(run_dir)) == ["by_round.png", "by_virtual_time.png", "by_bytes.png"]


def test_drawing_twice_gives_the_same_files(tmp_path, write_run):
    run_dir = write_run(tmp_path, CELL, seed=0, rounds=2)
    before = [path.read_bytes() for path in draw_run(run_dir)]
    assert [path.read_bytes() for path in draw_run(run_dir)] == before


def test_no_run_to_draw_is_one_line(tmp_path):
    with pytest.raises(RunRecordError, match="cannot be read"):
        draw_run(tmp_path)


@pytest.mark.parametrize(("num_clients", "names"), [(1, ["a"]), (40, None), (200, None)])
def test_partitions_of_any_size(tmp_path, num_clients, names):
    counts = np.arange(num_clients * 6).reshape(num_clients, 6)
    names = names or [f"client_{i}" for i in range(num_clients)]
    path = tmp_path / "plots" / "partition.png"
    draw_partition(counts, ["walking", "upstairs", "down", "sit", "stand", "lie"], names, path)
    assert_is_picture(path)


def test_a_comparison_shows_panels_without_runs(tmp_path, write_run):
    run_dirs = [write_run(tmp_path, CELL, seed=seed, rounds=3 + seed, accuracy=0.5 + 0.1 * seed) for seed in (0, 1)]
    panels = [Curves("MNIST", {"FedSiKD": run_dirs, "FedAvg": []}), Curves("HAR", {"FedSiKD": [], "FedAvg": []})]
    draw_comparison(panels, tmp_path / "figure.png", "Figure 3")
    assert_is_picture(tmp_path / "figure.png")
    draw_comparison(panels[1:], tmp_path / "empty.png")
    assert_is_picture(tmp_path / "empty.png")
