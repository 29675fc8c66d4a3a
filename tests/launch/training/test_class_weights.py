"""The class weights and the loss of a run: from flag and data to its task, its records, and what needs no trust."""

import dataclasses
import json

import numpy as np
import pytest
from small_formats import change_format

from datasets.errors import DatasetError
from datasets.example_format import LabelFormat
from launch.runs.data_versions import find_data_versions
from launch.runs.errors import RunFolderError
from launch.runs.run_description import check_same_data, describe_data
from launch.runs.run_folder import RunFolder
from launch.runs.stored_data import read_data_section
from launch.runs.tables import write_json, write_table
from launch.settings.errors import FlagError
from launch.settings.flags import parse_config, read_stored_flags
from launch.settings.run_config import build_run_config, flag_values
from launch.settings.trusted_modules import list_modules
from launch.training.announcements import find_start
from launch.training.class_weights import weigh_classes
from launch.training.federation import build_run_task
from launch.training.finished_run import read_finished_run
from launch.training.training_run import check_task
from models.model_names import ModelError
from tff_algos.settings.config_fields import ConfigError

LOSS = """
def twice(labels, outputs):
    import tensorflow as tf
    return 2 * tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs)
"""


def make_config(**flags):
    return build_run_config({"algo": "fedavg", **flags})


@pytest.fixture
def data(make_federation):
    """Two clients with 6, 2 and 0 examples of the three classes a, b and c."""
    federation = change_format(make_federation([3, 5]), class_names=("a", "b", "c"))
    return dataclasses.replace(federation, label_counts=np.array([[3, 0, 0], [3, 2, 0]]))


def test_balanced_weights_are_said_and_kept(data, tmp_path):
    config = make_config(class_weights="balanced")
    weighed = weigh_classes(config, data)
    # 8 / (2 * 6) and 8 / (2 * 2); c has no example.
    assert weighed.class_weights == pytest.approx((2 / 3, 2.0, 1.0))
    assert list(find_start(config, RunFolder(tmp_path, is_new=True), weighed))[-2:] == [
        ("weights", "of the classes' losses in training (balanced): a: 0.6667, b: 2, c: 1; tests have none"),
        ("note", "no client trains on an example of c: such a class weighs 1"),
    ]
    section = json.loads(json.dumps(describe_data(weighed)))
    assert section["class_weights"] == pytest.approx([2 / 3, 2, 1]) and "class_weights_digest" not in section
    read_data_section(section, "config.json")
    task = build_run_task(config, weighed.format, weighed.class_weights)
    assert task.class_weights == weighed.class_weights and task.own_loss is None


def test_without_the_flag_nothing_changes(data):
    assert weigh_classes(make_config(), data) is data
    assert "class_weights" not in describe_data(data)


def test_a_changed_file_is_other_data(data, tmp_path):
    path = tmp_path / "w.json"
    path.write_text('{"a": 1, "b": 2, "c": 3}')
    config = make_config(class_weights=str(path))
    weighed = weigh_classes(config, data)
    folder = RunFolder(tmp_path, is_new=False)
    write_json(folder.config, {"flags": flag_values(config), "data": describe_data(weighed)})
    path.write_text('{"c": 3.0, "a": 1.0, "b": 2.0}')
    check_same_data(folder, weigh_classes(config, data))  # the same in other words
    path.write_text('{"a": 1, "b": 2, "c": 4}')
    with pytest.raises(RunFolderError, match=r"changed since it began \(class_weights_digest, class_weights\)"):
        check_same_data(folder, weigh_classes(config, data))
    folder.close()
    flags = flag_values(config)
    sums = [{"digest": "0" * 64, "class_weights_digest": letter * 64} for letter in "aab"]
    assert find_data_versions([(flags, each) for each in sums]) == [
        *["data 00000000, weights aaaaaaaa"] * 2,
        "data 00000000, weights bbbbbbbb",
    ]


