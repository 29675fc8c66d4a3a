"""TFLite Metadata of files, read by a reader of its own that knows the schema's names."""

import dataclasses
import json
import pathlib
import types

import flatbuffers.table
import numpy as np
import pytest
import tensorflow as tf
from flatbuffers import number_types
from small_formats import change_format
from tensorflow.lite.python import schema_py_generated as schema

from datasets.example_format import CategoryGroup, LabelFormat, Preprocessing
from launch.settings.run_config import build_run_config
from launch.tflite.export_measurement import ExportedFile
from launch.tflite.model_card import build_card, describe_model, describe_training_model, list_associated
from launch.tflite.standard_metadata import ModelNote, add_metadata, write_metadata
from launch.training.finished_run import FinishedRun
from models.tflite_export import convert_model

# The fields of each table of metadata_schema.fbs 1.0.1 in their order; "s" text, "b" a byte, "u" a number of four
# bytes, "f" floats, a table's name, or a list of one of these.
SCHEMA = {
    "ModelMetadata": {
        **dict.fromkeys(("name", "description", "version"), "s"), "subgraph_metadata": ["SubGraphMetadata"],
        **dict.fromkeys(("author", "license"), "s"), "associated_files": ["AssociatedFile"], "min_parser_version": "s",
    },
    "SubGraphMetadata": {
        **dict.fromkeys(("name", "description"), "s"), "input_tensor_metadata": ["TensorMetadata"],
        "output_tensor_metadata": ["TensorMetadata"],
    },
    "TensorMetadata": {
        **dict.fromkeys(("name", "description"), "s"), "dimension_names": ["s"], "content": "Content",
        "process_units": ["ProcessUnit"], "stats": "Stats", "associated_files": ["AssociatedFile"],
    },
    "AssociatedFile": {"name": "s", "description": "s", "type": "b"},
    "Content": {"content_properties_type": "b", "content_properties": "ImageProperties"},
    "ImageProperties": {"color_space": "b", "default_size": "ImageSize"},
    "ImageSize": {"width": "u", "height": "u"},
    "ProcessUnit": {"options_type": "b", "options": "NormalizationOptions"},
    "NormalizationOptions": {"mean": "f", "std": "f"},
    "Stats": {"max": "f", "min": "f"},
}  # fmt: skip


def read_table(content, place, name):
    table, read = flatbuffers.table.Table(content, place), {}
    for slot, (field, kind) in enumerate(SCHEMA[name].items()):
        if inside := table.Offset(4 + 2 * slot):
            read[field] = read_field(table, inside, kind)
    return read


def read_field(table, inside, kind):
    place = table.Pos + inside
    if kind in ("b", "u"):
        return table.Get({"b": number_types.Uint8Flags, "u": number_types.Uint32Flags}[kind], place)
    if kind == "s":
        return table.String(place).decode()
    if kind == "f" or isinstance(kind, list):
        places = [table.Vector(inside) + 4 * i for i in range(table.VectorLen(inside))]
        if kind == "f":
            return [table.Get(number_types.Float32Flags, each) for each in places]
        if kind == ["s"]:
            return [table.String(each).decode() for each in places]
        return [read_table(table.Bytes, table.Indirect(each), kind[0]) for each in places]
    return read_table(table.Bytes, table.Indirect(place), kind)


def read_metadata(note):
    content = write_metadata(note)
    assert content[4:8] == b"M001"
    return read_table(content, int.from_bytes(content[:4], "little"), "ModelMetadata")


