"""What the building allows: trees that know the sensor, fitted on the train days and judged on the later ones."""

import functools
import importlib

import numpy as np
import pytest
import threadpoolctl
from small_formats import format_of

from datasets.arrays import make_array_dataset
from datasets.building.readings import BUILDING_FORMAT
from reproductions.amfl_p import pooled_reference
from reproductions.amfl_p.pooled_reference import (
    COLUMNS,
    add_sensor_features,
    compute_majority,
    compute_pooled_accuracy,
    compute_rows,
    main,
    read_pooled,
)


@pytest.fixture(autouse=True)
def one_thread():
    """On data this small several threads mostly wait for each other, and for minutes where other jobs run."""
    importlib.import_module("sklearn.ensemble")  # only threads of what is loaded are limited
    with threadpoolctl.threadpool_limits(1, user_api="openmp"):
        yield


def test_a_reading_gets_its_sensor_and_what_is_usual_for_it():
    x, usual = np.array([[1.0], [2.0]]), np.array([[10.0, 0.5], [20.0, 0.25]])
    np.testing.assert_array_equal(
        add_sensor_features(x, np.array([1, 0]), usual), np.array([[1, 1, 20, 0.25], [2, 0, 10, 0.5]], np.float32)
    )


def test_knowing_the_sensor_makes_the_difference():
    """Two sensors give the same reading opposite labels: without the sensor, half would be right."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 8)).astype(np.float32)
    sensors = np.arange(800) % 2
    y = ((x[:, 0] > 0) ^ (sensors == 1)).astype(int)
    arrays = make_array_dataset(
        "building",
        (x[:600], y[:600]),
        (x[600:], y[600:]),
        format_of(x[:600], BUILDING_FORMAT.class_names, BUILDING_FORMAT.preprocessing),
        clients=sensors[:600],
        test_clients=sensors[600:],
    )
    assert compute_pooled_accuracy(arrays, 0) > 0.95


def test_the_majority_is_that_of_each_sensor_s_train_days():
    """Sensor 0 has seen 1 1 0 and is right for one of two; sensor 1 has seen 2 and is right for all: 3/4."""
    arrays = make_array_dataset(
        "building",
        (np.zeros((4, 8), np.float32), np.array([1, 1, 0, 2])),
        (np.zeros((3, 8), np.float32), np.array([1, 0, 2])),
        format_of(np.zeros((4, 8), np.float32), BUILDING_FORMAT.class_names, BUILDING_FORMAT.preprocessing),
        clients=np.array([0, 0, 0, 1]),
        test_clients=np.array([0, 0, 1]),
    )
    assert compute_majority(arrays) == 0.75


def test_the_command_writes_what_the_report_reads(tmp_path, monkeypatch, capsys):
    path = tmp_path / "pooled.csv"
    monkeypatch.setattr(pooled_reference, "BUILDING_HETEROGENEITY", ("low", "structured"))
    monkeypatch.setattr(pooled_reference, "compute_rows", functools.partial(compute_rows, [1], 2))
    monkeypatch.setattr(
        pooled_reference, "compute_pooled_accuracy", lambda arrays, seed: len(arrays.test_y) * seed / 1e4
    )
    assert main([f"--output={path}"]) == 0
    pooled = read_pooled(path)
    assert list(pooled.columns) == list(COLUMNS)
    assert list(pooled.heterogeneity) == ["low", "structured"] and set(pooled.seed) == {1}
    assert pooled.majority.between(0.2, 0.9).all() and pooled.accuracy.between(0, 1, inclusive="right").all()
    assert f"{pooled.accuracy[0]:.4f}" in capsys.readouterr().out
    assert read_pooled(tmp_path / "absent.csv").empty


@pytest.mark.parametrize("arguments", [["--seeds=0"], ["--", "x"]])
def test_a_wrong_request_is_one_line(arguments, capsys):
    assert main(arguments) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
