"""From a data set to a federation: its clients, their own splits, files on disk, simulated devices.

Pooled arrays are partitioned, and all files written at once. The clients of a source stay as they are, or some of them,
and files are written when somebody asks for them: their folder is an entry of the cache like any other, but its index
names no clients, since they come one by one, over several runs. A client's files count if their sums are right; each
file gets its name when it is complete, so no lock is needed.
"""

import dataclasses
import hashlib
import os
from collections.abc import Mapping

import numpy as np

from datasets.archetypes import describe_archetypes, draw_clients
from datasets.arrays import ArrayDataset
from datasets.block_splits import split_blocks
from datasets.class_weights import measure_weights
from datasets.client_files import (
    FORMAT_VERSION,
    SUFFIXES,
    WEIGHTS_SUFFIX,
    ClientSplits,
    clean_client_dir,
    default_client_dir,
    explain_write_errors,
    get_client_prefix,
    is_client_whole,
    open_or_write_entry,
    write_client,
)
from datasets.client_source import TEST, TRAIN, VALIDATION, ClientSource
from datasets.device_table import draw_device_profiles
from datasets.errors import DatasetError
from datasets.example_format import REGRESSION
from datasets.federated_data import SPLITS, Archetypes, ClientFiles, FederatedData
from datasets.layouts import describe_examples
from datasets.npz_labels import standardise_labels
from datasets.partition_settings import ARCHETYPE_PARTITIONS, PACHINKO, ArchetypeSettings, PartitionSettings
from datasets.partitioners import (
    MINIMUM_EXAMPLES_TO_SPLIT,
    PARTITIONS,
    Partition,
    check_partition,
    count_drawn,
    partition_natural,
    split_client,
)
from datasets.variants import (
    assign_groups,
    deal_tests,
    describe_groups,
    make_transforms,
    transform_client,
    transform_test,
    vary_source,
)
from files.digests import compute_source_digest


def select_clients(data: ArrayDataset | ClientSource, settings: PartitionSettings) -> ArrayDataset | ClientSource:
    """The data of clients with `fewest_examples` to train on, `most_clients` of them drawn; in their order.

    The global test set is that of the chosen clients, where the data say whose its examples are.

    Raises:
      DatasetError: no client has as many examples.
    """
    if isinstance(data, ClientSource):
        counts = data.num_examples[TRAIN]
    elif data.train_clients is None:
        # That there are no clients is said by the partition.
        return data
    else:
        counts = np.bincount(data.train_clients, minlength=len(data.client_names))
    chosen = np.flatnonzero(counts >= max(settings.fewest_examples, 1))
    if not len(chosen):
        raise DatasetError(
            f"fewest_examples={settings.fewest_examples}: expected at most {counts.max()}, which the largest client has"
        )
    if 0 < settings.most_clients < len(chosen):
        # Each purpose has a stream of random numbers of its own, so that no draw shifts another.
        chosen = np.sort(np.random.default_rng([settings.seed, 6]).permutation(chosen)[: settings.most_clients])
    if len(chosen) == np.count_nonzero(counts):
        return data
    names = tuple(data.client_names[client] for client in chosen)
    digest = data.digest if isinstance(data, ClientSource) else data.source_digest
    digest = hashlib.sha256(f"{digest} {chosen.tolist()}".encode()).hexdigest()
    if isinstance(data, ClientSource):
        return dataclasses.replace(
            data,
            client_names=names,
            num_examples={split: numbers[chosen] for split, numbers in data.num_examples.items()},
            read=lambda client, split: data.read(int(chosen[client]), split),
            weights=data.weights
            and data.weights._replace(read=lambda client, split: data.weights.read(int(chosen[client]), split)),
            count_labels=data.count_labels and (lambda: data.count_labels()[chosen]),
            digest=digest,
        )
    # Examples of the others get -1, by which they are left out below.
    position = np.full(len(data.client_names), -1)
    position[chosen] = np.arange(len(chosen))
    train = position[data.train_clients]
    changes = {
        "train_x": data.train_x[train >= 0],
        "train_y": data.train_y[train >= 0],
        "train_clients": train[train >= 0],
    }
    if data.weights is not None:
        changes["weights"] = data.weights._replace(values=data.weights.values[train >= 0])
    if data.blocks is not None:
        changes["blocks"] = data.blocks._replace(values=data.blocks.values[train >= 0])
    if data.test_clients is not None:
        test = position[data.test_clients]
        changes |= {"test_x": data.test_x[test >= 0], "test_y": data.test_y[test >= 0]}
        changes["test_clients"] = test[test >= 0]
    return dataclasses.replace(data, client_names=names, source_digest=digest, **changes)


