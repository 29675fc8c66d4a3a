"""Tables without code made from a schema, read back with the library's own reader, and metadata in a model."""

import flatbuffers.table
import numpy as np
import pytest
import tensorflow as tf
from flatbuffers import number_types
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow.lite.python import schema_py_generated as schema

from launch.tflite.exported_file import ExportedFile
from launch.tflite.flat_tables import ALIGNMENT, Byte, Uint, add_to_model, write_tables
from models.tflite_export import convert_model


def read_root(content):
    """The root table of a FlatBuffer."""
    return flatbuffers.table.Table(content, int.from_bytes(content[:4], "little"))


def find(table, slot):
    return table.Offset(4 + 2 * slot)


def follow(table, slot):
    return flatbuffers.table.Table(table.Bytes, table.Indirect(table.Pos + find(table, slot)))


def test_a_table_by_hand():
    content = write_tables(
        {0: "Grüße", 1: Byte(7), 2: Uint(70000), 3: [1.5, -2.0], 5: {0: "inner"}, 6: [{1: Byte(3)}, {}]}, b"TEST"
    )
    assert content[4:8] == b"TEST"
    root = read_root(content)
    assert root.String(root.Pos + find(root, 0)).decode() == "Grüße"
    assert root.Get(number_types.Uint8Flags, root.Pos + find(root, 1)) == 7
    assert root.Get(number_types.Uint32Flags, root.Pos + find(root, 2)) == 70000
    numbers = [root.Get(number_types.Float32Flags, root.Vector(find(root, 3)) + 4 * i) for i in range(2)]
    assert (root.VectorLen(find(root, 3)), numbers) == (2, [1.5, -2.0])
    assert find(root, 4) == 0
    inner = follow(root, 5)
    assert inner.String(inner.Pos + find(inner, 0)) == b"inner"
    assert root.VectorLen(find(root, 6)) == 2
    first = flatbuffers.table.Table(content, root.Indirect(root.Vector(find(root, 6))))
    assert first.Get(number_types.Uint8Flags, first.Pos + find(first, 1)) == 3


@pytest.fixture(scope="module")
def model(linear_spec):
    weights = np.arange(12, dtype=np.float32).reshape(4, 3) / 12, np.array([0.5, 0, -0.5], np.float32)
    return convert_model(linear_spec, weights, "float32")


def read_model(content):
    return schema.ModelT.InitFromObj(schema.Model.GetRootAs(content))


def read_entry(content, name):
    read = read_model(content)
    [entry] = [entry for entry in read.metadata if entry.name.decode() == name]
    return bytes(read.buffers[entry.buffer].data)


def list_places(content):
    """Where the contents of the buffers lie, of those that have any."""
    model = schema.Model.GetRootAs(content)
    tables = [model.Buffers(i)._tab for i in range(model.BuffersLength())]
    return [table.Vector(find(table, 0)) for table in tables if find(table, 0)]


@settings(deadline=None, max_examples=25)
@given(st.binary(max_size=100), st.integers(0, 40))
def test_what_was_in_a_model_stays_and_is_as_aligned_as_before(model, added, padding):
    """Also of a model whose size is no multiple of the alignment."""
    before = model + bytes(padding)
    content = add_to_model(before, "an entry", added)
    assert len(content) % ALIGNMENT == 0 and content[4:8] == b"TFL3"
    assert before in content and read_entry(content, "an entry") == added
    *old, new = list_places(content)
    assert new % ALIGNMENT == 0
    assert [place % ALIGNMENT for place in old] == [place % ALIGNMENT for place in list_places(before)]


def test_a_model_with_an_entry_computes_what_it_did(model):
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    content = add_to_model(model, "an entry", b"content")
    np.testing.assert_array_equal(ExportedFile(content).compute_outputs(x), ExportedFile(model).compute_outputs(x))
    signatures = [tf.lite.Interpreter(model_content=each).get_signature_list() for each in (model, content)]
    assert signatures[0] == signatures[1]
    before, after = read_model(model), read_model(content)
    assert (after.version, after.description) == (before.version, before.description)
    assert [entry.name for entry in after.metadata] == [*(entry.name for entry in before.metadata), b"an entry"]


def test_an_entry_of_the_same_name_is_replaced(model):
    content = add_to_model(add_to_model(model, "an entry", b"first"), "an entry", b"second")
    assert read_entry(content, "an entry") == b"second"