@pytest.mark.parametrize("change", [lambda weights: [*weights, 1.0], lambda weights: [-1.0, 1, 1], lambda weights: "x"])
def test_damaged_weights_are_one_line(data, change):
    section = describe_data(weigh_classes(make_config(class_weights="balanced"), data))
    section["class_weights"] = change(section["class_weights"])
    with pytest.raises(RunFolderError, match=r"damaged, its data has (another number of )?class_weights"):
        read_data_section(section, "config.json")


def test_what_cannot_be_weighed_is_one_line(data):
    balanced = make_config(class_weights="balanced")
    with pytest.raises(ConfigError, match="expected a file of weights: the labels of 2 clients are too many"):
        weigh_classes(balanced, dataclasses.replace(data, label_counts=np.zeros((2, 0), np.int64)))
    numbers = change_format(data, labels=LabelFormat("regression", (), 1, (10.0,), (5.0,)), class_names=())
    for flag in ("balanced", "w.json"):
        with pytest.raises(ConfigError, match="expected none, since the labels of the task regression are no classes"):
            weigh_classes(make_config(class_weights=flag), numbers)
    with pytest.raises(DatasetError, match=r"class_weights=w\.csv: No such file"):
        weigh_classes(make_config(class_weights="w.csv"), data)
    with pytest.raises(FlagError, match="--class_weights=balanced: expected none or a file with privacy"):
        parse_config(["--algo=fedavg", "--class_weights=balanced", "--dp_epsilon=2", "--client_weighting=equal"])


@pytest.fixture
def own_loss(tmp_path, monkeypatch):
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "kept_loss.py").write_text(LOSS)
    monkeypatch.chdir(tmp_path / "modules")
    monkeypatch.syspath_prepend("")
    return "kept_loss:twice"


def test_an_own_loss_is_for_every_data_set(data, own_loss):
    config = parse_config(["--algo=fedavg", f"--loss={own_loss}"])
    check_task(config, data)
    assert list_modules(flag_values(config)) == ["kept_loss"]
    task = build_run_task(config, data.format, (1.0, 1.0, 2.0))
    losses = task.compute_training_losses(np.int32([0, 2]), np.zeros((2, 3), np.float32))
    np.testing.assert_allclose(losses, [2 * np.log(3), 4 * np.log(3)], rtol=1e-6)
    np.testing.assert_allclose(task.compute_losses(np.int32([0]), np.zeros((1, 3), np.float32)), [np.log(3)], rtol=1e-6)
    with pytest.raises(ConfigError, match="loss=huber: expected auto or cross_entropy for the task classif"):
        check_task(make_config(loss="huber"), data)
    with pytest.raises(ModelError, match="loss=kept_loss:none: expected none in kept_loss"):
        build_run_task(make_config(loss="kept_loss:none"), data.format)


def test_a_finished_run_needs_its_loss_only_to_train_further(data, own_loss, tmp_path):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    config = make_config(loss=own_loss, class_weights="balanced", model="logistic_regression")
    section = describe_data(weigh_classes(config, data))
    write_json(run_dir / "config.json", {"flags": flag_values(config), "data": section})
    write_json(run_dir / "summary.json", {"rounds": 1, "fedavg": {}})
    write_table(run_dir / "clients.csv", ["client", "model"], [["client_0", "global"]])
    with pytest.raises(FlagError, match="the run needs your module kept_loss, whose code would run"):
        read_stored_flags(str(run_dir))  # as to resume
    run = read_finished_run(str(run_dir))
    assert run.build_spec().task.own_loss is None
    with pytest.raises(FlagError, match="the run needs your module kept_loss, whose code would run"):
        run.build_spec(to_train=True)
    task = read_finished_run(str(run_dir), trusted={"kept_loss"}).build_spec(to_train=True).task
    assert task.own_loss is not None and task.class_weights == pytest.approx((2 / 3, 2.0, 1.0))
    write_json(
        run_dir / "config.json", {"flags": flag_values(config), "data": section, "own_modules": {"kept_loss": ""}}
    )
    with pytest.raises(
        RunFolderError, match=r"your code changed since the run \(kept_loss\), by whose loss its models"
    ):
        read_finished_run(str(run_dir), trusted={"kept_loss"}).build_spec(to_train=True)
