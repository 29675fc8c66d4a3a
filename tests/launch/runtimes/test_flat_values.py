"""Values as flat lists of arrays and back."""

import collections
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow_federated as tff
from hypothesis import given
from hypothesis import strategies as st

from launch.runtimes import flat_values


class Pair(NamedTuple):
    first: object
    second: object


def draw_tensor(shape: tuple[int, ...]):
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


tensors = st.one_of(
    st.lists(st.integers(0, 3), max_size=3).map(tuple).map(draw_tensor), st.integers(0, 9).map(np.int64)
)
values = st.recursive(
    tensors,
    lambda parts: st.one_of(
        st.lists(parts, max_size=3).map(tuple),
        st.lists(parts, max_size=3),
        st.builds(Pair, parts, parts),
        st.dictionaries(st.sampled_from("zabc"), parts, min_size=1).map(collections.OrderedDict),
    ),
    max_leaves=6,
)


def describe_type(value):
    """The TFF type of a value, container by container."""
    if isinstance(value, Pair):
        return tff.types.StructWithPythonType([(k, describe_type(v)) for k, v in value._asdict().items()], Pair)
    if isinstance(value, dict):
        parts = [(name, describe_type(part)) for name, part in value.items()]
        return tff.types.StructWithPythonType(parts, collections.OrderedDict)
    if isinstance(value, (tuple, list)):
        return tff.types.StructWithPythonType([(None, describe_type(part)) for part in value], type(value))
    return tff.TensorType(value.dtype.type, value.shape)


def assert_equal(ours, theirs):
    assert type(ours) is type(theirs) or isinstance(theirs, np.generic)
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for pair in zip(ours, theirs, strict=True):
            assert_equal(*pair)
    else:
        np.testing.assert_array_equal(ours, theirs)


@given(values)
def test_what_is_flattened_comes_back(value):
    type_spec = describe_type(value)
    flat = flat_values.flatten(value, type_spec)
    arrays = iter(flat)
    assert_equal(flat_values.unflatten(arrays, type_spec), value)
    assert not list(arrays)


@given(st.lists(values, min_size=1, max_size=1), st.integers(0, 4))
def test_values_of_clients_come_back_in_their_order(value, num_clients):
    type_spec = describe_type(value[0])
    flat = [flat_values.flatten(value[0], type_spec) for _ in range(num_clients)]
    given = flat_values.unflatten_clients(flat, tff.FederatedType(type_spec, tff.CLIENTS))
    assert isinstance(given, list) and len(given) == num_clients
    for one in given:
        assert_equal(one, value[0])


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        (1.5, np.int32, ()),
        (np.float64(1), np.float32, ()),
        (np.zeros(2, np.float32), np.float32, (3,)),
        (np.zeros((5, 3), np.float32), np.float32, (None, 2)),
        ("a", np.float32, ()),
    ],
)
def test_what_does_not_fit_the_type_is_refused_but_a_dimension_that_is_open_may_be_any(value, dtype, shape):
    with pytest.raises(TypeError, match="expected"):
        flat_values.flatten(value, tff.TensorType(dtype, shape))
    (array,) = flat_values.flatten(np.zeros((5, 2), np.float32), tff.TensorType(np.float32, (None, 2)))
    assert array.shape == (5, 2)


def test_text_becomes_the_bytes_of_a_files_name():
    weights = np.ones(2)
    value = collections.OrderedDict(z=["a", Pair("j\u00fc", weights)], a=(3, "lat\udcfcn"))
    encoded = flat_values.encode_text(value)
    assert list(encoded) == ["z", "a"] and type(encoded) is collections.OrderedDict
    assert encoded["z"] == [b"a", Pair(b"j\xc3\xbc", weights)] and encoded["a"] == (3, b"lat\xfcn")
    assert encoded["z"][1].second is weights
    assert flat_values.encode_text(np.array([["a", "\u00fc"]])).tolist() == [[b"a", b"\xc3\xbc"]]
    assert flat_values.encode_text(tff.structure.Struct([("p", "\u00fc")])) == tff.structure.Struct(
        [("p", b"\xc3\xbc")]
    )
    assert flat_values.flatten("lat\udcfcn", tff.TensorType(np.str_))[0].item() == b"lat\xfcn"
