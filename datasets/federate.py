"""From pooled arrays to a federation: partition, each client's own splits, files on disk, simulated devices."""

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping

import numpy as np

from datasets.archetypes import describe_archetypes, draw_clients
from datasets.arrays import ArrayDataset
from datasets.client_files import (
    FORMAT_VERSION,
    WEIGHTS_SUFFIX,
    ClientSplits,
    clean_client_dir,
    default_client_dir,
    get_client_prefix,
    open_or_write_entry,
)
from datasets.client_source import TRAIN, ClientSource
from datasets.device_profiles import draw_device_profiles
from datasets.example_weights import measure_weights
from datasets.federate_source import build_source_federation, divide_clients, identify_source
from datasets.federated_data import SPLITS, Archetypes, ClientFiles, FederatedData
from datasets.kept_clients import keep_some_clients
from datasets.layouts import describe_examples
from datasets.partition_settings import ARCHETYPE_PARTITIONS, PACHINKO, PartitionSettings
from datasets.partitioners import PARTITIONS, Partition, check_partition, partition_natural
from datasets.splits import split_client
from datasets.variants import (
    assign_dealt,
    assign_natural,
    deal_tests,
    describe_groups,
    make_transforms,
    transform_client,
    transform_test,
    vary_source,
)

__all__ = ["PartitionSettings", "build_federated_data", "clean_client_dir", "default_client_dir", "partition_clients"]


def build_federated_data(
    arrays: ArrayDataset | ClientSource,
    settings: PartitionSettings,
    client_dir: str,
    num_new_clients: int = 0,
    most_test_examples: int = 0,
) -> FederatedData:
    """Partitions a data set over clients, writes their files unless the cache has them, and describes the result.

    Each client's validation and test split is drawn from its part of the train data. There are two exceptions. Natural
    clients take their test split from the test part, if the data set says whose examples those are. With an archetype
    partition each split is drawn from its own pool (see `datasets.archetypes`). The data set's test part is the global
    test set. Devices are drawn from `settings.seed` with the default distributions.

    The clients of a source, where they stay as they are, are not read here: see `datasets.federate_source`. Other
    partitions take all its examples into memory.

    Args:
      arrays: the data set.
      settings: partition, splits and seed.
      client_dir: the cache folder.
      num_new_clients: so many, the last ones, take no part in training; not with an archetype partition.
      most_test_examples: in the global test set of a source; 0: all.

    Raises:
      DatasetError: there are only new clients, the partition is impossible for this data set, or `client_dir` cannot be
        written.
    """
    variant, is_natural = settings.variant, settings.partition == "natural"
    arrays = _narrow(arrays, settings)
    if isinstance(arrays, ClientSource):
        data = build_source_federation(arrays, settings, client_dir, num_new_clients, most_test_examples)
        return dataclasses.replace(data, archetypes=_describe_archetypes(arrays, settings, len(data.everyone)))
    test_x, test_y = arrays.test_x, arrays.test_y
    if variant.is_active:  # the test set is as the groups see it
        owners = None
        if is_natural and arrays.test_clients is not None:
            owners = assign_natural(len(arrays.client_names), variant)[arrays.test_clients]
        test_x, test_y = transform_test(arrays, make_transforms(variant, arrays.format, settings.seed), owners)
    digest = _compute_digest(arrays, settings)
    entry, index = open_or_write_entry(client_dir, digest, lambda: _split(arrays, settings))
    names = arrays.client_names if is_natural else None
    everyone = tuple(
        ClientFiles(
            index=client,
            name=names[client] if names else f"client_{client}",
            place=os.path.join(entry, get_client_prefix(client)),
            **{f"num_{split}": counts[split] for split in SPLITS},
        )
        for client, counts in enumerate(index["clients"])
    )
    clients, new_clients = divide_clients(everyone, num_new_clients)
    example_format = arrays.format
    if arrays.weights is not None:
        values = [np.fromfile(client.path + WEIGHTS_SUFFIX, np.float32) for client in everyone]
        example_format = measure_weights(arrays.name, example_format, arrays.weights.column, values)
    return FederatedData(
        dataset=arrays.name,
        format=example_format,
        clients=clients,
        label_counts=_count_labels(clients, arrays),
        test_x=test_x,
        test_y=test_y,
        profiles=draw_device_profiles(len(everyone), settings.seed),
        digest=digest,
        num_dropped=arrays.num_dropped,
        archetypes=_describe_archetypes(arrays, settings, len(everyone)),
        new_clients=new_clients,
        num_clients_left_out=arrays.num_clients_left_out if is_natural else 0,
        reading=arrays.reading or describe_examples(arrays.format.input_shape, arrays.format.preprocessing),
        notes=arrays.notes,
        filled=arrays.filled,
    )


def identify_federated_data(arrays: ArrayDataset | ClientSource, settings: PartitionSettings) -> str:
    """The digest of what `build_federated_data` makes of these: nothing is partitioned, and no file written.

    Raises:
      DatasetError: the partition is impossible for this data set.
    """
    arrays = _narrow(arrays, settings)
    return (identify_source if isinstance(arrays, ClientSource) else _compute_digest)(arrays, settings)


def _narrow(arrays: ArrayDataset | ClientSource, settings: PartitionSettings) -> ArrayDataset | ClientSource:
    """The clients that count, as a source where its own clients stay, else as arrays."""
    check_partition(settings.partition, arrays.format.labels)
    if settings.most_clients or settings.fewest_examples:
        arrays = keep_some_clients(arrays, settings)
    if not isinstance(arrays, ClientSource):
        return arrays
    if settings.partition != "natural":
        return arrays.pool(settings.seed)
    return vary_source(arrays, settings.variant, settings.seed) if settings.variant.is_active else arrays


