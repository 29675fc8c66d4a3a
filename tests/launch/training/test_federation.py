"""From a config to clients: the data-set flags arrive, and a smoke run gets random arrays of the same shape."""

import dataclasses

import numpy as np
import pytest

from datasets.archetypes import ArchetypeSettings
from datasets.catalog import DatasetOptions
from launch.settings.run_config import RunConfig, build_run_config
from launch.training.federation import load_federated_data


def load(tmp_path, **values):
    return load_federated_data(
        build_run_config({"algo": "fedavg", "partition": "natural", "shard_dir": str(tmp_path), **values})
    )


def test_every_option_of_a_data_set_has_a_flag_with_the_same_default():
    config = build_run_config({"algo": "fedavg", "data_dir": ""})
    assert isinstance(config, RunConfig)
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


def test_every_setting_of_archetypes_has_a_flag_with_the_same_default():
    config = build_run_config({"algo": "fedavg"})
    assert all(getattr(config, field.name) == field.default for field in dataclasses.fields(ArchetypeSettings))


def test_settings_of_archetypes_arrive(tmp_path):
    values = {"partition": "hierarchical", "clients_per_archetype": 2, "train_per_client": 50, "test_per_client": 0}
    data = load(tmp_path, **values, bias_min=0.5, bias_max=0.5)
    assert data.archetypes.of_clients[:4] == (0, 0, 1, 1) and data.archetypes.names[3] == "3"
    assert {(client.num_train, client.num_test) for client in data.clients} == {(50, 0)}
    assert data.label_counts[2].tolist() == [7, 25, 6, 6, 6, 0, 0, 0, 0, 0]  # half, and 25 / 4 = 6.25 each
    data = load(tmp_path, partition="hypergeometric", hypergeometric_draws=10)
    assert data.label_counts[0, 6:].sum() == 0 and len(data.clients) == 30


@pytest.mark.parametrize("dataset", ["digits", "mnist"])
@pytest.mark.parametrize("partition", ["hierarchical", "hypergeometric"])
def test_smoke_arrays_have_enough_for_archetypes(tmp_path, dataset, partition):
    data = load(tmp_path, dataset=dataset, partition=partition, smoke=True)
    assert len(data.clients) == len(data.archetypes.names)