@pytest.fixture
def describe(make_federation):
    """(data section, test set, fields of its format) -> the data, and what its file says: of all, input and output."""

    def read(section=None, test_x=None, **fields):
        data = make_federation([5, 3, 4])
        if test_x is not None:
            data = dataclasses.replace(data, test_x=test_x, test_y=np.zeros(len(test_x), np.int32))
            fields |= {"input_shape": test_x.shape[1:], "input_dtype": test_x.dtype.name}
        data = change_format(data, **fields)
        config, task = build_run_config({"algo": "fedavg"}), {"task": {"kind": data.format.labels.task}}
        card = build_card(FinishedRun(pathlib.Path("runs/x"), config, task, {}, frozenset(), 3), data, [])
        read = read_metadata(describe_model(card, "global", data, section or {}))
        [graph] = read["subgraph_metadata"]
        [taken], [given] = graph["input_tensor_metadata"], graph["output_tensor_metadata"]
        return types.SimpleNamespace(data=data, read=read, taken=taken, given=given)

    return read


def test_a_model_of_features(describe):
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    told = describe(
        test_x=x, preprocessing=Preprocessing(0.5, -1.0),
        feature_names=("a", "b", "c\u202e", "d"), feature_units=("°C", "", "", "%"),
    )  # fmt: skip
    assert (
        told.read["name"].endswith(": global")
        and told.read["version"] == "round 3"
        and told.read["min_parser_version"] == "1.0.1"
    )
    assert "3 rounds with 3 clients" in told.read["description"]
    assert (told.taken["name"], told.taken["dimension_names"]) == ("features", ["batch", "feature"])
    # x * 0.5 - 1 is (x - 2) / 2; of the first feature 0 to 16 it makes -1 to 7.
    assert told.taken["process_units"] == [{"options_type": 1, "options": {"mean": [2.0], "std": [2.0]}}]
    assert told.taken["stats"] == {"min": [-1.0, -0.5, 0.0, 0.5], "max": [7.0, 7.5, 8.0, 8.5]}
    assert "a [°C] 0 to 16; b 1 to 17; c\\u202e 2 to 18; d [%] 3 to 19" in told.taken["description"]
    assert [(file["name"], file["type"]) for file in told.taken["associated_files"]] == [("features.txt", 2)]
    assert told.taken["content"] == {"content_properties_type": 1, "content_properties": {}}
    assert told.given["name"] == "logits" and "largest" in told.given["description"]
    assert [(file["name"], file["type"]) for file in told.given["associated_files"]] == [("labels.txt", 2)]
    assert [file["name"] for file in told.read["associated_files"]] == ["card.json"]
    files = list_associated(told.data, {})
    assert files["features.txt"] == b"a\nb\nc\\u202e\nd\n"
    assert files["labels.txt"].decode().splitlines() == list(told.data.format.class_names)


def test_a_category_is_told_as_one_choice(describe):
    told = describe(groups=(CategoryGroup("colour", (0, 1), ("red", "green")),), feature_names=tuple("abcd"))
    assert "Features: colour: one of red, green (features 0 to 1); c " in told.taken["description"]
    assert list_associated(told.data, {})["features.txt"] == b"a\nb\nc\nd\n"


def test_a_standardisation_inside_is_told_and_is_no_step_of_the_apps(describe):
    section = {"feature_means": [1.0, 2.0, 3.0, 4.0], "feature_deviations": [2.0, 2.0, 2.0, 5.0]}
    told = describe(section)
    assert "an app does not" in told.taken["description"] and "mean 4, deviation 5" in told.taken["description"]
    assert told.taken["process_units"] == [{"options_type": 1, "options": {"mean": [0.0], "std": [1.0]}}]


@pytest.mark.parametrize(("channels", "color_space"), [(1, 2), (3, 1)])
def test_a_model_of_pictures(describe, channels, color_space):
    told = describe(
        test_x=np.zeros((12, 6, 8, channels), np.uint8), preprocessing=Preprocessing(1 / 255, 0.0, (0.0, 1.0))
    )  # fmt: skip
    assert (told.taken["name"], told.taken["dimension_names"]) == ("image", ["batch", "height", "width", "channel"])
    size = {"width": 8, "height": 6}
    properties = {"color_space": color_space, "default_size": size}
    assert told.taken["content"] == {"content_properties_type": 2, "content_properties": properties}
    assert told.taken["stats"] == {"min": [0.0], "max": [1.0]}
    assert told.taken["process_units"][0]["options"] == {"mean": [0.0], "std": [255.0]}


