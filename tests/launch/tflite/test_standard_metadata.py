"""TFLite Metadata of files, read by a reader of its own that knows the schema's names."""

import dataclasses
import pathlib
import types

import flatbuffers.table
import numpy as np
import pytest
import tensorflow as tf
from flatbuffers import number_types
from small_formats import change_format
from tensorflow.lite.python import schema_py_generated as schema

from datasets.example_format import CategoryGroup, LabelFormat, Preprocessing, TextFormat
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


NUMBERS = {"b": number_types.Uint8Flags, "u": number_types.Uint32Flags, "f": number_types.Float32Flags}


def read_table(content, position, name):
    table, read = flatbuffers.table.Table(content, position), {}
    for slot, (field, kind) in enumerate(SCHEMA[name].items()):
        if inside := table.Offset(4 + 2 * slot):
            read[field] = read_field(table, inside, kind)
    return read


def read_field(table, inside, kind):
    position = table.Pos + inside
    if isinstance(kind, list) or kind == "f":
        positions = [table.Vector(inside) + 4 * i for i in range(table.VectorLen(inside))]
        return [read_item(table, each, kind[0]) for each in positions]
    return read_item(table, position, kind)


def read_item(table, position, kind):
    if kind in NUMBERS:
        return table.Get(NUMBERS[kind], position)
    if kind == "s":
        return table.String(position).decode()
    return read_table(table.Bytes, table.Indirect(position), kind)


def read_metadata(note):
    content = write_metadata(note)
    assert content[4:8] == b"M001"
    return read_table(content, int.from_bytes(content[:4], "little"), "ModelMetadata")


@pytest.fixture
def describe(make_federation):
    """(data section, test set, fields of its format) -> the data, and what its file says: of all, input and output."""

    def describe_file(section=None, test_x=None, **fields):
        data = make_federation([5, 3, 4])
        if test_x is not None:
            data = dataclasses.replace(data, test_x=test_x, test_y=np.zeros(len(test_x), np.int32))
            fields |= {"input_shape": test_x.shape[1:], "input_dtype": test_x.dtype.name}
        data = change_format(data, **fields)
        card = build_card(make_run({"task": {"kind": data.format.labels.task}}), data, [])
        read = read_metadata(describe_model(card, "global", data, section or {}))
        [graph] = read["subgraph_metadata"]
        [taken], [given] = graph["input_tensor_metadata"], graph["output_tensor_metadata"]
        return types.SimpleNamespace(files=list_associated(data, {}), read=read, taken=taken, given=given)

    return describe_file


def make_run(section):
    return FinishedRun(pathlib.Path("runs/x"), build_run_config({"algo": "fedavg"}), section, {}, frozenset(), 3)


def list_files(table):
    """(name, type) of the associated files; one without a type has 0."""
    return [(file["name"], file.get("type", 0)) for file in table.get("associated_files", ())]


def test_a_model_of_features(describe):
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    names = {"feature_names": ("a", "b", "c\u202e", "d"), "feature_units": ("°C", "", "", "%")}
    seen = describe(test_x=x, preprocessing=Preprocessing(0.5, -1.0), class_names="xyz", **names)
    assert seen.read["name"].endswith(": global") and "3 rounds with 3 clients" in seen.read["description"]
    assert (seen.read["version"], seen.read["min_parser_version"]) == ("round 3", "1.0.1")
    assert "a [°C] 0 to 16; b 1 to 17; c\\u202e 2 to 18; d [%] 3 to 19" in seen.taken["description"]
    # x * 0.5 - 1 is (x - 2) / 2; of the first feature 0 to 16 it makes -1 to 7.
    assert {name: value for name, value in seen.taken.items() if "descri" not in name and "files" not in name} == {
        "name": "features",
        "dimension_names": ["batch", "feature"],
        "process_units": [{"options_type": 1, "options": {"mean": [2.0], "std": [2.0]}}],
        "stats": {"min": [-1.0, -0.5, 0.0, 0.5], "max": [7.0, 7.5, 8.0, 8.5]},
        "content": {"content_properties_type": 1, "content_properties": {}},
    }
    assert seen.given["name"] == "logits" and "largest" in seen.given["description"]
    assert [list_files(part) for part in (seen.taken, seen.given, seen.read)] == [
        [("features.txt", 2)],
        [("labels.txt", 2)],
        [("card.json", 0)],
    ]
    assert seen.files == {"features.txt": b"a\nb\nc\\u202e\nd\n", "labels.txt": b"x\ny\nz\n"}


