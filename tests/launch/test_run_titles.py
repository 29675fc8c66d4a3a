"""Titles of runs from their flags."""

import pytest

from launch.experiment_config import build_experiment_config, flag_values
from launch.run_titles import describe_run, describe_split


@pytest.mark.parametrize(
    ("values", "run", "split"),
    [
        (
            {"algo": "fedsikd", "dataset": "mnist", "dirichlet_alpha": 0.1},
            "FedSiKD on MNIST, alpha 0.1, seed 0",
            "MNIST, dirichlet partition, alpha 0.1, seed 0",
        ),
        (
            {"algo": "fl_hc", "dataset": "har", "partition": "natural", "seed": 7},
            "FL+HC on HAR, natural partition, seed 7",
            "HAR, natural partition, seed 7",
        ),
        (
            {"algo": "fedavg", "partition": "shards"},
            "FedAvg on digits, shards partition, at most 2 labels a client, seed 0",
            "digits, shards partition, at most 2 labels a client, seed 0",
        ),
    ],
)
def test_a_run_and_its_split_in_words(values, run, split):
    flags = flag_values(build_experiment_config(values))
    assert (describe_run(flags), describe_split(flags)) == (run, split)
