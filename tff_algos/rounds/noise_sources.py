"""Where the noise of private sums is drawn from: the run's seed in a simulation, the operating system where it counts.

Who knows the seed of a simulation can take its noise away again. The noise of a live run must be such that nobody can
draw it again, and its digits must tell nothing either:

1. All random bits come from `os.urandom`, whose generator no output gives away, unlike NumPy's.
2. Sums are made of whole numbers, of which one is a small part of the clip norm (`find_grid`), each update's entries
   cut towards 0, which makes no norm larger. They have no rounding that could depend on a client (Mironov 2012).
3. Noise is rounded to the same grid. Rounding a + X, with a whole number a, is a + rounding X: so what comes out is a
   function of the sum with unrounded noise, and every number of the grid is possible with every client.

What is left: normal numbers are computed in float64, so that the chance of each number of the grid is right to about
eight digits, and not exact; and none is drawn beyond 9.5 deviations, which has a chance of 3e-21 a number.
"""

import dataclasses
import math
import os
from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol

import numpy as np

from tff_algos.seeds import derive_generator

# Of the clip norm on the grid: fewer would cut updates noticeably, more would show digits that float64 has not right.
GRID_BITS = 24
WORD_BYTES = 8


class Normals(Protocol):
    """Gives numbers of the standard normal distribution, float64; NumPy's generators do."""

    def standard_normal(self, size: tuple[int, ...] = ()) -> np.ndarray | float:
        """Independent ones of this shape; a single number of the shape ()."""


class NoiseSource(Protocol):
    """Draws the noise of a release.

    Attributes:
      is_seeded: whether it can be drawn again.
      description: of where it comes from, for a line.
    """

    is_seeded: ClassVar[bool]
    description: ClassVar[str]

    def open(self, release: int, round_num: int) -> Normals:
        """The numbers of this release of a round, 1-based, in the order in which they are taken."""

    def add(self, sums: Sequence[np.ndarray], deviation: float, clip_norm: float, normals: Normals) -> list[np.ndarray]:
        """The sums with noise of this deviation on every entry, float64; one client changes them by `clip_norm`."""


@dataclasses.dataclass(frozen=True)
class SeededNoise:
    """Noise of a simulation, which a resumed or repeated run draws again, in floating point."""

    seed: int

    is_seeded: ClassVar[bool] = True
    description: ClassVar[str] = "from --seed, so for simulation only"

    def open(self, release: int, round_num: int) -> Normals:
        return derive_generator(self.seed, f"update noise {release}", round_num)

    def add(self, sums: Sequence[np.ndarray], deviation: float, clip_norm: float, normals: Normals) -> list[np.ndarray]:
        del clip_norm
        return [np.asarray(each) + deviation * normals.standard_normal(np.shape(each)) for each in sums]


@dataclasses.dataclass(frozen=True)
class SystemNoise:
    """Noise that nobody can draw again, on a grid; each call draws anew.

    Attributes:
      read: gives so many random bytes.
    """

    read: Callable[[int], bytes] = os.urandom

    is_seeded: ClassVar[bool] = False
    description: ClassVar[str] = "from the operating system, so that nobody can draw it again"

    def open(self, release: int, round_num: int) -> Normals:
        del release, round_num
        return self

    def standard_normal(self, size: tuple[int, ...] = ()) -> np.ndarray | float:
        """By Box and Muller, two of each pair of words of 64 bits: the first is a radius, the second an angle."""
        count = math.prod(size)
        num_pairs = -(-count // 2)
        words = np.frombuffer(self.read(2 * num_pairs * WORD_BYTES), "<u8").reshape(2, num_pairs)
        # In (0, 1): half a step from both ends, so that no logarithm is of 0.
        radius = np.sqrt(-2 * np.log((words[0].astype(np.float64) + 0.5) * 2.0**-64))
        angle = words[1].astype(np.float64) * (2 * np.pi * 2.0**-64)
        drawn = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count].reshape(size)
        return drawn if size else float(drawn)

    def add(self, sums: Sequence[np.ndarray], deviation: float, clip_norm: float, normals: Normals) -> list[np.ndarray]:
        grid = find_grid(clip_norm)
        noises = [np.rint(deviation / grid * normals.standard_normal(np.shape(each))) for each in sums]
        return [(count_steps(each, grid) + noise.astype(np.int64)) * grid
                for each, noise in zip(sums, noises, strict=True)]  # fmt: skip


def find_grid(clip_norm: float) -> float:
    """The step of the grid on which sums of updates within this norm are made: a power of two, so that it is exact."""
    return 2.0 ** (math.frexp(clip_norm)[1] - 1 - GRID_BITS)


def count_steps(array: np.ndarray, grid: float) -> np.ndarray:
    """An array as whole numbers of steps, int64, cut towards 0."""
    return np.trunc(np.asarray(array, np.float64) / grid).astype(np.int64)
