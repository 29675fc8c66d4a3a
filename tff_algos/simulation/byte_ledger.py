"""Counts what travels between server and clients."""

from tff_algos.protocol import Weights


def compute_model_bytes(weights: Weights, bits: int = 32) -> int:
    """Bytes of one model on the wire: its floating-point weights at `bits` bits each; integer weights never travel."""
    return sum((array.size * bits + 7) // 8 for array in weights if array.dtype.kind == "f")
