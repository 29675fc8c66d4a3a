"""The catalog of data sets: its rows, what they name, and what is said of a wrong request.

scikit-learn's digits: shapes, ranges and splits.

A user's own data set: what is accepted, and one line for each thing that can be wrong with it.

The random arrays of smoke runs look like the data that they stand in for.
"""

import importlib
import subprocess
import sys

import numpy as np
import pytest
from refusals import assert_refused

from datasets import catalog
from datasets.building.physics import DEGREES
from datasets.catalog import DATASETS, Dataset, find_dataset, load_arrays
from datasets.character_text import TOKEN_NAMES
from datasets.dataset import DatasetOptions, resolve_reference
from datasets.digits import _read_rows, load_digits
from datasets.example_format import ExampleFormat, LabelFormat, Preprocessing
from datasets.har import HAR_FORMATS
from datasets.occupancy import OCCUPANCY_FORMATS
from datasets.options import BUILDING_HETEROGENEITY, HAR_FEATURES, OCCUPANCY_FEATURES
from datasets.smoke import make_random_arrays


def test_names_and_digits_import_little():
    """Names cost nothing, and scikit-learn's import, which takes half a second, is left out."""
    program = (
        "import sys; from datasets.catalog import DATASETS, DatasetOptions; print({'numpy'} & set(sys.modules)); "
        "DATASETS['digits'].load(DatasetOptions()); print({'sklearn'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "set()\nset()\n"


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


@pytest.mark.parametrize(
    ("name", "title"),
    [("mnist", "MNIST"), ("cifar10", "CIFAR-10"), ("digits", "digits"), *[("cifar10 subset (4 + 1 images)",) * 2]],
)
def test_titles(name, title):
    assert catalog.get_title(name) == title


def test_a_wrong_name_gets_the_nearest_one():
    message = r"dataset=minst: expected one of .* as module:OBJECT; did you mean mnist\?"
    assert_refused(message, catalog.check_dataset_name, "minst")
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


def test_options_reach_the_building_and_a_users_file(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.building.readings.NUM_TRAIN_DAYS", 2)
    options = DatasetOptions(building_num_sensors=2, building_csv=str(tmp_path / "readings.csv"))
    assert len(catalog.load_arrays("building", options).client_names) == 2
    assert (tmp_path / "readings.csv").exists()
    np.savez(tmp_path / "mine.npz", x=np.zeros((10, 2)), y=np.arange(10) % 2)
    assert catalog.load_arrays("npz", DatasetOptions(npz=str(tmp_path / "mine.npz"))).name == "npz"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("imagenet", {}, f"expected one of {', '.join(DATASETS)}, or your own"),
        ("npz", {}, r"--npz \("),
        ("mnist", {}, "not found"),
        ("building", {"building_num_sensors": 0}, "building_num_sensors=0: expected a number at least 1"),
        ("building", {"building_heterogeneity": "some"}, "building_heterogeneity=some: expected one of low, medium"),
        *(
            (name, {option: "odd"}, f"{option}=odd: expected one of ")
            for name, option in (
                ("har", "har_features"),
                ("har", "har_split"),
                ("occupancy", "occupancy_features"),
                ("cifar100", "cifar100_form"),
                ("emnist", "emnist_labels"),
                ("stackoverflow", "stackoverflow_task"),
            )
        ),
        ("occupancy", {}, "occupancy: not found; put datatraining.txt, datatest.txt, datatest2.txt into"),
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
    for name in ("har.npz", "mnist.npz", "datatraining.txt", "datatest.txt", "datatest2.txt"):
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


def test_the_rows_are_those_of_scikit_learn():
    import sklearn.datasets

    bunch = sklearn.datasets.load_digits()
    np.testing.assert_array_equal(_read_rows(), np.column_stack([bunch.data, bunch.target]))


def test_digits_are_split_four_to_one_by_class_as_the_seed_says():
    arrays, again, other = (load_digits(DatasetOptions(seed=seed)) for seed in (0, 0, 1))
    assert arrays.source_digest == again.source_digest != other.source_digest
    assert len(arrays.train_x) + len(arrays.test_x) == 1797
    assert arrays.train_x.shape[1:] == (8, 8, 1) and arrays.train_x.dtype == np.uint8 and arrays.train_x.max() == 16
    train_counts, test_counts = np.bincount(arrays.train_y), np.bincount(arrays.test_y)
    np.testing.assert_allclose(test_counts / (train_counts + test_counts), 0.2, atol=0.004)
    assert arrays.format.preprocessing.scale * 16 == 1


SOURCE = """
import sys

import numpy as np

from datasets.arrays import DatasetError, make_array_dataset
from datasets.example_format import ExampleFormat
from datasets.catalog import Dataset
from datasets.client_source import ClientSource
from datasets.example_format import Preprocessing

FORMAT = ExampleFormat((3,), "float32", ("low", "high"), Preprocessing(0.5))

def load(options):
    y = np.arange(40) % 2
    x = np.random.default_rng(options.seed).normal(size=(40, 3)).astype(np.float32)
    return make_array_dataset("waves", (x, y), (x[:4], y[:4]), FORMAT, y)

def fail(options):
    raise RuntimeError("first line\\nsecond line")

def refuse(options):
    raise DatasetError("waves: no\\nfiles")

def leave(options):
    sys.exit(0)

DATASET = Dataset("waves", loader=load, format=FORMAT, clients="buoys", partition="natural")
BY_STRING = Dataset("waves", loader="own_data:load", format="own_data:FORMAT")
UNREAD = Dataset("waves", loader=load)
FAILS = Dataset("waves", loader=fail, format=fail)
REFUSES = Dataset("waves", loader=refuse, format=refuse)
LEAVES = Dataset("waves", loader=leave, format=leave)
def load_source(change):
    x, y = np.zeros((2, 3), np.float32), np.zeros(2, np.int32)
    read = lambda client, split: change(x, y)
    return ClientSource("waves", FORMAT, ("ann",), {"train": np.array([2])}, read, digest="1" * 64)

GIVES = {
    "right": lambda x, y: (x.astype(np.float64), y.astype(np.int64)),
    "shape": lambda x, y: (x[:, :2], y),
    "count": lambda x, y: (x, y[:1]),
    "text": lambda x, y: (x.astype(str), y),
    "labels": lambda x, y: (x, y + 0.5),
    "nothing": lambda x, y: None,
}
for name, change in GIVES.items():
    globals()[f"SOURCE_{name}"] = Dataset("waves", loader=lambda options, change=change: load_source(change))

NO_ARRAYS = Dataset("waves", loader=lambda options: "arrays", format=lambda options: "format")
NOWHERE = Dataset("waves", loader="own_data:nowhere", format="own_data:nowhere")
MNIST = Dataset("mnist", loader=load)
NUMBER = 3

def __getattr__(name):
    if name == "EXITS":
        sys.exit("bye")
    raise AttributeError(name)
"""


MODULES = {
    "own_data": SOURCE,
    "own_data_broken": "def f(:\n",
    "own_data_exits": "import sys\nsys.exit(0)\n",
    "own_data_needs": "import a_package_that_is_not_there\n",
    "own_data_name": "from datasets.catalog import Dataset\nDATASET = Dataset('A B', print)\n",
    "own_data_stopped": "raise KeyboardInterrupt\n",
}


@pytest.fixture(scope="module", autouse=True)
def own_modules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    for name, source in MODULES.items():
        (folder / f"{name}.py").write_text(source)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        importlib.invalidate_caches()
        yield


@pytest.mark.parametrize("name", ["DATASET", "BY_STRING"])
def test_a_row_is_loaded_and_drawn(name):
    row = find_dataset(f"own_data:{name}")
    arrays = load_arrays(f"own_data:{name}", DatasetOptions(seed=1))
    assert row.name == arrays.name == "waves" and arrays.train_x.shape == (40, 3)
    assert arrays.format.preprocessing.scale == 0.5
    assert arrays.source_digest == row.load(DatasetOptions(seed=1)).source_digest
    assert arrays.source_digest != row.load(DatasetOptions(seed=2)).source_digest
    random = make_random_arrays(row, DatasetOptions())
    assert random.train_x.shape == (600, 3) and random.format.class_names == ("low", "high")
    assert random.client_names == (("waves_0", "waves_1", "waves_2") if row.clients else None)


def test_a_row_without_a_format_is_not_drawn():
    assert not find_dataset("own_data:UNREAD").is_drawn_for_smoke
    assert np.isfinite(load_arrays("own_data:UNREAD").train_x).all()
    assert_refused("npz", make_random_arrays, DATASETS["npz"])


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ("own_data_nowhere:DATASET", "no module named own_data_nowhere; run from the folder"),
        ("own_data_nowhere.deep:DATASET", "no module named own_data_nowhere; run from the folder"),
        ("own_data_needs:DATASET", "no module named a_package_that_is_not_there; own_data_needs needs it"),
        ("own_data_broken:DATASET", "importing own_data_broken failed: SyntaxError"),
        ("own_data_exits:DATASET", "importing own_data_exits failed: a call of sys.exit"),
        ("own_data_name:DATASET", "importing own_data_name failed: DatasetError: name='A B'"),
        ("own_data:EXITS", "importing own_data failed: a call of sys.exit"),
        ("own_data:NOTHING", "expected NOTHING in own_data, there is none"),
        ("__main__:NOTHING", "expected NOTHING in __main__, there is none; a command sees no script or notebook: put"),
        ("own_data:NUMBER", "expected a datasets.catalog.Dataset, got int"),
        ("own_data:load", "expected a datasets.catalog.Dataset, got function"),
        ("own_data:MNIST", "its name is mnist, which the catalog has already"),
        ("sys:path", "expected a datasets.catalog.Dataset, got list"),
    ],
)
def test_one_line_for_each_row_that_cannot_be_had(dataset, message):
    error = assert_refused("", find_dataset, dataset)
    assert error.startswith(f"dataset={dataset}: ") and message in error


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("FAILS", "failed with RuntimeError: first line"),
        ("REFUSES", "waves: no files"),
        ("LEAVES", "failed with a call of sys.exit"),
        ("NO_ARRAYS", "got str"),
        ("NOWHERE", "failed with AttributeError"),
    ],
)
@pytest.mark.parametrize("act", [lambda row: row.load(DatasetOptions()), make_random_arrays], ids=["load", "draw"])
def test_one_line_for_each_way_in_which_the_users_code_fails(act, name, message):
    row = find_dataset(f"own_data:{name}")
    error = assert_refused("", act, row)
    assert error.startswith(f"dataset=own_data:{name}: ") and message in error


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "shape",
            "train examples of client 'ann': read gave x as float32 of shape (2, 2), expected float32 of shape (2",
        ),
        ("count", "read gave y as int32 of shape (1,), expected int32 of shape (2,), as its format and num_examples"),
        ("text", "read gave x as <U32 of shape (2, 3), expected float32 of shape (2, 3)"),
        ("labels", "read gave y as float64 of shape (2,), expected int32 of shape (2,)"),
        ("nothing", "its loader failed with TypeError: cannot unpack non-iterable NoneType object"),
    ],
)
def test_one_line_for_examples_that_are_not_as_their_format_says(name, message):
    source = load_arrays(f"own_data:SOURCE_{name}")
    assert message in assert_refused(f"dataset=own_data:SOURCE_{name}: ", source.read, 0, "train")
    assert load_arrays("own_data:SOURCE_right").read(0, "train")[0].shape == (2, 3)


