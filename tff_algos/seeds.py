"""Randomness as a pure function of (seed, purpose, round, client, slot), so that any round can be repeated alone."""

import zlib

import numpy as np


def _sequence(seed: int, purpose: str, *indices: int) -> np.random.SeedSequence:
    # A checksum, not `hash`, which differs from one Python process to the next.
    return np.random.SeedSequence((seed, zlib.crc32(purpose.encode()), *indices))


def derive_seed(seed: int, purpose: str, round_num: int = 0, client: int = 0, slot: int = 0) -> np.ndarray:
    """A seed for TensorFlow's stateless ops: int32, shape (2,).

    Args:
      seed: the run's seed, at least 0.
      purpose: what the randomness is for, for example "training"; purposes are independent of each other.
      round_num: round, 0 for what happens once.
      client: index of the client.
      slot: which of the client's models, where it trains several.
    """
    # A view: the same bits, of which words above 2^31 are negative numbers.
    return _sequence(seed, purpose, round_num, client, slot).generate_state(2).view(np.int32)


def derive_generator(seed: int, purpose: str, round_num: int = 0) -> np.random.Generator:
    """A NumPy generator for decisions on the host, such as the cohort of a round."""
    return np.random.default_rng(_sequence(seed, purpose, round_num))