def partition_clients(arrays: ArrayDataset, settings: PartitionSettings, group: int | None = None) -> Partition:
    """Indices of each client's train examples, before its own validation and test split are taken out.

    Only for `PARTITIONS`; for archetypes there is `datasets.archetypes.draw_clients`. A group of clients, of those that
    each divide all examples, has a draw of its own.
    """
    rng = np.random.default_rng([settings.seed, 1] if group is None else [settings.seed, 1, group])
    partition = PARTITIONS[settings.partition]
    return partition(arrays.train_y, arrays.train_clients, settings, rng, arrays.format.class_names)


def _split(arrays: ArrayDataset, settings: PartitionSettings) -> ClientSplits:
    variant = settings.variant
    if settings.partition in ARCHETYPE_PARTITIONS:
        train, test = (arrays.train_x, arrays.train_y), (arrays.test_x, arrays.test_y)
        sources = {"train": train, "validation": train, "test": test}
        drawn = draw_clients(arrays, settings.partition, settings.archetypes, settings.seed)
        return [
            _weigh({split: (sources[split][0][i], sources[split][1][i]) for split, i in part.items()}, arrays, part)
            for part in drawn
        ]
    if not variant.is_active:
        return _split_plainly(arrays, settings)
    transforms = make_transforms(variant, arrays.format, settings.seed)
    if settings.partition == "natural":
        clients = _split_plainly(arrays, settings)
        groups = assign_natural(len(clients), variant)
        return [transform_client(client, transforms[group]) for client, group in zip(clients, groups, strict=True)]
    groups = assign_dealt(settings.num_clients, variant)
    of_group = dataclasses.replace(settings, num_clients=settings.num_clients // variant.groups, test_fraction=0.0)
    parts = [part for group in range(variant.groups) for part in partition_clients(arrays, of_group, group)]
    tests = deal_tests(arrays, settings.num_clients, variant, settings.seed)
    clients = []
    for client, (part, test, group) in enumerate(zip(parts, tests, groups, strict=True)):
        own = split_client(part, client, of_group)
        splits = {split: (arrays.train_x[own[split]], arrays.train_y[own[split]]) for split in SPLITS}
        splits["test"] = arrays.test_x[test], arrays.test_y[test]
        clients.append(transform_client(_weigh(splits, arrays, own), transforms[group]))
    return clients


def _split_plainly(arrays: ArrayDataset, settings: PartitionSettings) -> ClientSplits:
    has_own_tests = settings.partition == "natural" and arrays.test_clients is not None
    drawn = dataclasses.replace(settings, test_fraction=0.0) if has_own_tests else settings
    is_ordered = settings.partition == "natural" and arrays.is_ordered_by_time
    parts = enumerate(partition_clients(arrays, settings))
    splits = [split_client(part, client, drawn, is_ordered) for client, part in parts]
    x, y = arrays.train_x, arrays.train_y
    clients = [_weigh({split: (x[part[split]], y[part[split]]) for split in SPLITS}, arrays, part) for part in splits]
    if has_own_tests:
        for client, own in zip(clients, partition_natural(arrays.test_clients, len(clients)), strict=True):
            client["test"] = arrays.test_x[own], arrays.test_y[own]
    return clients


def _weigh(
    splits: dict[str, tuple[np.ndarray, ...]], arrays: ArrayDataset, rows: Mapping[str, np.ndarray]
) -> dict[str, tuple[np.ndarray, ...]]:
    """A client's splits, made of these rows, with the weights of its train examples, if the data have any."""
    if arrays.weights is None:
        return splits
    return {**splits, TRAIN: (*splits[TRAIN], arrays.weights.values[rows[TRAIN]])}


def _describe_archetypes(
    data: ArrayDataset | ClientSource, settings: PartitionSettings, num_clients: int
) -> Archetypes | None:
    """The kinds of all clients, also of those that come when training is over."""
    if settings.variant.is_active:
        assign = assign_natural if settings.partition == "natural" else assign_dealt
        return describe_groups(settings.variant, assign(num_clients, settings.variant))
    if settings.partition not in ARCHETYPE_PARTITIONS:
        return None
    return describe_archetypes(settings.partition, data.format.class_names, settings.archetypes)


def _compute_digest(arrays: ArrayDataset, settings: PartitionSettings) -> str:
    values = dataclasses.asdict(settings)
    # Settings without effect would make two entries of the cache for the same files.
    values["archetypes"] = settings.archetypes.identify()
    if settings.partition not in ARCHETYPE_PARTITIONS:
        del values["archetypes"]
    if settings.partition != PACHINKO:
        del values["pachinko"]
    if not settings.variant.is_active:
        del values["variant"]
    del values["fewest_examples"], values["most_clients"]  # the digest of the data tells
    if not settings.most_train_examples:  # as before there was this setting
        del values["most_train_examples"]
    identity = [FORMAT_VERSION, arrays.source_digest, values]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def _count_labels(clients: tuple[ClientFiles, ...], arrays: ArrayDataset) -> np.ndarray:
    if not arrays.format.labels.is_by_class:
        return np.zeros((len(clients), 0), np.int64)
    num_classes = arrays.format.num_classes
    rows = [np.bincount(np.fromfile(f"{client.path}.train.y", np.int32), minlength=num_classes) for client in clients]
    return np.stack(rows).astype(np.int64)
