"""The data that a config asks for as they lie there, before clients get files, and what names them. No TensorFlow."""

import dataclasses

from datasets.arrays import ArrayDataset
from datasets.catalog import find_dataset
from datasets.class_weights import digest_class_weights, load_class_weights
from datasets.client_source import ClientSource
from datasets.device_table import load_device_profiles
from datasets.federate import PartitionSettings, identify_federated_data
from datasets.smoke import make_random_arrays
from datasets.standardized_clients import standardize_clients
from launch.runs.columns import CLASS_WEIGHTS_DIGEST, DEVICES, DIGEST
from launch.settings.data_flags import BALANCED, CLIENT, NONE, choose_options
from launch.settings.run_config import RunConfig


def is_random(config: RunConfig) -> bool:
    """Whether the examples are random numbers, as those of a smoke run are where their format is known."""
    return config.smoke and find_dataset(config.dataset).is_drawn_for_smoke


def open_data(config: RunConfig) -> tuple[ArrayDataset | ClientSource, PartitionSettings]:
    """The data, and how they are divided. Raises DatasetError as `identify_data` does."""
    row, options = find_dataset(config.dataset), choose_options(vars(config))
    arrays = make_random_arrays(row, options) if is_random(config) else row.load(options)
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(PartitionSettings)}
    # Fewer clients share as many shards, so each would hold more labels than there are.
    if config.smoke:
        values["labels_per_client"] = max(1, min(config.labels_per_client, arrays.format.num_classes))
    return arrays, PartitionSettings(**values)


def name_data(config: RunConfig) -> str:
    """The name of the data set that a run with this config would have: what lies here, or else would be downloaded.

    A subset is named by its sizes. Nothing is downloaded.

    Raises:
      DatasetError: a file is damaged.
    """
    row = find_dataset(config.dataset)
    if not (is_random(config) or row.find(config.data_dir or None).found):
        return row.name
    return open_data(config)[0].name


def identify_data(config: RunConfig) -> dict[str, str]:
    """The digests of the data that a run with this config would have now, as `config.json` names them.

    The data are opened as a run opens them, but no client gets a file. Nothing is downloaded.

    Returns:
      Those that the data have; none where they do not lie on this machine.

    Raises:
      DatasetError: a file is missing or damaged, or the split asked for cannot be made.
    """
    row = find_dataset(config.dataset)
    if not (is_random(config) or row.find(config.data_dir or None).found):
        return {}
    arrays, settings = open_data(config)
    arrays = standardize_clients(arrays, config.unscaled) if config.standardize == CLIENT else arrays
    found = {DIGEST: identify_federated_data(arrays, settings)}
    if config.device_profiles:
        found[DEVICES] = load_device_profiles(config.device_profiles, 1, config.seed).digest
    if config.class_weights not in (NONE, BALANCED):
        weights = load_class_weights(config.class_weights, arrays.format.class_names)
        found[CLASS_WEIGHTS_DIGEST] = digest_class_weights(weights)
    return found
