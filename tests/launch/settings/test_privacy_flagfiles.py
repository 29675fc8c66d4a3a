"""The runs of accuracy against epsilon differ in what the clients share alone."""

import pytest

from launch.runs.run_records import find_flagfile, list_flagfiles, resolve_flagfile
from launch.settings.run_config import flag_values

CELL = "fedsikd_mnist_alpha0.1"
EPSILONS = {"1": 1.0, "2": 2.0, "4": 4.0, "8": 8.0, "_none": 0.0}


def resolve(stem):
    return flag_values(resolve_flagfile(find_flagfile(stem)))


@pytest.mark.parametrize("statistics", ["scalar", "per_feature"])
@pytest.mark.parametrize("suffix", EPSILONS)
def test_a_run_with_an_epsilon_is_the_cell_but_for_statistics_weights_and_rounds(statistics, suffix):
    expected = resolve(CELL) | {"rounds": 5, "fedsikd_statistics": statistics, "fedsikd_weighting": "examples"}
    expected |= {"fedsikd_privacy_epsilon": EPSILONS[suffix], "fedsikd_privacy_delta": 1e-5}
    assert resolve(f"{CELL}_{statistics}_epsilon{suffix}") == expected


def test_there_are_no_others():
    assert sum("_epsilon" in path.stem for path in list_flagfiles()) == 2 * len(EPSILONS)
