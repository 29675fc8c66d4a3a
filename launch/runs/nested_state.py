"""The leaves of a nested state in a fixed order, and the way back. Imports no TensorFlow.

The order is that of `tf.nest`: NamedTuples, tuples and lists by position, dicts by their sorted keys. So the leaves of
a checkpoint that was once written through `tf.nest` pack into the same state.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

NUMBER_KINDS = "biufc"  # of `dtype.kind`: what an .npz file gives back as it was, without pickle


def flatten_state(state: Any) -> list[np.ndarray]:
    """The leaves of a state as arrays; a scalar, NumPy's or Python's, becomes an array of shape ().

    Raises:
      TypeError: a leaf is no number or array of numbers, for example None or a string.
    """
    if isinstance(state, Mapping):
        return [leaf for key in sorted(state) for leaf in flatten_state(state[key])]
    if isinstance(state, tuple | list):
        return [leaf for part in state for leaf in flatten_state(part)]
    leaf = np.asarray(state)
    if leaf.dtype.kind not in NUMBER_KINDS:
        raise TypeError(f"a state holds {type(state).__name__} ({leaf.dtype}), expected arrays of numbers only")
    return [leaf]


def pack_state(template: Any, leaves: Sequence[np.ndarray]) -> Any:
    """The state nested as `template` with these leaves, whose shapes may differ from the template's.

    A leaf of shape () becomes a NumPy scalar.

    Raises:
      ValueError: there are more or fewer leaves than the template has.
    """
    expected = len(flatten_state(template))
    if len(leaves) != expected:
        raise ValueError(f"{len(leaves)} leaves, expected {expected}")
    return _pack(template, iter(leaves))


def _pack(template: Any, leaves: Iterator[np.ndarray]) -> Any:
    if isinstance(template, Mapping):
        packed = {key: _pack(template[key], leaves) for key in sorted(template)}
        return type(template)((key, packed[key]) for key in template)
    if isinstance(template, tuple | list):
        parts = [_pack(part, leaves) for part in template]
        is_named = hasattr(template, "_fields")
        return type(template)(*parts) if is_named else type(template)(parts)
    return next(leaves)[()]
