"""Bytes of a model by hand."""

import numpy as np

from tff_algos.simulation.byte_ledger import compute_model_bytes


def test_only_floating_point_weights_travel_at_their_bits():
    """10 + 3 floats: 52 bytes at 32 bits; at 4 bits 5 + 2 bytes, each tensor rounded up to whole bytes."""
    weights = (np.zeros((5, 2), np.float32), np.zeros(3, np.float32), np.zeros((), np.int64))
    assert compute_model_bytes(weights) == 52
    assert compute_model_bytes(weights, bits=4) == 7
    assert compute_model_bytes(()) == 0
