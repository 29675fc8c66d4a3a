"""Numbers of runs, by hand."""

import math

from reproductions.engine.collection import find_first_round


def test_the_first_round_with_an_accuracy():
    accuracies = {1: 0.5, 2: 0.8, 3: 0.7, 6: 0.9}
    assert find_first_round(accuracies, 0.8, 5) == 2
    assert find_first_round(accuracies, 0.85, 5) == math.inf
    assert find_first_round(accuracies, 0.85, 6) == 6
