"""A data section of `config.json` is used only if each value is of its kind."""

import json

import pytest

from launch.runs.errors import RunFolderError
from launch.runs.run_description import describe_data
from launch.runs.stored_data import NEEDED, check_data_section

GOOD = {"input_shape": [8, 8, 1], "input_dtype": "uint8", "scale": 1 / 255, "offset": 0, "class_names": ["a", "b"]}


def test_what_a_run_writes_is_taken(make_federation):
    written = json.loads(json.dumps(describe_data(make_federation([3, 2]))))
    assert check_data_section(written, "config.json") is written
    assert check_data_section({**GOOD, "of a later version": [None]}, "config.json")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("input_shape", ["x", None, [], [-1, 8, 1], [8.0], [True], 8, {"0": 8}, [0], [10**6] * 3, [1] * 9]),
        ("input_dtype", ["foo", None, 8, ["uint8"], "float64"]),
        ("scale", ["x", None, float("nan"), float("inf"), [1], True, 10**400]),
        ("offset", [None, "0", {}]),
        ("class_names", [5, None, [], ["a"], ["a", 3], "ab", ["a", "a"], {"a": "b"}]),
        ("num_train", [-1, 2.5, "3", None, True]),
        ("dataset", [None, 3, ["digits"]]),
        ("digest", [None, 3]),
        ("archetypes", [None, []]),
        ("label_counts", [None, 3]),
    ],
)
def test_another_kind_of_value_is_named(name, values):
    for value in values:
        with pytest.raises(RunFolderError, match=f"run/config.json: damaged, its data has {name}=.*, expected"):
            check_data_section({**GOOD, name: value}, "run/config.json")


@pytest.mark.parametrize("data", [None, [], "x", 3])
def test_no_section_is_said(data):
    with pytest.raises(RunFolderError, match="says nothing of the data"):
        check_data_section(data, "config.json")


@pytest.mark.parametrize("name", NEEDED)
def test_what_is_missing_is_named(name):
    with pytest.raises(RunFolderError, match=f"says nothing of {name}"):
        check_data_section({key: value for key, value in GOOD.items() if key != name}, "config.json")
