"""Noise from the operating system: its numbers by hand and by measurement, and sums that are whole numbers."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tff_algos.rounds.noise_sources import SeededNoise, SystemNoise, count_steps, find_grid

HALF, QUARTER = 2**63, 2**62  # of 2^64


def give(*words):
    """A source whose bytes are these words of 64 bits, again and again."""
    return SystemNoise(lambda count: (struct.pack(f"<{len(words)}Q", *words) * count)[:count])


def test_two_words_make_two_numbers_as_box_and_muller_say():
    """u = 1/2 is the radius sqrt(2 ln 2); at angle 0 its cosine is 1, at a quarter of a turn its sine."""
    radius = math.sqrt(2 * math.log(2))
    np.testing.assert_allclose(give(HALF, 0).standard_normal((2,)), [radius, 0], atol=1e-15)
    np.testing.assert_allclose(give(HALF, QUARTER).standard_normal((2,)), [0, radius], atol=1e-15)
    assert give(HALF, 0).standard_normal() == pytest.approx(radius)
    assert give(HALF, 0).standard_normal((0, 3)).shape == (0, 3)


def test_the_smallest_and_the_largest_word_are_finite():
    """The smallest u is 2^-65: sqrt(130 ln 2) = 9.49; the largest is 1 to float64's last digit, and -0 is 0."""
    assert give(0, 0).standard_normal() == pytest.approx(math.sqrt(130 * math.log(2)))
    assert give(2**64 - 1, 0).standard_normal() == 0


def test_as_many_bytes_are_read_as_pairs_need():
    asked = []
    source = SystemNoise(lambda count: asked.append(count) or bytes(count))
    source.standard_normal((3, 5))
    source.standard_normal()
    assert asked == [8 * 16, 16]


def test_the_systems_numbers_are_normal_and_independent():
    """Bounds of 8 standard errors, which a right source passes but once in 10^15 runs."""
    count = 200_000
    drawn, again = (SystemNoise().standard_normal((count // 2, 2)) for _ in range(2))
    numbers = drawn.ravel()
    assert abs(numbers.mean()) < 8 / math.sqrt(count)
    assert abs(numbers.var() - 1) < 8 * math.sqrt(2 / count)
    assert abs(np.mean(numbers**4) - 3) < 8 * math.sqrt(96 / count)
    for most, share in ((1.0, 0.6826894921), (2.0, 0.9544997361), (3.0, 0.9973002039)):
        assert abs(np.mean(np.abs(numbers) < most) - share) < 8 * math.sqrt(share * (1 - share) / count)
    for other in (again.ravel(), np.roll(numbers, 1), np.roll(numbers, count // 2)):
        assert abs(np.mean(numbers * other)) < 8 / math.sqrt(count)


def test_the_grid_is_a_power_of_two_below_the_clip_norm():
    assert find_grid(1.0) == 2.0**-24 and find_grid(1.999) == 2.0**-24 and find_grid(2.0) == 2.0**-23
    for norm in (np.finfo(np.float32).tiny, np.finfo(np.float32).max):
        assert 2.0**24 <= norm / find_grid(float(norm)) < 2.0**25


@given(st.lists(st.floats(-4, 4, width=32), min_size=1, max_size=30))
def test_cut_to_the_grid_no_entry_grows(entries):
    array, grid = np.array(entries, np.float32), find_grid(4.0)
    steps = count_steps(array, grid)
    assert steps.dtype == np.int64 and np.all(np.abs(steps * grid) <= np.abs(array))
    assert np.all(np.abs(steps * grid - array) < grid)


def test_noise_is_rounded_to_the_grid_and_added_to_whole_numbers():
    """S = 1, so steps of 2^-24; the noise is 3 * 1.17741 = 3.53223, and what is less than a step of it goes."""
    (noisy,) = give(HALF, 0).add([np.array([0.25, -0.5])], 3.0, 1.0, give(HALF, 0))
    expected = round(3 * math.sqrt(2 * math.log(2)) * 2**24)
    assert (noisy * 2**24).tolist() == [2**22 + expected, -(2**23)]


def test_whatever_the_sum_the_digits_of_the_noise_are_the_same():
    """The attack of Mironov 2012 tells sums apart by digits of a + X that only some a can have."""
    normals = SystemNoise().standard_normal((50,))
    fixed = type("Fixed", (), {"standard_normal": lambda self, size: normals})()
    one, other = (SystemNoise().add([np.full(50, a)], 2.0, 1.0, fixed)[0] for a in (0.0, 0.7))
    assert len(np.unique(other - one)) == 1


def test_without_a_deviation_the_sum_stays():
    for source in (SystemNoise(), SeededNoise(3)):
        (noisy,) = source.add([np.array([0.25, -1.5])], 0.0, 1.0, source.open(0, 1))
        assert noisy.tolist() == [0.25, -1.5]


def test_seeded_noise_comes_again_and_the_systems_does_not():
    zeros = [np.zeros(40)]
    for source, comes_again in ((SeededNoise(3), True), (SystemNoise(), False)):
        one, other = (source.add(zeros, 1.0, 1.0, source.open(0, 1))[0] for _ in range(2))
        assert source.is_seeded == comes_again == np.array_equal(one, other)
