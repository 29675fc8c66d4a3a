"""Types of TFF as JSON and back, with their containers."""

import collections
import json
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow_federated as tff

from launch.runtimes.flat_values import describe_type, read_type
from tff_algos.client.cohort import NOBODY
from tff_algos.weights import build_type


class Own(NamedTuple):
    """A container of somebody else's."""

    x: int


TENSOR = tff.TensorType(np.float64, (2, None))
TYPES = [
    TENSOR,
    tff.TensorType(np.str_),
    tff.TensorType(np.bool_, None),
    build_type(NOBODY),
    tff.StructType([("a", np.int32), (None, TENSOR)]),
    tff.StructWithPythonType([("a", np.int32), ("b", build_type(NOBODY))], collections.OrderedDict),
    tff.FunctionType(
        tff.StructWithPythonType(
            [tff.FederatedType(TENSOR, tff.SERVER), tff.FederatedType(TENSOR, tff.CLIENTS)], tuple
        ),
        tff.FederatedType([build_type(NOBODY)], tff.CLIENTS, all_equal=True),
    ),
    tff.FunctionType(None, TENSOR),
]


@pytest.mark.parametrize("type_spec", TYPES, ids=str)
def test_a_type_comes_back_as_it_was(type_spec):
    again = read_type(json.loads(json.dumps(describe_type(type_spec))))
    assert again == type_spec and repr(again) == repr(type_spec) and type(again) is type(type_spec)


def test_foreign_containers_and_other_types_are_refused():
    with pytest.raises(ValueError, match="container that cannot be kept"):
        describe_type(tff.StructWithPythonType([("x", np.int32)], Own))
    with pytest.raises(ValueError, match="type that cannot be kept"):
        describe_type(tff.SequenceType(np.int32))
    for name in ("os:environ", "tff_algos.weights:build_type", "models.model_spec:ModelSpec", "tff_algos.weights:no"):
        with pytest.raises(ValueError, match="container that cannot be kept"):
            read_type({"parts": [], "container": name})