# The same clients are evaluated every round, so that what was read once stays in memory.
CACHE_BYTES = 256 * 2**20

Examples = tuple[np.ndarray, np.ndarray]


class StreamedClients:
    """Reads and writes a source's clients by their index in the source.

    Attributes:
      num_examples: of each split, int64, shape (clients,): what of a client's examples goes where.
    """

    def __init__(self, source: ClientSource, settings: PartitionSettings, entry: str):
        self._source, self._entry = source, entry
        self._written: set[int] = set()
        self._cache: dict[tuple[int, str], Examples] = {}
        self._cached_bytes = 0
        # What the data have of their own is not drawn.
        own = {split: source.num_examples.get(split) for split in (VALIDATION, TEST)}
        own = {split: counts for split, counts in own.items() if counts is not None and counts.any()}
        drawn = {f"{split}_fraction": 0.0 for split in own}
        self._settings = dataclasses.replace(settings, **drawn)
        self._own = own
        self.num_examples: Mapping[str, np.ndarray] = (
            count_drawn(source.num_examples[TRAIN], self._settings, source.overlap) | own
        )

    def get_prefix(self, client: int) -> str:
        """The start of a client's file names, whether they are there or not."""
        return os.path.join(self._entry, get_client_prefix(client))

    def write(self, client: int) -> None:
        """Writes a client's files unless they are there.

        Raises:
          DatasetError: they cannot be written, or the source cannot be read.
        """
        # Asked for every round: only the first time the files are looked at.
        if client in self._written:
            return
        prefix = self.get_prefix(client)
        if not is_client_whole(prefix):
            parts = self._read_parts(client)
            arrays = [array for split in SPLITS for array in parts[split]]
            files = dict(zip(SUFFIXES, arrays, strict=True))
            if self._source.weights is not None:
                files[WEIGHTS_SUFFIX] = self.read_weights(client)
            contents = {suffix: np.ascontiguousarray(array).tobytes() for suffix, array in files.items()}
            with explain_write_errors(os.path.dirname(self._entry)):
                write_client(prefix, contents)
        self._written.add(client)

    def read(self, client: int, split: str) -> Examples:
        """A client's examples of one split, as stored; the files are not needed for it."""
        found = self._cache.get((client, split))
        if found is not None:
            return found
        own = split in self._own
        examples = self._source.read(client, split) if own else self._read_parts(client)[split]
        num_bytes = sum(array.nbytes for array in examples)
        # What does not fit is read again: to drop something would cost the clients that come every round.
        if self._cached_bytes + num_bytes <= CACHE_BYTES:
            self._cache[client, split] = examples
            self._cached_bytes += num_bytes
        return examples

    def read_weights(self, client: int) -> np.ndarray:
        """The weights of a client's train split, of a source that has them: float32 (examples,)."""
        weights = self._source.weights.read(client, TRAIN)
        return weights[self._split(client, len(weights))[TRAIN]]

    def _split(self, client: int, num_examples: int) -> dict[str, np.ndarray]:
        """What of a client's train part goes where."""
        source = self._source
        return split_client(np.arange(num_examples), client, self._settings, source.is_ordered_by_time, source.overlap)

    def _read_parts(self, client: int) -> dict[str, Examples]:
        x, y = self._source.read(client, TRAIN)
        parts = {split: (x[rows], y[rows]) for split, rows in self._split(client, len(y)).items()}
        for split in self._own:
            parts[split] = self._source.read(client, split)
        for split, (_, labels) in parts.items():
            if len(labels) != self.num_examples[split][client]:
                name = self._source.client_names[client]
                raise DatasetError(
                    f"{self._source.name}: client {name} has {len(labels)} examples for {split}, but "
                    f"{self.num_examples[split][client]} were counted; the file has changed, or counts wrongly"
                )
        return parts


# To count labels means to read a client; of more clients only a source that counts at once does it.
MOST_COUNTED_CLIENTS = 1000
# To measure a regression's labels means to read clients: of more, a drawn sample tells.
MOST_MEASURED_CLIENTS = 10_000


