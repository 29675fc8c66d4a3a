"""The leaves of a nested state in a fixed order, and the way back. Imports no TensorFlow.

The order is that of `tf.nest`: NamedTuples, tuples and lists by position, dicts by their sorted keys.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tree

NUMBER_KINDS = "biufc"  # of `dtype.kind`: what an .npz file gives back as it was, without pickle


def flatten_state(state: Any) -> list[np.ndarray]:
    """The leaves of a state as arrays; a scalar, NumPy's or Python's, becomes an array of shape ().

    Raises:
      TypeError: a leaf is no number or array of numbers, for example None or a string.
    """
    leaves = []
    for value in tree.flatten(state):
        leaf = np.asarray(value)
        if leaf.dtype.kind not in NUMBER_KINDS:
            raise TypeError(f"a state holds {type(value).__name__} ({leaf.dtype}), expected arrays of numbers only")
        leaves.append(leaf)
    return leaves


def pack_state(template: Any, leaves: Sequence[np.ndarray]) -> Any:
    """The state nested as `template` with these leaves, whose shapes may differ from the template's.

    A leaf of shape () becomes a NumPy scalar.

    Raises:
      ValueError: there are more or fewer leaves than the template has.
    """
    expected = len(tree.flatten(template))
    if len(leaves) != expected:
        raise ValueError(f"{len(leaves)} leaves, expected {expected}")
    return tree.unflatten_as(template, [leaf[()] for leaf in leaves])
