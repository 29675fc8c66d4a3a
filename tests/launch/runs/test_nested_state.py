"""Leaves come in the order of `tf.nest` and go back to their places, scalars with their dtypes."""

import collections
from typing import NamedTuple

import numpy as np
import pytest

from launch.runs.nested_state import flatten_state, pack_state


class Clock(NamedTuple):
    time_s: np.float64
    events: tuple


def make_state():
    return {
        "z": [np.int8(1), (np.zeros((2, 0)), True)],
        "a": Clock(np.float64(0.5), (np.arange(3), {}, ())),
        "m": collections.OrderedDict(second=2.0, first=np.float32(3)),
    }


def test_the_order_is_that_of_tf_nest():
    import tensorflow as tf

    leaves, expected = flatten_state(make_state()), tf.nest.flatten(make_state())
    assert [leaf.dtype.name for leaf in leaves] == ["float64", "int64", "float32", "float64", "int8", "float64", "bool"]
    np.testing.assert_equal(leaves, expected)
    packed = pack_state(make_state(), leaves)
    tf.nest.assert_same_structure(packed, make_state())
    assert [leaf.tolist() for leaf in flatten_state(packed)] == [leaf.tolist() for leaf in leaves]
    assert type(packed["a"]) is Clock and list(packed["m"]) == ["second", "first"]
    assert type(packed["a"].time_s) is np.float64 and type(packed["z"][0]) is np.int8


@pytest.mark.parametrize("leaf", [None, "text", b"bytes", object()])
def test_what_is_no_number_is_refused(leaf):
    with pytest.raises(TypeError, match="expected arrays of numbers only"):
        flatten_state((1, [leaf]))


@pytest.mark.parametrize("count", [6, 8])
def test_a_wrong_number_of_leaves_is_refused(count):
    with pytest.raises(ValueError, match=f"{count} leaves, expected 7"):
        pack_state(make_state(), [np.zeros(())] * count)