def test_a_category_and_a_standardisation_inside_are_no_steps_of_the_apps(describe):
    seen = describe(groups=(CategoryGroup("colour", (0, 1), ("red", "green")),), feature_names=tuple("abcd"))
    assert "Features: colour: one of red, green (features 0 to 1); c " in seen.taken["description"]
    assert seen.files["features.txt"] == b"a\nb\nc\nd\n"
    seen = describe({"feature_means": [1.0, 2.0, 3.0, 4.0], "feature_deviations": [2.0, 2.0, 2.0, 5.0]})
    assert "an app does not" in seen.taken["description"] and "mean 4, deviation 5" in seen.taken["description"]
    assert seen.taken["process_units"] == [{"options_type": 1, "options": {"mean": [0.0], "std": [1.0]}}]


@pytest.mark.parametrize(("channels", "color_space"), [(1, 2), (3, 1)])
def test_a_model_of_pictures(describe, channels, color_space):
    x = np.zeros((12, 6, 8, channels), np.uint8)
    taken = describe(test_x=x, preprocessing=Preprocessing(1 / 255, 0.0, (0.0, 1.0))).taken
    assert (taken["name"], taken["dimension_names"]) == ("image", ["batch", "height", "width", "channel"])
    properties = {"color_space": color_space, "default_size": {"width": 8, "height": 6}}
    assert taken["content"] == {"content_properties_type": 2, "content_properties": properties}
    assert taken["stats"] == {"min": [0.0], "max": [1.0]}
    assert taken["process_units"][0]["options"] == {"mean": [0.0], "std": [255.0]}


def test_a_model_of_a_series(describe):
    names = {"feature_names": ("x", "y"), "feature_units": ("g", "g")}
    taken = describe(test_x=np.zeros((4, 3, 2), np.float32), **names).taken
    assert (taken["name"], taken["dimension_names"]) == ("window", ["batch", "step", "channel"])
    assert len(taken["stats"]["min"]) == 2


def test_tokens_have_no_scaling_and_their_outputs_three_axes(describe):
    tokens = {"test_x": np.zeros((4, 5), np.int32), "labels": LabelFormat("next_token", (5,), 3), "takes_tokens": True}
    seen = describe(**tokens, class_names=())
    assert (seen.taken["name"], seen.taken["dimension_names"]) == ("tokens", ["batch", "position"])
    assert not {"process_units", "stats", "associated_files"} & seen.taken.keys()
    assert seen.given["dimension_names"] == ["batch", "position", "token"] and not list_files(seen.given)
    seen = describe(**tokens, class_names=("a", "\u202e", " "))  # a vocabulary
    assert (list_files(seen.taken), list_files(seen.given)) == ([("labels.txt", 5)], [("labels.txt", 2)])
    assert seen.files["labels.txt"] == b"a\n\\u202e\n \n"


def test_the_words_of_a_text_have_a_vocabulary_beside_the_labels(describe):
    text = TextFormat("review", ("<pad>", "<oov>", "caf\u00e9"))
    seen = describe(test_x=np.zeros((4, 5), np.int32), takes_tokens=True, text=text, class_names=("x", "y", "z"))
    assert (list_files(seen.taken), list_files(seen.given)) == ([("vocabulary.txt", 5)], [("labels.txt", 2)])
    assert seen.files["vocabulary.txt"].decode() == "<pad>\n<oov>\ncaf\u00e9\n"
    assert "in 'review', int32" in seen.taken["description"] and "The first 5 words" in seen.taken["description"]


def test_outputs_that_are_no_classes_say_how_they_are_read(describe):
    """Two names of one output are no labels of its axis."""
    seen = describe(labels=LabelFormat("binary"), class_names=("no", "yes"))
    assert "above 0 it is yes" in seen.given["description"] and not list_files(seen.given)
    assert list_files(seen.read) == [("card.json", 0), ("labels.txt", 0)]
    given = describe(labels=LabelFormat("regression", (), 1, (100.0,), (50.0,)), class_names=()).given
    assert given["name"] == "numbers" and "output * 50 + 100" in given["description"]


def test_a_file_that_trains_has_no_tensors_in_its_metadata(make_federation):
    data = make_federation([5, 3, 4])
    read = read_metadata(describe_training_model(build_card(make_run({}), data, []), "global", data))
    assert "subgraph_metadata" not in read and "3 rounds" in read["description"]


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
