"""A user's own data set: what is accepted, and one line for each thing that can be wrong with it."""

import importlib

import numpy as np
import pytest
from refusals import assert_refused

from datasets.catalog import DatasetOptions, find_dataset, load_arrays
from datasets.smoke import make_random_arrays

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


@pytest.fixture(scope="module", autouse=True)
def own_modules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    (folder / "own_data.py").write_text(SOURCE)
    (folder / "own_data_broken.py").write_text("def f(:\n")
    (folder / "own_data_exits.py").write_text("import sys\nsys.exit(0)\n")
    (folder / "own_data_needs.py").write_text("import a_package_that_is_not_there\n")
    (folder / "own_data_name.py").write_text("from datasets.catalog import Dataset\nDATASET = Dataset('A B', print)\n")
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


def test_ctrl_c_is_no_mistake_of_the_users(tmp_path, monkeypatch):
    (tmp_path / "own_data_stopped.py").write_text("raise KeyboardInterrupt\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        find_dataset("own_data_stopped:DATASET")
