"""Eager tensors leave no memory behind, and are otherwise what they were."""

import ctypes
import sys

import numpy as np
import pytest
import tensorflow as tf

from launch.runtimes import runtime


@pytest.fixture(autouse=True)
def as_in_a_command():
    yield
    runtime.set_nothing_aside()


def count_blocks_left(num_tensors=1000):
    def make():
        for _ in range(num_tensors):
            tf.constant(ARRAY)
        return sys.getallocatedblocks()

    before = make()
    return make() - before


ARRAY = np.zeros(3, np.float32)
TYPE = type(tf.constant(ARRAY))


def find_slot():
    """Where the type says what makes its objects."""
    return ctypes.c_void_p.from_address(id(TYPE) + runtime._NEW_OFFSET)


def make_as_tensorflow_does():
    get_slot = ctypes.pythonapi.PyType_GetSlot
    get_slot.restype, get_slot.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_int)
    find_slot().value = get_slot(object, runtime._NEW_SLOT)


def test_a_tensor_leaves_no_memory_behind():
    make_as_tensorflow_does()
    assert count_blocks_left() > 900, "TensorFlow frees it by now: this module can go"
    for _ in range(2):
        runtime.set_nothing_aside()
        assert count_blocks_left() < 100


def test_a_tensor_may_have_attributes_and_a_gradient():
    runtime.set_nothing_aside()
    tensor = tf.constant(3.0)
    tensor.of_mine = "mine"
    assert (tensor.of_mine, tensor.__dict__) == ("mine", {"of_mine": "mine"})
    assert not hasattr(tf.constant(3.0), "of_mine")
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        squared = tensor * tensor
    assert tape.gradient(squared, tensor).numpy() == 6.0


@pytest.mark.parametrize(("name", "value"), [("_PYTHON", (3, 12)), ("_NEW_OFFSET", runtime._NEW_OFFSET + 8)])
def test_nothing_is_done_where_a_type_is_not_as_expected(monkeypatch, name, value):
    make_as_tensorflow_does()
    before = ctypes.string_at(id(TYPE), sys.getsizeof(TYPE))
    monkeypatch.setattr(runtime, name, value)
    runtime.set_nothing_aside()
    monkeypatch.undo()
    assert ctypes.string_at(id(TYPE), sys.getsizeof(TYPE))[8:] == before[8:], "all but the count of references"