def test_ctrl_c_is_no_mistake_of_the_users():
    with pytest.raises(KeyboardInterrupt):
        find_dataset("own_data_stopped:DATASET")


@pytest.mark.parametrize(
    ("name", "options", "sizes", "shape", "dtype", "largest"),
    [
        ("digits", {}, (600, 120), (8, 8, 1), np.uint8, 16),
        ("mnist", {}, (600, 120), (28, 28, 1), np.uint8, 255),
        ("cifar10", {}, (600, 120), (32, 32, 3), np.uint8, 255),
        ("har", {"har_features": "statistics"}, (150, 30), (561, 1), np.float32, 1),
        ("har", {"har_features": "inertial"}, (150, 30), (128, 9), np.float32, 1),
        ("building", {}, (600, 120), (8,), np.float32, 1),
        ("occupancy", {"occupancy_features": "temperature_humidity"}, (600, 120), (2,), np.float32, 1),
        ("occupancy", {"occupancy_features": "all"}, (600, 120), (5,), np.float32, 1),
    ],
)
def test_random_arrays_look_like_the_data_set(name, options, sizes, shape, dtype, largest):
    arrays, again, other = (
        make_random_arrays(DATASETS[name], DatasetOptions(**options, seed=seed)) for seed in (1, 1, 2)
    )
    assert (arrays.train_x.shape, arrays.test_x.shape) == ((sizes[0], *shape), (sizes[1], *shape))
    assert arrays.train_x.dtype == dtype and largest * 0.9 < arrays.train_x.max() <= largest
    assert set(arrays.train_y) == set(range(len(arrays.format.class_names)))
    assert arrays.source_digest == again.source_digest != other.source_digest