def test_a_model_of_a_series(describe):
    names = {"feature_names": ("x", "y"), "feature_units": ("g", "g")}
    told = describe(test_x=np.zeros((4, 3, 2), np.float32), **names)
    assert (told.taken["name"], told.taken["dimension_names"]) == ("window", ["batch", "step", "channel"])
    assert len(told.taken["stats"]["min"]) == 2


def test_tokens_have_no_scaling_and_their_outputs_three_axes(describe):
    labels = LabelFormat("next_token", (5,), 9)
    told = describe(test_x=np.zeros((4, 5), np.int32), labels=labels, takes_tokens=True, class_names=())
    assert (told.taken["name"], told.taken["dimension_names"]) == ("tokens", ["batch", "position"])
    assert "process_units" not in told.taken and "stats" not in told.taken
    assert told.given["dimension_names"] == ["batch", "position", "token"] and "associated_files" not in told.given


def test_the_text_of_tokens_is_a_vocabulary(describe):
    tokens = {"labels": LabelFormat("next_token", (5,), 3), "takes_tokens": True, "class_names": ("a", "\u202e", " ")}
    told = describe(test_x=np.zeros((4, 5), np.int32), **tokens)
    assert [(file["name"], file["type"]) for file in told.taken["associated_files"]] == [("labels.txt", 5)]
    assert [(file["name"], file["type"]) for file in told.given["associated_files"]] == [("labels.txt", 2)]
    assert list_associated(told.data, {})["labels.txt"] == b"a\n\\u202e\n \n"


def test_two_names_of_one_output_are_no_labels_of_its_axis(describe):
    told = describe(labels=LabelFormat("binary"), class_names=("no", "yes"))
    assert "associated_files" not in told.given and "above 0 it is yes" in told.given["description"]
    assert [file["name"] for file in told.read["associated_files"]] == ["card.json", "labels.txt"]
    assert not any("type" in file for file in told.read["associated_files"])


def test_a_regression_says_how_to_read_its_numbers(describe):
    labels = LabelFormat("regression", (), 1, (100.0,), (50.0,))
    told = describe(labels=labels, class_names=())
    assert told.given["name"] == "numbers" and "output * 50 + 100" in told.given["description"]


def test_a_file_that_trains_has_no_tensors_in_its_metadata(make_federation):
    data = make_federation([5, 3, 4])
    run = FinishedRun(pathlib.Path("runs/x"), build_run_config({"algo": "fedavg"}), {}, {}, frozenset(), 3)
    read = read_metadata(describe_training_model(build_card(run, data, []), "global", data))
    assert "subgraph_metadata" not in read and "3 rounds" in read["description"]
    assert json.dumps(read)


def test_a_model_with_metadata_computes_what_it_did(linear_spec):
    weights = np.arange(12, dtype=np.float32).reshape(4, 3) / 12, np.array([0.5, 0, -0.5], np.float32)
    model, note = convert_model(linear_spec, weights, "float32"), ModelNote("a", "b", "c", "d", None, None)
    content = add_metadata(model, note)
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    np.testing.assert_array_equal(ExportedFile(content).compute_outputs(x), ExportedFile(model).compute_outputs(x))
    signatures = [tf.lite.Interpreter(model_content=each).get_signature_list() for each in (model, content)]
    assert signatures[0] == signatures[1]
    before, after = (schema.ModelT.InitFromObj(schema.Model.GetRootAs(each)) for each in (model, content))
    assert (after.version, after.description) == (before.version, before.description)
    assert [entry.name for entry in after.metadata] == [*(each.name for each in before.metadata), b"TFLITE_METADATA"]
    assert bytes(after.buffers[after.metadata[-1].buffer].data) == write_metadata(note)
    assert content[4:8] == b"TFL3"
