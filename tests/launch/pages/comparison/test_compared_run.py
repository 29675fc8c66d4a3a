"""A run folder is read for the page: what it computed, its rounds, its clients; or refused in one line."""

import json
import pathlib

import numpy as np
import pytest

from launch.pages.comparison.compared_run import read_compared_run
from launch.pages.comparison.content import to_plain
from launch.runs.run_records import RunRecordError
from launch.runs.tables import format_cell, write_table


@pytest.fixture
def run_dir(write_sweep):
    return write_sweep([3], [7]) / "T3" / "fedsikd_mnist_alpha0.1" / "seed_7"


@pytest.fixture
def read(run_dir, change_flags):
    """(name of the data, **flags) -> the run whose `config.json` has these in place of its own."""

    def read_changed(name=None, /, **flags):
        change_flags(run_dir, **flags)
        config = json.loads((run_dir / "config.json").read_text())
        (run_dir / "config.json").write_text(json.dumps(config | {"data": {"dataset": name} if name else {}}))
        return read_compared_run(run_dir, "one")

    return read_changed


def test_rounds_get_the_bytes_and_seconds_up_to_their_end(run_dir):
    run = read_compared_run(run_dir, "one")
    assert (run.name, run.title, run.flags["seed"]) == ("one", "FedSiKD", 7)
    assert run.columns["total_bytes"].tolist() == [6e6, 12e6, 18e6]
    assert run.columns["seconds"].tolist() == [1.5, 3, 4.5]
    assert "client_test_accuracy" not in run.columns, "its cells are all empty"


def test_the_sizes_of_the_test_sets_are_known_by_column(run_dir):
    assert read_compared_run(run_dir, "one").test_sizes == {}
    config = json.loads((run_dir / "config.json").read_text())
    config["data"] |= {"num_test": 359, "num_client_test": 119}
    (run_dir / "config.json").write_text(json.dumps(config))
    sizes = read_compared_run(run_dir, "one").test_sizes
    assert (sizes["test_accuracy"], sizes["test_loss"], sizes["client_test_accuracy"]) == (359, 359, 119)


def test_flags_say_what_was_computed_and_not_where(run_dir):
    flags = read_compared_run(run_dir, "one").flags
    assert flags["temperature"] == 3 and flags["experiment"] == "fedsikd_mnist_alpha0.1"
    places = {"run_dir", "data_dir", "overwrite", "resume", "ray_address", "run_page"}
    assert not {*places, "labels_per_client"} & flags.keys(), "the last does nothing beside the others"


def test_an_old_run_has_the_flags_of_today_and_a_subset_its_own_name(read):
    flags = read("mnist subset", device=None).flags
    assert (flags["device"], flags["dataset"]) == ("cpu", "mnist subset")
    assert list(flags)[:2] == ["experiment", "algo"] and list(flags)[-1] == "device"


def test_flags_that_do_nothing_beside_the_others_are_left_out(read):
    flags = read(partition="shards").flags
    assert flags["labels_per_client"] == 2 and "dirichlet_alpha" not in flags


def test_ones_own_data_are_called_by_their_file_and_the_run_by_its_title(read):
    run = read("npz", dataset="npz", npz="/data/tumours.npz")
    assert run.flags["dataset"] == "tumours" and run.heading == "FedSiKD on tumours, alpha 0.1, seed 7"


def test_an_algorithm_that_is_not_there_any_more_is_called_as_the_flag(read):
    assert read(algo="gone_module:ALGORITHM").title == "gone_module:ALGORITHM"


def test_clients_have_text_and_numbers(run_dir):
    clients = read_compared_run(run_dir, "one").clients
    assert clients["client"] == ["client_0", "client_1", "client_2", "new"]
    np.testing.assert_array_equal(clients["accuracy"], [0.5, 0.6, 0.7, np.nan])


def test_names_stay_names_where_they_look_like_numbers_or_hide(run_dir):
    names = ["007", "-5", "nan", "a\u202eb"]
    write_table(run_dir / "clients.csv", ["client", "model"], [[format_cell(name)] * 2 for name in names])
    clients = read_compared_run(run_dir, "one").clients
    assert clients["client"] == clients["model"] == names
    assert to_plain(clients["client"]) == ["007", "-5", "nan", "a\\u202eb"]
    assert read_compared_run(run_dir, "a\x1b\u202e\udcfc").name == "a\\u001b\\u202e\\udcfc"


@pytest.mark.parametrize(
    "change", [pathlib.Path.unlink, lambda path: path.write_text("round,round_s\n1,2\n")], ids=["none", "of others"]
)
def test_without_clients_and_timing_of_these_rounds_the_rest_is_read(run_dir, change):
    (run_dir / "clients.csv").unlink()
    change(run_dir / "timing.csv")
    run = read_compared_run(run_dir, "one")
    assert not run.clients and "seconds" not in run.columns


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("summary.json", None, "not finished"),
        ("summary.json", "{", "summary.json: cannot be read"),
        ("config.json", "[]", "expected a JSON object"),
        ("metrics.csv", "", "its tables cannot be read"),
        ("metrics.csv", "round,test_accuracy\n", "holds no round"),
        ("metrics.csv", "other\n1\n", "its tables cannot be read"),
        ("metrics.csv", "round\n\0\n", "its tables cannot be read"),
        ("clients.csv", "client,accuracy\na\n", "its tables cannot be read"),
        ("checksums.sha256", "0\n", "checksums.sha256: damaged"),
    ],
)
def test_what_cannot_be_read_is_one_line(run_dir, name, content, expected):
    (run_dir / name).unlink(missing_ok=True)
    if content is not None:
        (run_dir / name).write_text(content)
    with pytest.raises(RunRecordError, match=expected) as raised:
        read_compared_run(run_dir, "one")
    assert "\n" not in str(raised.value)


def test_the_folder_of_the_seeds_is_the_experiment_of_a_run_without_a_flagfile(run_dir):
    target = run_dir.parents[2] / "my_sweep" / "seed_7"
    target.parent.mkdir()
    run_dir.rename(target)
    assert read_compared_run(target, "one").flags["experiment"] == "my_sweep"
    assert "experiment" not in read_compared_run(target.rename(target.parent / "other"), "one").flags
