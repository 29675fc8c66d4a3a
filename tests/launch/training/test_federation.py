"""From a config to clients: the data-set flags arrive, and a smoke run gets random arrays of the same shape."""

import dataclasses
import importlib
import json
import sys

import numpy as np
import pytest

from datasets.catalog import DatasetOptions, locate
from datasets.download import search_dirs
from datasets.errors import DatasetError
from datasets.partition_settings import ArchetypeSettings
from launch import evaluate, export, train
from launch.runs.columns import CONFIG_FILE
from launch.settings.data_flags import choose_options
from launch.settings.run_config import RunConfig, build_run_config, flag_values
from launch.training.federation import load_federated_data


def load(tmp_path, **values):
    return load_federated_data(
        build_run_config({"algo": "fedavg", "partition": "natural", "client_dir": str(tmp_path), **values})
    )


def test_every_option_of_a_data_set_has_a_flag_with_the_same_default():
    flags = flag_values(build_run_config({"algo": "fedavg", "data_dir": ""}))
    for field in dataclasses.fields(DatasetOptions):
        if field.name not in ("download", "task"):
            assert flags[field.name] == field.default, field.name
    assert choose_options(flags) == DatasetOptions()  # --task=auto stands for the task that the labels tell


def test_a_building_of_the_flags_is_simulated(tmp_path):
    values = {"dataset": "building", "building_num_sensors": 3, "building_csv": str(tmp_path / "x.csv")}
    data = load(tmp_path, **values)
    assert [client.name[:10] for client in data.clients] == ["sensor_000", "sensor_001", "sensor_002"]
    assert data.num_dropped > 0 and (tmp_path / "x.csv").exists()
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
    assert data.format.input_shape == shape and len(data.clients) >= 3
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


OWN_DATA = """
import numpy as np
from datasets.arrays import make_array_dataset
from datasets.example_format import ExampleFormat
from datasets.catalog import Dataset

FORMAT = ExampleFormat((2,), "float32", ("low", "high"))

def load(options):
    y = np.arange(60) % 2
    x = np.stack([y, y], axis=1).astype(np.float32)
    return make_array_dataset("waves", (x, y), (x, y), FORMAT, np.arange(60) % 4)

DATASET = Dataset("waves", loader=load, format=FORMAT, clients="buoys", partition="natural")
"""


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    (tmp_path / "my_waves.py").write_text(OWN_DATA)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("my_waves", None)


def test_a_users_own_data_set_is_read_and_drawn(own_folder):
    config = build_run_config({"algo": "fedavg", "dataset": "my_waves:DATASET", "client_dir": str(own_folder)})
    assert config.partition == "natural"
    data = load_federated_data(config)
    assert data.dataset == "waves" and [client.name for client in data.clients] == [f"client_{n}" for n in range(4)]
    smoke = load_federated_data(dataclasses.replace(config, smoke=True))
    assert [client.name for client in smoke.clients] == ["waves_0", "waves_1", "waves_2"]
    assert smoke.digest != data.digest


@pytest.mark.parametrize("command", ["resume", "evaluate", "export"])
def test_a_run_whose_data_set_is_gone_is_one_line(own_folder, capsys, command):
    run_dir = own_folder / "run"
    run_dir.mkdir()
    flags = flag_values(build_run_config({"algo": "fedavg", "dataset": "my_waves:DATASET"}))
    assert flags["dataset"] == "my_waves:DATASET"
    (run_dir / CONFIG_FILE).write_text(json.dumps({"flags": flags}))
    (own_folder / "my_waves.py").unlink()
    del sys.modules["my_waves"]
    importlib.invalidate_caches()
    main, *arguments = {
        "resume": (train.main, "--resume"),
        "evaluate": (evaluate.main,),
        "export": (export.main,),
    }[command]
    assert main([f"--run_dir={run_dir}", *arguments]) == 2
    expected = "error: --dataset=my_waves:DATASET: no module named my_waves; run from the folder that holds it"
    written = capsys.readouterr().err
    assert written.startswith(expected) and written.count("\n") == 1


@pytest.mark.parametrize("content", ["raise RuntimeError('so\\nit is')", "import sys; sys.exit(0)", "DATASET = 3"])
def test_a_module_that_fails_is_one_line_and_exit_code_2(own_folder, capsys, content):
    (own_folder / "my_waves.py").write_text(content)
    assert train.main(["--algo=fedavg", "--dataset=my_waves:DATASET", f"--run_dir={own_folder / 'run'}"]) == 2
    written = capsys.readouterr().err
    assert written.startswith("error: --dataset=my_waves:DATASET: ") and written.count("\n") == 1
    assert not (own_folder / "run").exists()


