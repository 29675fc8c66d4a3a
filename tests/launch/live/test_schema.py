"""A description that a person wrote: completed where it says little, refused in a line where it is wrong."""

import json

import numpy as np
import pytest
from small_tables import write_text

from launch.live import join
from launch.live.description import make_format
from launch.live.schema import read_schema
from launch.settings.run_config import build_run_config
from launch.training.federation import build_spec
from tff_algos.settings.config_fields import ConfigError

COLUMNS = [{"name": "age", "mean": 40, "deviation": 20}, {"name": "colour", "values": ["red", "green"]}]
LABEL = {"name": "ill", "classes": ["no", "yes"]}
PICTURES = {"input_shape": [4, 4, 1], "input_dtype": "uint8", "classes": ["a", "b"]}
SMALL = {"columns": COLUMNS, "label": LABEL}


def read(folder, content):
    return read_schema(write_text(folder, content if isinstance(content, str) else json.dumps(content), "schema.json"))


def test_a_table_without_a_data_set_gets_the_model_of_tables(tmp_path):
    config = build_run_config({"algo": "fedavg"})
    assert build_spec(config, make_format(read(tmp_path, SMALL))).name == "perceptron"


def test_the_least_that_a_table_needs(tmp_path):
    found = read(tmp_path, SMALL)
    path = write_text(tmp_path, "ill,age,colour\nyes,4,green\nno,5.5,red\n")
    x, y = join.read_table(path, found)
    assert (x[..., 0].tolist(), y.tolist()) == ([[4, 0, 1], [5.5, 1, 0]], [1, 0])
    assert found["missing"] == "refuse"
    assert "n/a" in found["missing_words"]
    example_format = make_format(found)
    assert (example_format.input_shape, example_format.class_names) == ((3, 1), ("no", "yes"))
    assert example_format.feature_names == ("age", "colour=red", "colour=green")
    assert example_format.categories == (1, 2)


@pytest.mark.parametrize(("classes", "written"), [(["0", "1"], "1.0"), (["low", "1"], "1"), (["1", "2"], "2")])
def test_classes_are_written_as_they_are_called_but_whole_numbers_as_numbers(tmp_path, classes, written):
    found = read(tmp_path, {**SMALL, "label": {"name": "ill", "classes": classes}})
    path = write_text(tmp_path, f"ill,age,colour\n{written},4,green\n")
    assert join.read_table(path, found)[1].tolist() == [1]


def test_arrays(tmp_path):
    found = read(tmp_path, {"input_shape": [8, 8, 1], "input_dtype": "uint8", "classes": ["a", "b"], "scale": 1 / 16})
    assert (found["kind"], make_format(found).input_shape) == ("arrays", (8, 8, 1))
    np.savez(tmp_path / "mine.npz", x=np.full((5, 8, 8, 1), 4), y=np.array([0, 1, 0, 1, 0]))
    train_x, train_y, test_x, test_y = join.load_examples(str(tmp_path / "mine.npz"), found)
    assert (train_x.shape, test_x.shape, len(train_y), len(test_y)) == ((4, 8, 8, 1), (1, 8, 8, 1), 4, 1)
    assert (train_x == 0.25).all()


def test_a_schema_may_say_that_arrays_are_pictures(tmp_path):
    digits = {"input_shape": [28, 28, 1], "input_dtype": "uint8", "classes": ["a", "b"]}
    assert read(tmp_path, digits)["image"] is None
    assert read(tmp_path, {**digits, "image": {"framing": "mnist"}})["image"] == {
        "height": 28, "width": 28, "channels": 1, "low": 0.0, "high": 255.0, "framing": "mnist", "paper": 0.0,
        "ink": [255.0], "isWhole": True,
    }  # fmt: skip
    image = {"low": -1, "high": 1, "is_white": True}
    found = read(tmp_path, {"input_shape": [4, 6, 3], "classes": ["a", "b"], "image": image})["image"]
    assert (found["paper"], found["ink"], found["isWhole"], found["framing"]) == (1, [-1, -1, -1], False, "plain")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", 'expected JSON, as in {"columns"'),
        ([], "it is no object"),
        ({}, "it lacks input_shape, a list of sizes"),
        ({"columns": COLUMNS}, "it lacks label, an object with name and classes"),
        ({**SMALL, "columns": []}, "it has columns=[], expected a list of columns"),
        ({**SMALL, "colums": 1}, "it has 'colums', expected of name, kind, columns, label, missing"),
        ({**SMALL, "missing": "mean"}, "it has missing='mean', expected refuse, median, drop"),
        ({**SMALL, "scale": 0}, "it has scale=0, expected a number above 0"),
        ({**SMALL, "scale": True}, "it has scale=True, expected a number above 0"),
        ({**SMALL, "columns": [{"name": ""}]}, "column 1 has name='', expected a name"),
        ({**SMALL, "columns": [{"name": "a", "kind": "one_hot"}]}, "column 1 has kind='one_hot', expected number, or "
         "values of a category"),
        ({**SMALL, "columns": [*COLUMNS, {"name": "age"}]}, "the column age stands there twice"),
        ({**SMALL, "columns": [{"name": "ill"}]}, "the column ill stands there twice"),
        ({**SMALL, "columns": ["age"]}, "column 1 is no object"),
        ({**SMALL, "columns": [{"name": "a", "deviation": 0}]}, "column 1 has deviation=0, expected a number above 0"),
        ({**SMALL, "columns": [{"name": "a", "values": ["x", "x"]}]}, "expected a list of different names"),
        ({**SMALL, "columns": [{"name": "a", "values": ["x"], "most_frequent": 1}]}, "column a has joined or "
         "most_frequent beyond its values"),
        ({**SMALL, "columns": [{"name": "a", "values": ["x"], "joined": {"X": "z"}}]}, "column a has joined or"),
        ({**SMALL, "columns": [{"name": "a", "values": ["x"], "joined": {"X": []}}]}, "expected {spelling: value}"),
        ({**SMALL, "columns": [{"name": "a\x1bb"}]}, "holds the control character"),
        ({**SMALL, "label": {"name": "ill", "classes": ["no"]}}, "label has classes=['no'], expected a list of two"),
        ({**SMALL, "label": {**LABEL, "spellings": {"n": 2}}}, "label has spellings of other places than 0 to 1"),
        ({**SMALL, "label": {**LABEL, "numbers": [1, 1]}}, "label has numbers, expected a different one"),
        ({"input_shape": [], "classes": ["a", "b"]}, "it has input_shape=[], expected a list of sizes"),
        ({"input_shape": [2], "classes": ["a", "b"], "input_dtype": "int8"}, "expected uint8 or float32"),
        ({"input_shape": [2], "classes": ["a", "b"], "image": {}}, "expected input_shape of (height, width, 1 or 3)"),
        ({**PICTURES, "image": 5}, "it has image=5, expected an object with low and high"),
        ({**PICTURES, "image": {"framing": "emnist"}}, "image has framing='emnist', expected digits, mnist, plain"),
        ({**PICTURES, "image": {"low": 1, "high": 1}}, "expected low below high"),
        ({**PICTURES, "image": {"high": 256}}, "expected low below high, of uint8 in 0..255"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_line(tmp_path, content, message):
    with pytest.raises(ConfigError) as error:
        read(tmp_path, content)
    assert message in str(error.value)
    assert str(error.value).startswith(f"schema={tmp_path}")
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match=r"expected a file that can be read \(No such file or directory\)"):
        read_schema(str(tmp_path / "none.json"))
