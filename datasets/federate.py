"""From pooled arrays to a federation: partition, each client's own splits, shards on disk, simulated devices."""

import dataclasses
import hashlib
import json
import os

import numpy as np

from datasets.archetypes import ARCHETYPE_PARTITIONS, describe_archetypes, draw_clients
from datasets.arrays import ArrayDataset
from datasets.client_source import ClientSource
from datasets.device_profiles import draw_device_profiles
from datasets.errors import DatasetError
from datasets.federate_source import build_source_federation
from datasets.federated_data import SPLITS, Archetypes, ClientShard, FederatedData
from datasets.layouts import describe_examples
from datasets.partitioners import PARTITIONS, Partition, PartitionSettings, check_partition, partition_natural
from datasets.shards import (
    FORMAT_VERSION,
    ClientSplits,
    clean_shard_dir,
    default_shard_dir,
    get_client_prefix,
    open_or_write_entry,
)
from datasets.splits import split_client

__all__ = ["PartitionSettings", "build_federated_data", "clean_shard_dir", "default_shard_dir", "partition_clients"]


def build_federated_data(
    arrays: ArrayDataset | ClientSource,
    settings: PartitionSettings,
    shard_dir: str,
    num_new_clients: int = 0,
    most_test_examples: int = 0,
) -> FederatedData:
    """Partitions a data set over clients, writes their shards unless the cache has them, and describes the result.

    Each client's validation and test split is drawn from its part of the train data. There are two exceptions. Natural
    clients take their test split from the test part, if the data set says whose examples those are. With an archetype
    partition each split is drawn from its own pool (see `datasets.archetypes`). The data set's test part is the global
    test set. Devices are drawn from `settings.seed` with the default distributions.

    The clients of a source, where they stay as they are, are not read here: see `datasets.federate_source`. Other
    partitions take all its examples into memory.

    Args:
      arrays: the data set.
      settings: partition, splits and seed.
      shard_dir: the cache folder; the same path on every machine that runs a worker.
      num_new_clients: so many, the last ones, take no part in training; not with an archetype partition.
      most_test_examples: in the global test set of a source; 0: all.

    Raises:
      DatasetError: there are only new clients, the partition is impossible for this data set, or `shard_dir` cannot be
        written.
    """
    is_source = isinstance(arrays, ClientSource)
    check_partition(settings.partition, arrays.format.labels if is_source else arrays.labels)
    if is_source and settings.partition == "natural":
        return build_source_federation(arrays, settings, shard_dir, num_new_clients, most_test_examples)
    arrays = arrays.pool(settings.seed) if is_source else arrays
    digest = _compute_digest(arrays, settings)
    entry, index = open_or_write_entry(shard_dir, digest, lambda: _split(arrays, settings))
    everyone = tuple(
        ClientShard(
            index=client,
            name=_name_client(arrays, settings, client),
            place=os.path.join(entry, get_client_prefix(client)),
            **{f"num_{split}": counts[split] for split in SPLITS},
        )
        for client, counts in enumerate(index["clients"])
    )
    num_clients = len(everyone) - num_new_clients
    if num_clients < 1:
        raise DatasetError(f"new_clients={num_new_clients}: expected fewer than the {len(everyone)} clients there are")
    clients = everyone[:num_clients]
    return FederatedData(
        dataset=arrays.name,
        input_shape=arrays.train_x.shape[1:],
        input_dtype=arrays.train_x.dtype.name,
        class_names=arrays.class_names,
        preprocessing=arrays.preprocessing,
        clients=clients,
        label_counts=_count_labels(clients, arrays),
        test_x=arrays.test_x,
        test_y=arrays.test_y,
        profiles=draw_device_profiles(len(everyone), settings.seed),
        digest=digest,
        num_dropped=arrays.num_dropped,
        archetypes=_describe_archetypes(arrays, settings),
        new_clients=everyone[num_clients:],
        num_clients_left_out=arrays.num_clients_left_out if settings.partition == "natural" else 0,
        reading=arrays.reading or describe_examples(arrays.train_x.shape[1:], arrays.preprocessing),
        notes=arrays.notes,
        labels=arrays.labels,
        takes_tokens=arrays.takes_tokens,
        are_features=arrays.are_features,
        feature_names=arrays.feature_names,
        feature_units=arrays.feature_units,
    )


def partition_clients(arrays: ArrayDataset, settings: PartitionSettings) -> Partition:
    """Indices of each client's train examples, before its own validation and test split are taken out.

    Only for `PARTITIONS`; for archetypes there is `datasets.archetypes.draw_clients`.
    """
    rng = np.random.default_rng([settings.seed, 1])
    return PARTITIONS[settings.partition](arrays.train_y, arrays.train_clients, settings, rng)


def _split(arrays: ArrayDataset, settings: PartitionSettings) -> ClientSplits:
    if settings.partition in ARCHETYPE_PARTITIONS:
        return _split_by_archetype(arrays, settings)
    has_own_tests = settings.partition == "natural" and arrays.test_clients is not None
    drawn = dataclasses.replace(settings, test_fraction=0.0) if has_own_tests else settings
    is_ordered = settings.partition == "natural" and arrays.is_ordered_by_time
    parts = enumerate(partition_clients(arrays, settings))
    splits = [split_client(part, client, drawn, is_ordered) for client, part in parts]
    x, y = arrays.train_x, arrays.train_y
    clients = [{split: (x[part[split]], y[part[split]]) for split in SPLITS} for part in splits]
    if has_own_tests:
        for client, own in zip(clients, partition_natural(arrays.test_clients, len(clients)), strict=True):
            client["test"] = arrays.test_x[own], arrays.test_y[own]
    return clients


def _split_by_archetype(arrays: ArrayDataset, settings: PartitionSettings) -> ClientSplits:
    train, test = (arrays.train_x, arrays.train_y), (arrays.test_x, arrays.test_y)
    sources = {"train": train, "validation": train, "test": test}
    clients = draw_clients(arrays, settings.partition, settings.archetypes, settings.seed)
    return [{split: (sources[split][0][i], sources[split][1][i]) for split, i in part.items()} for part in clients]


def _describe_archetypes(arrays: ArrayDataset, settings: PartitionSettings) -> Archetypes | None:
    if settings.partition not in ARCHETYPE_PARTITIONS:
        return None
    return describe_archetypes(settings.partition, arrays.class_names, settings.archetypes)


def _compute_digest(arrays: ArrayDataset, settings: PartitionSettings) -> str:
    values = dataclasses.asdict(settings)
    # Settings without effect would make two entries of the cache for the same shards.
    values["archetypes"] = settings.archetypes.identify()
    if settings.partition not in ARCHETYPE_PARTITIONS:
        del values["archetypes"]
    if not settings.most_train_examples:  # as before there was this setting
        del values["most_train_examples"]
    identity = [FORMAT_VERSION, arrays.source_digest, values]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def _name_client(arrays: ArrayDataset, settings: PartitionSettings, client: int) -> str:
    is_natural = settings.partition == "natural" and arrays.client_names is not None
    return arrays.client_names[client] if is_natural else f"client_{client}"


def _count_labels(clients: tuple[ClientShard, ...], arrays: ArrayDataset) -> np.ndarray:
    if not arrays.labels.is_by_class:
        return np.zeros((len(clients), 0), np.int64)
    num_classes = len(arrays.class_names)
    rows = [np.bincount(np.fromfile(f"{client.path}.train.y", np.int32), minlength=num_classes) for client in clients]
    return np.stack(rows).astype(np.int64)
