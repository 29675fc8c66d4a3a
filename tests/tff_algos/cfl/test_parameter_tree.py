"""CFL's parameter tree by hand."""

import numpy as np

from tff_algos.cfl.parameter_tree import plant

MODEL = (np.zeros(2, np.float32), np.array(5, np.int64))  # a weight that is trained, and one that is not
EAST, NORTH, WEST, SOUTH = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], np.float32)
FIRST_TWO = np.array([False, False, True])


def test_clients_go_down_cut_by_cut_with_the_part_that_they_are_like():
    """Cluster 0 loses the western clients, as cluster 1, then the northern ones, as 2; 1 loses southern ones, as 3."""
    tree = plant(MODEL)
    assert tree.descend(3, None).tolist() == [0, 0, 0]
    tree = tree.grow(0, 4, MODEL, np.stack([2 * EAST, EAST, 9 * WEST]), FIRST_TWO)
    tree = tree.grow(0, 6, MODEL, np.stack([EAST, SOUTH, NORTH]), FIRST_TWO)
    tree = tree.grow(1, 6, (MODEL[0] + 1, MODEL[1]), np.stack([WEST, WEST, SOUTH]), FIRST_TWO)
    assert (tree.clusters.tolist(), tree.rounds.tolist()) == ([0, 0, 1], [4, 6, 6])
    assert [array.tolist() for array in tree.models] == [[[0, 0], [0, 0], [1, 1]], [5, 5, 5]]
    np.testing.assert_allclose(tree.directions[1], [np.sqrt([0.5, 0.5]) * [1, -1], [0, 1]], atol=1e-6)

    updates = np.stack([3 * EAST, WEST, SOUTH + 0.1 * WEST, NORTH, 0 * EAST])
    asked = []

    def train(cut, places):
        asked.append((cut, places.tolist()))
        return updates[places]

    # North is like neither east nor west, and zeros are like nothing: both stay in the first part.
    assert tree.descend(5, train).tolist() == [0, 1, 3, 2, 0]
    assert asked == [(0, [0, 1, 2, 3, 4]), (1, [0, 3, 4]), (2, [1, 2])]
