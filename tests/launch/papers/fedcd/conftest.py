"""Made-up runs of FedCD and FedAvg, a run a seed."""

import pytest


@pytest.fixture
def write_seeds(tmp_path, write_archetype_run):
    """(experiment, accuracies, seeds 0 to 2, ...) writes a run a seed and returns the folder of all.

    A function of the seed gives accuracies or a setting that differ.
    """

    def write(experiment, accuracies, seeds=range(3), **settings):
        for seed in seeds:
            given = {"accuracies": accuracies, **settings}
            of_seed = {name: value(seed) if callable(value) else value for name, value in given.items()}
            write_archetype_run(tmp_path, experiment, seed=seed, **of_seed)
        return tmp_path

    return write