def test_what_a_users_own_numbers_show_is_noted(own_folder):
    own = own_folder / "my_waves.py"
    own.write_text(OWN_DATA.replace("np.float32)", "np.float32) * np.float32(1e4)"))
    config = build_run_config({"algo": "fedavg", "dataset": "my_waves:DATASET", "client_dir": str(own_folder)})
    (note,) = load_federated_data(config).notes
    assert note.startswith("feature 0 (counted from 0) has a mean of 5e+03") and note.endswith(
        "--standardize=federated"
    )
    assert load_federated_data(dataclasses.replace(config, smoke=True)).notes == ()


def test_a_file_is_read_by_its_flags(tmp_path):
    x = np.arange(60 * 2 * 5 * 6).reshape(60, 2, 5, 6) % 256
    np.savez(tmp_path / "mine.npz", x=x.astype(np.uint8), y=np.arange(60) % 3, client=np.arange(60) // 6)
    values = {"dataset": "npz", "npz": str(tmp_path / "mine.npz")}
    data = load(tmp_path, **values)
    assert (
        data.format.input_shape == (5, 6, 2) and data.reading == "images of 5 x 6 pixels, 2 channels, scaled by 1/255"
    )
    assert len(data.clients) == 10 and len(data.notes) == 1
    data = load(tmp_path, **values, layout="features", scale="1/16")
    assert data.format.input_shape == (60, 1) and data.reading == "60 features, scaled by 1/16" and data.notes == ()


def test_our_own_data_get_no_notes(tmp_path):
    data = load_federated_data(build_run_config({"algo": "fedavg", "client_dir": str(tmp_path)}))
    assert data.notes == () and data.reading == "images of 8 x 8 pixels, 1 channel, scaled by 1/16"
    data = load(tmp_path, dataset="building", building_num_sensors=3)
    assert data.notes == () and data.reading == "8 features, as they are"


@pytest.mark.parametrize("dataset", ["mnist", "cifar10", "har", "occupancy"])
def test_a_data_folder_that_does_not_exist_is_refused_and_not_made(tmp_path, monkeypatch, dataset):
    monkeypatch.setenv("FL_DATA_DIR", str(tmp_path / "from_variable"))
    for values in ({}, {"data_dir": str(tmp_path / "gone")}):
        with pytest.raises(DatasetError, match=r"^data_dir=.*(gone|from_variable): no such folder; make it, or name"):
            load_federated_data(build_run_config({"algo": "fedavg", "dataset": dataset, **values}))
    assert not list(tmp_path.iterdir())


def test_an_empty_data_folder_is_none(tmp_path, monkeypatch):
    """`FL_DATA_DIR=` must not mean the current folder."""
    monkeypatch.setenv("FL_DATA_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mnist.npz").write_bytes(b"")
    assert search_dirs(RunConfig(algo="fedavg").data_dir, "mnist") == search_dirs(None, "mnist")
    assert not locate("mnist", "").found


def test_what_names_the_data_whatever_the_seed_is_that_of_a_users_file(tmp_path):
    rows = [f"c{i % 3},{i},{-i},{'yes' if i % 2 else 'no'}" for i in range(60)]
    (tmp_path / "table.csv").write_text("\n".join(["client,a,b,label", *rows, ""]))
    np.savez(tmp_path / "mine.npz", x=np.arange(120, dtype=np.float32).reshape(60, 2), y=np.arange(60) % 2)
    table, npz = {"data": str(tmp_path / "table.csv")}, {"dataset": "npz", "npz": str(tmp_path / "mine.npz")}

    def identify(seed, **flags):
        values = {"algo": "fedavg", "partition": "iid", "client_dir": str(tmp_path / "clients"), "num_clients": 2}
        return load_federated_data(build_run_config({**values, **flags, "seed": seed}))

    for flags, kind in ((table, "source_digest"), (npz, "source_digest"), ({}, "arrays_digest")):
        one, other = (identify(seed, **flags) for seed in (0, 1))
        assert list(one.source_digests) == list(other.source_digests) == [kind]
        assert (one.source_digests == other.source_digests) is bool(flags) and one.digest != other.digest
