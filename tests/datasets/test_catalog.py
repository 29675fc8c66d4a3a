"""The catalog of data sets: its rows, what they name, and what is said of a wrong request."""

import subprocess
import sys

import numpy as np
import pytest
from refusals import assert_refused

from datasets import catalog
from datasets.building.physics import DEGREES
from datasets.catalog import DATASETS, Dataset
from datasets.dataset import DatasetOptions, resolve_reference
from datasets.example_format import ExampleFormat
from datasets.har import HAR_FORMATS
from datasets.occupancy import OCCUPANCY_FORMATS
from datasets.options import BUILDING_HETEROGENEITY, HAR_FEATURES, OCCUPANCY_FEATURES


def test_names_cost_nothing_to_import():
    code = "import sys; from datasets.catalog import DATASET_NAMES; print({'numpy', 'sklearn'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_the_names_of_variants_are_those_of_the_loaders():
    assert tuple(HAR_FORMATS) == HAR_FEATURES
    assert tuple(DEGREES) == BUILDING_HETEROGENEITY
    assert tuple(OCCUPANCY_FORMATS) == OCCUPANCY_FEATURES


@pytest.mark.parametrize("row", DATASETS.values(), ids=lambda row: row.name)
def test_what_a_row_names_is_there(row):
    """Rows name their code by strings, which no import checks."""
    assert row.name in catalog.DATASET_NAMES
    assert callable(resolve_reference(row.loader))
    assert row.format is None or isinstance(row.find_format(DatasetOptions()), ExampleFormat)
    assert (row.locate is None) == bool(row.origin)
    assert row.find("nowhere").description
    partition = row.find_partition(DatasetOptions())
    assert partition in ("", "natural") and (row.clients or not partition)


def test_titles():
    assert [catalog.get_title(name) for name in ("mnist", "cifar10", "digits")] == ["MNIST", "CIFAR-10", "digits"]
    assert catalog.get_title("cifar10 subset (4 + 1 images)") == "cifar10 subset (4 + 1 images)"


def test_a_wrong_name_gets_the_nearest_one():
    assert_refused(
        r"dataset=minst: expected one of .* as module:OBJECT; did you mean mnist\?", catalog.check_dataset_name, "minst"
    )
    catalog.check_dataset_name("my_package.my_module:DATASET")
    for wrong in ("my module:DATASET", "my_module:", ":DATASET", "my_module:DATA SET", "a:b:c"):
        assert_refused("expected one of", catalog.check_dataset_name, wrong)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "My Set"}, "name='My Set'"),
        ({"name": None}, "name=None"),
        ({"loader": None}, "loader is None"),
        ({"loader": "load"}, "loader is 'load'"),
        ({"smoke_sizes": (3,)}, "smoke_sizes"),
        ({"smoke_sizes": (3, 0)}, "smoke_sizes"),
        ({"terms": "CC BY 4.0"}, "terms"),
    ],
)
def test_a_row_is_checked(fields, message):
    Dataset("toy", loader=print)
    assert_refused(message, Dataset, **{"name": "toy", "loader": print, **fields})


def test_loads_digits_and_a_users_file(tmp_path):
    assert catalog.load_arrays("digits").name == "digits"
    np.savez(tmp_path / "mine.npz", x=np.zeros((10, 2)), y=np.arange(10) % 2)
    assert catalog.load_arrays("npz", DatasetOptions(npz=str(tmp_path / "mine.npz"))).name == "npz"


def test_options_reach_the_building(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.building.readings.NUM_TRAIN_DAYS", 2)
    options = DatasetOptions(building_num_sensors=2, building_csv=str(tmp_path / "readings.csv"))
    assert len(catalog.load_arrays("building", options).client_names) == 2
    assert (tmp_path / "readings.csv").exists()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("imagenet", {}, f"expected one of {', '.join(DATASETS)}, or your own"),
        ("npz", {}, r"--npz \("),
        ("mnist", {}, "not found"),
        ("har", {"har_features": "raw"}, "har_features=raw"),
        ("building", {"building_num_sensors": 0}, "building_num_sensors=0"),
        ("building", {"building_heterogeneity": "some"}, "building_heterogeneity=some"),
        ("occupancy", {}, "occupancy: not found; put datatraining.txt, datatest.txt, datatest2.txt into"),
        ("occupancy", {"occupancy_features": "light"}, "occupancy_features=light"),
        ("occupancy", {"occupancy_client_hours": 0}, "occupancy_client_hours=0"),
    ],
)
def test_wrong_requests(name, options, message):
    assert_refused(message, catalog.load_arrays, name, DatasetOptions(**options, download=False))


def test_locate_says_what_is_where(tmp_path):
    assert all(catalog.locate(name).found for name in ("digits", "npz", "building"))
    wanted_files = {"mnist": "train-images-idx3-ubyte.gz", "har": "har.npz", "occupancy": "datatest2.txt"}
    for name, wanted in wanted_files.items():
        location = catalog.locate(name, str(tmp_path))
        assert not location.found and wanted in location.description and str(tmp_path / name) in location.description
    (tmp_path / "har.npz").touch()
    (tmp_path / "mnist.npz").touch()
    for name in ("datatraining.txt", "datatest.txt", "datatest2.txt"):
        (tmp_path / name).touch()
    assert catalog.locate("occupancy", str(tmp_path)).description == str(tmp_path)
    assert "har_inertial.npz beside it" in catalog.locate("har", str(tmp_path)).description
    assert catalog.locate("mnist", str(tmp_path)).description == f"{tmp_path} (mnist.npz)"
    assert_refused("imagenet", catalog.locate, "imagenet")


@pytest.mark.parametrize(
    ("dataset", "options", "model"),
    [
        ("shakespeare", {}, "char_lstm"),
        ("stackoverflow", {}, "word_lstm"),
        ("stackoverflow", {"stackoverflow_task": "tags"}, "logistic_regression"),
        ("emnist", {}, "emnist_cnn"),
        ("mnist", {}, ""),
    ],
)
def test_a_data_set_may_have_a_model_of_its_own(dataset, options, model):
    assert DATASETS[dataset].find_model(DatasetOptions(**options)) == model
