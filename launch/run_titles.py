"""What a run is, in a few words for a person: from its flags."""

from collections.abc import Mapping
from typing import Any

from launch.paper_reports import PAPERS

ALGORITHM_NAMES = {algo: name for report in PAPERS.values() for name, algo in report.algorithms.items()}
DATASET_NAMES = {"mnist": "MNIST", "har": "HAR"}


def describe_run(flags: Mapping[str, Any]) -> str:
    """For example "FedSiKD on MNIST, alpha 0.1, seed 0", from the flags in a run's `config.json`."""
    algo = flags["algo"]
    split = describe_split(flags).replace(" dirichlet partition,", "")
    return f"{ALGORITHM_NAMES.get(algo, algo)} on {split}"


def describe_split(flags: Mapping[str, Any]) -> str:
    """For example "MNIST, dirichlet partition, alpha 0.1, seed 0"."""
    dataset, partition = flags["dataset"], flags["partition"]
    details = {
        "dirichlet": [f"alpha {flags['dirichlet_alpha']}"],
        "shards": [f"at most {flags['labels_per_client']} labels a client"],
    }
    name = DATASET_NAMES.get(dataset, dataset)
    return ", ".join([name, f"{partition} partition", *details.get(partition, []), f"seed {flags['seed']}"])