def build_source_federation(
    source: ClientSource,
    settings: PartitionSettings,
    client_dir: str,
    num_new_clients: int = 0,
    most_test_examples: int = 0,
) -> FederatedData:
    """The source's clients as they are.

    A client's validation and test split are those of the data; where these have none, they are drawn from its train
    part, or cut from the end of a client in order of time. The global test set is all clients' test splits together.

    Args:
      source: the data.
      settings: splits and seed; of the partition only that it is natural.
      client_dir: the cache folder of the client files.
      num_new_clients: so many, the last ones, take no part in training.
      most_test_examples: in the global test set, of clients that are drawn by the seed; 0: all.

    Raises:
      DatasetError: the data name no clients, all clients are new, or nobody has a test example.
    """
    if not source.has_clients:
        raise DatasetError(
            f"partition=natural: {source.name} does not say who holds which example; name the column or the folders "
            "that do, or use another partition"
        )
    digest = identify_source(source, settings)
    streamed = StreamedClients(source, settings, os.path.join(os.path.abspath(os.path.expanduser(client_dir)), digest))
    counts, members = streamed.num_examples, np.flatnonzero(streamed.num_examples[TRAIN])
    everyone = tuple(
        ClientFiles(
            index,
            source.client_names[client],
            streamed.get_prefix(client),
            *(int(counts[split][client]) for split in (TRAIN, VALIDATION, TEST)),
            write=lambda client=client: streamed.write(client),
        )
        for index, client in enumerate(members.tolist())
    )
    clients, new_clients = divide_clients(everyone, num_new_clients)
    test_x, test_y = _read_test_part(source, streamed, settings.seed, most_test_examples)
    example_format = source.format
    if example_format.labels.task == REGRESSION and not example_format.labels.scale:
        # Offset and scale are those of the train splits, of a sample of the clients if they are many.
        chosen = members
        if len(chosen) > MOST_MEASURED_CLIENTS:
            rng = np.random.default_rng([settings.seed, 6])
            chosen = np.sort(rng.choice(chosen, MOST_MEASURED_CLIENTS, replace=False))
        y = np.concatenate([streamed.read(int(client), TRAIN)[1] for client in chosen])
        example_format = standardise_labels(example_format, y)
    if source.weights is not None:
        values = (streamed.read_weights(client) for client in members.tolist())
        example_format = measure_weights(source.name, example_format, source.weights.column, values)
    return FederatedData(
        dataset=source.name,
        format=example_format,
        clients=clients,
        label_counts=_count_source_labels(source, streamed, members[: len(clients)]),
        test_x=test_x,
        test_y=test_y,
        profiles=draw_device_profiles(len(everyone), settings.seed),
        digest=digest,
        num_dropped=source.num_dropped,
        new_clients=new_clients,
        num_clients_left_out=len(source.client_names) - len(members),
        reading=_describe(source, len(test_y), int(counts[TEST].sum())),
        notes=source.notes,
        filled=source.filled,
        reader=lambda client, split: streamed.read(int(members[client.index]), split),
    )


def divide_clients(
    everyone: tuple[ClientFiles, ...], num_new_clients: int
) -> tuple[tuple[ClientFiles, ...], tuple[ClientFiles, ...]]:
    """(the clients, the new ones): the last so many are new. Raises DatasetError: all would be."""
    num_clients = len(everyone) - num_new_clients
    if num_clients < 1:
        raise DatasetError(f"new_clients={num_new_clients}: expected fewer than the {len(everyone)} clients there are")
    return everyone[:num_clients], everyone[num_clients:]


def _describe(source: ClientSource, num_test: int, num_in_all: int) -> str:
    example_format = source.format
    reading = source.reading or describe_examples(example_format.input_shape, example_format.preprocessing)
    return reading + (f"; {num_test:,} of {num_in_all:,} test examples are used" if num_test < num_in_all else "")


