"""Rounds of a process, and what comes of them beside what is expected."""

import numpy as np


def run(process, num_rounds=1, state=None):
    """(the state after so many rounds, their metrics), from the first state or from a given one."""
    state, rows = process.initialize() if state is None else state, []
    for _ in range(num_rounds):
        state, metrics = process.next(state)
        rows.append(metrics)
    return state, rows


def silence(state):
    """The same state of a private run without noise."""
    return state._replace(aggregator=state.aggregator._replace(noise_multiplier=np.float64(0)))


def flatten(arrays):
    """The numbers of several arrays as a vector."""
    return np.concatenate([np.ravel(array) for array in arrays])


def assert_same(first, second):
    """Two sequences of arrays are equal, number by number."""
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def assert_close(first, second, atol=1e-6, rtol=1e-7):
    """Two sequences of arrays are alike within a tolerance."""
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)
