"""Which models a Flower app can be of, and what is told to its nodes; what is written whole is in test_export.py."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest
from small_formats import change_format

from launch.settings.errors import FlagError
from launch.settings.run_config import build_run_config
from launch.tflite import flower_app
from launch.tflite.export_plan import ExportJob, ExportRequest
from models.model_names import ModelError


def make_run(task="classification", takes_tokens=False, standardize="none"):
    kind = SimpleNamespace(is_classification=task == "classification", kind=SimpleNamespace(name=task))
    return SimpleNamespace(
        task=kind,
        format=SimpleNamespace(takes_tokens=takes_tokens),
        config=SimpleNamespace(standardize=standardize),
    )


@pytest.mark.parametrize(
    ("run", "names", "line"),
    [
        (make_run("regression"), "a", "an app trains a model of classification, and the run's task is regression"),
        (make_run(takes_tokens=True), "a", "an app trains a model that takes numbers, and the run's takes tokens"),
        (make_run(standardize="client"), "a", "an app trains a model whose features all clients scale alike, and the"),
        (make_run(), "ab", "an app trains one model, but the run has a, b; choose one with --model"),
    ],
)
def test_what_has_no_app_is_refused_in_a_line(run, names, line):
    with pytest.raises(FlagError, match=f"^--flower_app: {line}"):
        flower_app.check_models(run, [SimpleNamespace(name=name) for name in names])
    flower_app.check_models(make_run(), [SimpleNamespace(name="a")])


def test_an_app_asks_for_a_file_that_trains_all_or_what_is_asked_for():
    assert flower_app.ask_for_training(ExportRequest()).on_device_training == "none"
    assert flower_app.ask_for_training(ExportRequest(flower_app="app")).on_device_training == "full"
    head = ExportRequest(flower_app="app", on_device_training="head")
    assert flower_app.ask_for_training(head) is head


@pytest.mark.parametrize(
    ("operators", "most_bytes", "line"),
    [
        (
            ["Restore", "Save", "Erf"],
            10**6,
            "flower_app: training global takes TensorFlow's Erf, which LiteRT alone lac",
        ),
        (
            ["Restore", "Save"],
            10,
            r"flower_app: global takes 0\.0 MB, file and weights, and Flower sends apps of at mo",
        ),
    ],
)
def test_a_model_that_nodes_cannot_train_leaves_no_folder(
    tmp_path, make_federation, monkeypatch, operators, most_bytes, line
):
    monkeypatch.setattr(flower_app, "MOST_BYTES", most_bytes)
    (tmp_path / "global.training.tflite").write_bytes(b"file")
    told = {"select_operators": operators, "weights": ["weight_0"], "batch_size": 16}
    (tmp_path / "global.training.json").write_text(json.dumps(told))
    run = SimpleNamespace(config=build_run_config({"algo": "fedavg"}))
    job = ExportJob(run, make_federation([3]), ExportRequest(flower_app=str(tmp_path / "app")), tmp_path, None, {})
    with pytest.raises(ModelError, match=f"^{line}"):
        flower_app.write_flower_app(job, SimpleNamespace(name="global"), (np.zeros(3, np.float32),))
    assert not (tmp_path / "app").exists()


def test_nodes_of_a_table_are_told_its_columns_and_of_another_reading_the_shape_alone(tmp_path, make_federation):
    (tmp_path / "ill.csv").write_text(
        "age,ward,ill\n" + "".join(f"{20 + i},{'AB'[i % 2]},{i % 2}\n" for i in range(40))
    )
    flags = {"algo": "fedavg", "dataset": "files", "data": str(tmp_path / "ill.csv"), "label_column": "ill"}
    config = build_run_config({**flags, "standardize": "federated"})
    data = change_format(make_federation([3]), class_names=("0", "1"))
    described = flower_app.describe(config, data)
    assert [column["name"] for column in described["table"]["columns"]] == ["age", "ward"]
    assert described["arrays"]["input_shape"] == list(data.format.input_shape)
    assert list(flower_app.describe(dataclasses.replace(config, window=4), data)) == ["arrays"]