def _read_test_part(
    source: ClientSource, streamed: StreamedClients, seed: int, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """The clients' test splits, in the order of the clients; of some that are drawn, if all were too many."""
    counts = streamed.num_examples[TEST]
    chosen = np.flatnonzero(counts)
    if not len(chosen):
        overlap = f" of which {source.overlap:,} can be left out before each cut" if source.overlap else ""
        raise DatasetError(
            f"{source.name}: no test examples: the data name none, and no client has {MINIMUM_EXAMPLES_TO_SPLIT} "
            f"examples{overlap}, so that a part could be held out; name them, or take --partition=iid"
        )
    if most and counts.sum() > most:
        drawn = np.random.default_rng([seed, 5]).permutation(chosen)
        chosen = np.sort(drawn[: 1 + int(np.searchsorted(np.cumsum(counts[drawn]), most))])
    parts = [streamed.read(int(client), TEST) for client in chosen]
    x, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    most = most or len(y)
    return np.ascontiguousarray(x[:most]), np.ascontiguousarray(y[:most])


def _count_source_labels(source: ClientSource, streamed: StreamedClients, members: np.ndarray) -> np.ndarray:
    """Labels in the train splits, int64 (clients, classes); without columns where they are none, or are not counted."""
    num_classes = source.format.num_classes
    is_counted = source.count_labels is not None or len(members) <= MOST_COUNTED_CLIENTS
    if not (source.format.labels.is_by_class and is_counted):
        return np.zeros((len(members), 0), np.int64)
    if len(members) > MOST_COUNTED_CLIENTS:
        return source.count_labels()[members].astype(np.int64)
    rows = [np.bincount(streamed.read(int(client), TRAIN)[1], minlength=num_classes) for client in members]
    return np.stack(rows).astype(np.int64)


def identify_source(source: ClientSource, settings: PartitionSettings) -> str:
    """The digest of the federation that these make."""
    values = {name: getattr(settings, name) for name in (*_SPLITTING, "most_train_examples")}
    identity = [FORMAT_VERSION, "natural", source.digest, values]
    return compute_source_digest((), identity)


__all__ = ["PartitionSettings", "build_federated_data", "clean_client_dir", "default_client_dir", "partition_clients"]


def build_federated_data(
    arrays: ArrayDataset | ClientSource,
    settings: PartitionSettings,
    client_dir: str,
    num_new_clients: int = 0,
    most_test_examples: int = 0,
) -> FederatedData:
    """Partitions a data set over clients, writes their files unless the cache has them, and describes the result.

    Each client's validation and test split is drawn from its part of the train data, of blocks that belong together
    by whole blocks. There are two exceptions. Natural clients take their test split from the test part, if the data
    set says whose examples those are. With an archetype
    partition each split is drawn from its own pool (see `datasets.archetypes`). The data set's test part is the global
    test set. Devices are drawn from `settings.seed` with the default distributions.

    The clients of a source, where they stay as they are, are not read here: see `datasets.federate`. Other
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
    is_natural = settings.partition == "natural"
    arrays = _narrow(arrays, settings)
    if isinstance(arrays, ClientSource):
        data = build_source_federation(arrays, settings, client_dir, num_new_clients, most_test_examples)
        return dataclasses.replace(data, archetypes=_describe_archetypes(arrays, settings, len(data.everyone)))
    test_x, test_y = arrays.test_x, arrays.test_y
    if settings.has_variant:  # the test set is as the groups see it
        owners = None
        if is_natural and arrays.test_clients is not None:
            owners = assign_groups(len(arrays.client_names), settings)[arrays.test_clients]
        test_x, test_y = transform_test(arrays, make_transforms(settings, arrays.format), owners)
    digest = _compute_digest(arrays, settings)
    entry, index = open_or_write_entry(client_dir, digest, lambda: _split(arrays, settings))
    names = arrays.client_names if is_natural else None
    everyone = tuple(
        ClientFiles(
            index=client,
            name=names[client] if names else f"client_{client}",
            prefix=os.path.join(entry, get_client_prefix(client)),
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
    is_natural = settings.partition == "natural"
    if isinstance(arrays, ArrayDataset) and arrays.blocks is not None and not is_natural:
        raise DatasetError(
            f"partition={settings.partition}: it would deal what belongs together to several clients; expected natural"
        )
    if settings.most_clients or settings.fewest_examples:
        arrays = select_clients(arrays, settings)
    if not isinstance(arrays, ClientSource):
        return arrays
    if not is_natural:
        return arrays.pool(settings.seed)
    return vary_source(arrays, settings) if settings.has_variant else arrays


def partition_clients(arrays: ArrayDataset, settings: PartitionSettings, group: int | None = None) -> Partition:
    """Indices of each client's train examples, before its own validation and test split are taken out.

    Only for `PARTITIONS`; for archetypes there is `datasets.archetypes.draw_clients`. A group of clients, of those that
    each divide all examples, has a draw of its own.
    """
    rng = np.random.default_rng([settings.seed, 1] if group is None else [settings.seed, 1, group])
    partition = PARTITIONS[settings.partition]
    return partition(arrays.train_y, arrays.train_clients, settings, rng, arrays.format.class_names)


def _split(arrays: ArrayDataset, settings: PartitionSettings) -> ClientSplits:
    if settings.partition in ARCHETYPE_PARTITIONS:
        train, test = (arrays.train_x, arrays.train_y), (arrays.test_x, arrays.test_y)
        sources = {"train": train, "validation": train, "test": test}
        drawn = draw_clients(arrays, settings.partition, settings, settings.seed)
        return [
            _weigh({split: (sources[split][0][i], sources[split][1][i]) for split, i in part.items()}, arrays, part)
            for part in drawn
        ]
    if not settings.has_variant:
        return _split_plainly(arrays, settings)
    transforms = make_transforms(settings, arrays.format)
    if settings.partition == "natural":
        clients = _split_plainly(arrays, settings)
        groups = assign_groups(len(clients), settings)
        return [transform_client(client, transforms[group]) for client, group in zip(clients, groups, strict=True)]
    groups = assign_groups(settings.num_clients, settings)
    # Each group divides all examples, as the paper has it; its clients' tests are shares of the test part.
    of_group = dataclasses.replace(settings, num_clients=len(groups) // settings.variant_groups, test_fraction=0.0)
    try:
        parts = [
            part for group in range(settings.variant_groups) for part in partition_clients(arrays, of_group, group)
        ]
    except DatasetError as error:  # which counts the clients of one group
        raise DatasetError(f"{error} (of each of the {settings.variant_groups} groups of --variant)") from None
    tests = deal_tests(arrays, settings)
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
    if arrays.blocks is None:
        splits = [split_client(part, client, drawn, is_ordered) for client, part in parts]
    else:
        labels = arrays.train_y if arrays.format.labels.is_by_class else None
        splits = [split_blocks(part, arrays.blocks, labels, client, drawn) for client, part in parts]
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
    if settings.has_variant:
        return describe_groups(settings, num_clients)
    if settings.partition not in ARCHETYPE_PARTITIONS:
        return None
    return describe_archetypes(settings.partition, data.format.class_names, settings)


_SPLITTING = ("validation_fraction", "test_fraction", "seed")
_IDENTIFYING = ("partition", "num_clients", "dirichlet_alpha", "labels_per_client", *_SPLITTING)


def _compute_digest(arrays: ArrayDataset, settings: PartitionSettings) -> str:
    # Settings without effect would make two entries of the cache for the same files; what came later has no part in
    # the digest while it has the value of versions that did not have it.
    values = {name: getattr(settings, name) for name in _IDENTIFYING}
    if settings.most_train_examples:
        values["most_train_examples"] = settings.most_train_examples
    if settings.partition in ARCHETYPE_PARTITIONS:
        fields = dataclasses.fields(ArchetypeSettings)
        later = ("hypergeometric_last_outcome", "validation_pool")
        own = {field.name: (getattr(settings, field.name), field.default) for field in fields}
        values["archetypes"] = {name: new for name, (new, old) in own.items() if name not in later or new != old}
    if settings.partition == PACHINKO:
        values["pachinko"] = {name: getattr(settings, name) for name in ("pachinko_alpha", "pachinko_beta")}
    if settings.has_variant:
        values["variant"] = {"kind": settings.variant, "groups": settings.variant_groups}
    identity = [FORMAT_VERSION, arrays.source_digest, values]
    return compute_source_digest((), identity)


def _count_labels(clients: tuple[ClientFiles, ...], arrays: ArrayDataset) -> np.ndarray:
    if not arrays.format.labels.is_by_class:
        return np.zeros((len(clients), 0), np.int64)
    num_classes = arrays.format.num_classes
    rows = [np.bincount(np.fromfile(f"{client.path}.train.y", np.int32), minlength=num_classes) for client in clients]
    return np.stack(rows).astype(np.int64)