@pytest.mark.parametrize(
    ("name", "options", "shape", "num_classes"),
    [
        ("emnist", {"emnist_labels": "digits"}, (28, 28, 1), 10),
        ("emnist", {"emnist_labels": "all"}, (28, 28, 1), 62),
        ("stackoverflow", {"stackoverflow_task": "next_word", "vocabulary_size": 30}, (20,), 34),
        ("stackoverflow", {"stackoverflow_task": "tags", "vocabulary_size": 30}, (30,), 500),
        ("cifar100", {"cifar100_form": "whole"}, (32, 32, 3), 100),
        ("cifar100", {"cifar100_form": "cropped"}, (24, 24, 3), 100),
        ("shakespeare", {}, (80,), len(TOKEN_NAMES)),
    ],
)
def test_federated_data_sets_have_clients_and_the_form_of_their_variant(name, options, shape, num_classes):
    arrays = make_random_arrays(DATASETS[name], DatasetOptions(**options))
    assert arrays.train_x.shape[1:] == shape and len(arrays.format.class_names) == num_classes and arrays.client_names


def test_data_with_natural_clients_have_some():
    assert make_random_arrays(DATASETS["building"]).client_names == ("building_0", "building_1", "building_2")
    assert make_random_arrays(DATASETS["digits"]).client_names is None
    people = make_random_arrays(DATASETS["har"]).client_names
    assert len(people) == 21 and people[:2] == ("subject_01", "subject_03")


