"""Bins of whole numbers, by hand."""

import numpy as np
import pytest

from launch.pages.inspection import choose_edges, draw_histogram


@pytest.mark.parametrize(
    ("values", "edges"),
    [
        ([5], [5, 6]),
        ([0, 0, 2], [0, 1, 2, 3]),
        ([1, 10], list(range(1, 12))),
        ([100, 125], [100, 103, 106, 109, 112, 115, 118, 121, 124, 127]),  # 26 numbers, 3 a bin
        ([1, 800], [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 801]),
        ([0, 25], [0, 1, 2, 4, 8, 16, 26]),
        ([1, 10**6], [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 10**6 + 1]),
    ],
)
def test_edges(values, edges):
    assert choose_edges(np.array(values)) == edges


@pytest.mark.parametrize("values", [[0], [0, 10**9], [7, 7, 7, 150], list(range(3, 400)), [1, 1023], [1, 1024]])
def test_each_number_is_in_one_bin(values):
    edges = np.array(choose_edges(np.array(values)), np.float64)
    assert (np.diff(edges) > 0).all() and np.histogram(values, edges)[0].sum() == len(values)
    assert edges[0] <= min(values) and len(edges) <= 12


def test_the_least_bar_is_seen():
    lines = draw_histogram(np.array([3] * 1000 + [4]), 10, "#")
    assert lines == ["3  1,000  ##########", "4      1  #"]


def test_a_bin_of_nobody_has_no_bar():
    assert draw_histogram(np.array([1, 3]), 4, "#") == ["1  1  ####", "2  0", "3  1  ####"]
