"""From a source to a federation of its own clients: counts now, examples when somebody asks for them."""

import hashlib
import json
import os

import numpy as np

from datasets.client_files import FORMAT_VERSION
from datasets.client_source import TEST, TRAIN, VALIDATION, ClientSource
from datasets.device_profiles import draw_device_profiles
from datasets.errors import DatasetError
from datasets.example_weights import measure_weights
from datasets.federated_data import ClientFiles, FederatedData
from datasets.label_format import REGRESSION
from datasets.layouts import describe_examples
from datasets.npz_labels import standardise_labels
from datasets.partition_settings import PartitionSettings
from datasets.splits import MINIMUM_EXAMPLES_TO_SPLIT
from datasets.streamed_clients import StreamedClients

MOST_COUNTED_CLIENTS = 1000  # whose labels are read to be counted, unless the source can tell them at once
MOST_MEASURED_CLIENTS = 10_000  # whose labels a regression's offset and scale are taken from


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
            streamed.get_place(client),
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
        label_counts=_count_labels(source, streamed, members[: len(clients)]),
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
        raise DatasetError(
            f"{source.name}: no test examples: the data name none, and no client has {MINIMUM_EXAMPLES_TO_SPLIT} "
            "examples, so that a part could be held out; name them, or take --partition=iid"
        )
    if most and counts.sum() > most:
        drawn = np.random.default_rng([seed, 5]).permutation(chosen)
        chosen = np.sort(drawn[: 1 + int(np.searchsorted(np.cumsum(counts[drawn]), most))])
    parts = [streamed.read(int(client), TEST) for client in chosen]
    x, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    most = most or len(y)
    return np.ascontiguousarray(x[:most]), np.ascontiguousarray(y[:most])


def _count_labels(source: ClientSource, streamed: StreamedClients, members: np.ndarray) -> np.ndarray:
    """Labels in the train splits, int64 (clients, classes); without columns where they are none, or are not counted."""
    num_classes = source.format.num_classes
    is_told = source.count_labels is not None or len(members) <= MOST_COUNTED_CLIENTS
    if not (source.format.labels.is_by_class and is_told):
        return np.zeros((len(members), 0), np.int64)
    if len(members) > MOST_COUNTED_CLIENTS:
        return source.count_labels()[members].astype(np.int64)
    rows = [np.bincount(streamed.read(int(client), TRAIN)[1], minlength=num_classes) for client in members]
    return np.stack(rows).astype(np.int64)


def identify_source(source: ClientSource, settings: PartitionSettings) -> str:
    """The digest of the federation that these make."""
    values = {
        name: getattr(settings, name)
        for name in ("validation_fraction", "test_fraction", "most_train_examples", "seed")
    }
    identity = [FORMAT_VERSION, "natural", source.digest, values]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