@pytest.mark.parametrize(("scale", "largest"), [(1.0, 1), (0.1, 10), (1 / 1000, 255), (0.0, 255), (-1.0, 255)])
def test_any_preprocessing_of_bytes_gives_bytes(scale, largest):
    row = Dataset("toy", loader=print, format=ExampleFormat((64, 1), "uint8", ("a", "b"), Preprocessing(scale)))
    assert make_random_arrays(row).train_x.max() == largest


@pytest.mark.parametrize(
    "labels",
    [
        LabelFormat("multi_label", (4,), 4),
        LabelFormat("regression", (), 1, (100.0,), (2.0,)),
        LabelFormat("regression", (2,), 2),
        LabelFormat("next_token", (5,), 9),
    ],
)
def test_random_labels_are_of_the_task(labels):
    is_text = labels.task == "next_token"
    dtype = "int32" if is_text else "float32"
    example_format = ExampleFormat((5,), dtype, (), labels=labels, takes_tokens=is_text)
    arrays = make_random_arrays(Dataset("toy", loader=print, format=example_format, smoke_sizes=(200, 10)))
    assert arrays.format == example_format
    assert arrays.train_y.shape == (200, *labels.shape) and arrays.train_y.dtype == labels.dtype
    if labels.offset:
        assert arrays.train_y.mean() == pytest.approx(100, abs=1) and arrays.train_y.std() == pytest.approx(2, rel=0.3)
