"""A data section of `config.json` is used only if each value is of its kind."""

import dataclasses
import json

import pytest

from datasets.example_format import (
    CLASS_LABELS,
    CategoryGroup,
    ExampleFormat,
    ExampleWeights,
    LabelFormat,
    Padding,
    Preprocessing,
)
from launch.runs.errors import RunFolderError
from launch.runs.run_description import describe_data
from launch.runs.stored_data import NEEDED, read_data_section, read_scaling

GOOD = {"input_shape": [8, 8, 1], "input_dtype": "uint8", "scale": 1 / 255, "offset": 0, "class_names": ["a", "b"]}

REGRESSION = ExampleFormat((8,), "float32", (), labels=LabelFormat("regression", (), 1, (5.0,), (2.0,))).to_json()[
    "task"
]
WEIGHTS = ExampleWeights("w", 1.25, 0.0, 3.0, 2, 5)._asdict()
WRONG = [
    *(("shape", value) for value in (None, [0], [1.5], "x", [10**9, 2])),
    *(("num_outputs", value) for value in (-1, 1.0, None, 10**8)),
    *(("offset", value) for value in (None, ["x"], [float("inf")], 1.0)),
    *(("padding", 2.5), ("padding", 2**40), ("oov", "x"), ("oov", True)),
]


GROUP = CategoryGroup("c", (0, 1), ("x", "y")).to_json()


def test_what_a_run_writes_is_taken_and_an_earlier_version_has_defaults(make_federation):
    data = make_federation([3, 2])
    written = json.loads(json.dumps(describe_data(data)))
    assert read_data_section(written, "config.json") == data.format
    of_old = ExampleFormat((8, 8, 1), "uint8", ("a", "b"), Preprocessing(1 / 255))
    assert read_data_section({**GOOD, "of a later version": [None]}, "config.json") == of_old


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
        ("filled", [None, [], {"a": -1}, {"a": "b"}]),
        ("takes_tokens", [None, 1, "true"]),
        ("feature_range", [3, [0.0], [0.0, None], {}]),
        ("feature_means", [None, 1.0, ["x"], [float("nan")]]),
        ("categories", [None, 1, [-1], [0.5], ["a"]]),
        ("has_whole_steps", [None, 1]),
        ("groups", [None, [1], [{}], [{**GROUP, "more": 1}], *([{**GROUP, name: 3}] for name in GROUP)]),
        ("feature_padding", [None, 0.0, {}, {"value": "0", "is_anywhere": True}, {"value": 0.0, "is_anywhere": 1}]),
        ("weights", [None, [], {}, {**WEIGHTS, "mean": "x"}, {**WEIGHTS, "num_zero": -1}, {**WEIGHTS, "more": 1}]),
        ("feature_deviations", [None, [0.0], [-1.0], [float("inf")], [None]]),
        (
            "task",
            [None, "regression", {}, {"kind": "regression"}, {**REGRESSION, "kind": 3}, {**REGRESSION, "more": 1}],
        ),
        ("task", [{**REGRESSION, name: value} for name, value in WRONG]),
    ],
)
def test_another_kind_of_value_is_named(name, values):
    for value in values:
        with pytest.raises(RunFolderError, match=f"run/config.json: damaged, its data has {name}=.*, expected"):
            read_data_section({**GOOD, name: value}, "run/config.json")


def test_what_features_are_scaled_by_is_kept_where_they_are(make_federation):
    data = make_federation([3, 2])
    assert "feature_means" not in describe_data(data)
    scaled = dataclasses.replace(data, feature_means=(0.1, 1e6), feature_deviations=(1 / 3, 2.0))
    written = json.loads(json.dumps(describe_data(scaled)))
    assert read_data_section(written, "config.json") == data.format
    assert (written["feature_means"], written["feature_deviations"]) == ([0.1, 1e6], [1 / 3, 2.0])
    assert read_scaling(written) == ((0.1, 1e6), (1 / 3, 2.0), None) and read_scaling(describe_data(data)) is None
    padded = describe_data(dataclasses.replace(scaled, feature_padding=Padding(-1.0, True)))
    assert read_scaling(json.loads(json.dumps(padded))).padding == Padding(-1.0, True)
    with pytest.raises(RunFolderError, match="another number of feature_means than deviations"):
        read_data_section({**written, "feature_means": [1.0]}, "config.json")


@pytest.mark.parametrize(
    "labels",
    [
        CLASS_LABELS,
        LabelFormat("multi_label", (7,), 7),
        LabelFormat("regression", (2,), 2, (0.1, -3.0), (1 / 3, 5.0)),
        LabelFormat("next_token", (12,), 30, padding=-1, oov=1),
    ],
)
def test_labels_are_read_back_as_they_were(labels):
    names = ["a", "b"] if labels.is_by_class else []
    described = ExampleFormat((8, 8, 1), "uint8", tuple(names), labels=labels)
    stored = json.loads(json.dumps({**GOOD, **described.to_json()}))
    assert read_data_section(stored, "config.json") == described


@pytest.mark.parametrize(
    ("section", "said"),
    [
        *((wrong, "damaged, does not describe the data") for wrong in (None, [], "x", 3)),
        *(({key: value for key, value in GOOD.items() if key != name}, f"its data lacks {name}") for name in NEEDED),
        *(
            ({**GOOD, "class_names": [], "task": {**REGRESSION, **changes}}, "damaged")  # which do not fit each other
            for changes in ({"num_outputs": 3}, {"offset": [1.0, 2.0]}, {"scale": [0.0]}, {"kind": "unheard of"})
        ),
    ],
)
def test_a_section_that_lacks_something_or_does_not_fit_is_one_line(section, said):
    with pytest.raises(RunFolderError, match=rf"run/config\.json: .*{said}") as raised:
        read_data_section(section, "run/config.json")
    assert "\n" not in str(raised.value)
