"""From a config to clients: the data-set flags arrive, and a smoke run gets random arrays of the same shape."""

import dataclasses

import numpy as np
import pytest

from datasets.catalog import DatasetOptions
from launch.experiment_config import ExperimentConfig, build_experiment_config
from launch.federation import load_federated_data


def load(tmp_path, **values):
    return load_federated_data(
        build_experiment_config({"algo": "fedavg", "partition": "natural", "shard_dir": str(tmp_path), **values})
    )


def test_every_option_of_a_data_set_has_a_flag_with_the_same_default():
    config = build_experiment_config({"algo": "fedavg", "data_dir": ""})
    assert isinstance(config, ExperimentConfig)
    for field in dataclasses.fields(DatasetOptions):
        if field.name != "download":
            assert getattr(config, field.name) == (field.default or type(getattr(config, field.name))()), field.name


def test_a_building_of_the_flags_is_simulated(tmp_path):
    values = {"dataset": "building", "building_num_sensors": 3, "building_csv": str(tmp_path / "x.csv")}
    data = load(tmp_path, **values)
    assert [client.name[:10] for client in data.clients] == ["sensor_000", "sensor_001", "sensor_002"]
    assert data.num_dropped > 0 and (tmp_path / "x.csv").exists()
    assert data.digest == load(tmp_path, **values, building_heterogeneity="medium").digest
    assert data.digest != load(tmp_path, **values, building_heterogeneity="high").digest


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        ({"dataset": "building"}, (8,)),
        ({"dataset": "occupancy"}, (2,)),
        ({"dataset": "occupancy", "occupancy_features": "all"}, (5,)),
        ({"dataset": "har", "har_features": "inertial"}, (128, 9)),
    ],
)
def test_smoke_gets_random_arrays_of_the_shape(tmp_path, values, shape):
    data = load(tmp_path, **values, smoke=True)
    assert data.input_shape == shape and len(data.clients) >= 3
    assert np.isfinite(data.read_split(data.clients[0], "train")[0]).all()
