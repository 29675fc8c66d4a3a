"""What a run is, in a few words for a person: from its flags."""

from collections.abc import Mapping
from typing import Any

from datasets.catalog import get_title
from launch.settings.run_config import find_algorithm


def describe_run(flags: Mapping[str, Any], dataset: str | None = None) -> str:
    """For example "FedSiKD on MNIST, alpha 0.1, seed 0".

    Args:
      flags: those in the run's `config.json`.
      dataset: the data set's own name, which says if it is a subset; None for that of the flag.

    Raises:
      FlagError: the algorithm is the user's own and cannot be used.
    """
    split = describe_split(flags, dataset).replace(" dirichlet partition,", "")
    return f"{find_algorithm(flags['algo']).title} on {split}"


def describe_split(flags: Mapping[str, Any], dataset: str | None = None) -> str:
    """For example "MNIST, dirichlet partition, alpha 0.1, seed 0"; arguments as for `describe_run`."""
    dataset, partition = dataset or flags["dataset"], flags["partition"]
    details = {
        "dirichlet": [f"alpha {flags['dirichlet_alpha']}"],
        "shards": [f"at most {flags['labels_per_client']} labels a client"],
        "hierarchical": [_describe_bias(flags)],
    }
    name = get_title(dataset)
    if dataset == "building":
        name = f"{name} ({flags['building_heterogeneity']} heterogeneity)"
    return ", ".join([name, f"{partition} partition", *details.get(partition, []), f"seed {flags['seed']}"])


def _describe_bias(flags: Mapping[str, Any]) -> str:
    lowest, highest = flags.get("bias_min"), flags.get("bias_max")
    return f"bias {lowest}" if lowest == highest else f"bias {lowest} to {highest}"
