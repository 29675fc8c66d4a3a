"""Whose examples set the ranges of int8: those of all clients that use a model, evenly over clients and classes.

Where the labels are no classes, evenly over the clients. Where clients' examples lie on machines of their own, those of
the global test set.

Imports no TensorFlow.
"""

from collections.abc import Sequence

import numpy as np

from datasets.federated_data import ClientFiles, FederatedData
from launch.settings.flags import FlagError
from launch.tflite.export_plan import ModelExport, abbreviate
from launch.training.finished_run import FinishedRun

MOST_CLIENTS = 1000  # whose examples are read to choose from


def check_representative_client(run: FinishedRun, asked: str) -> None:
    """Raises FlagError if the client that was asked for, if one was, is none of the run's."""
    if asked and asked not in run.client_models:
        expected = abbreviate(list(run.client_models))
        raise FlagError(f"--representative_client={asked}: no such client; expected one of {expected}")


def find_representative_clients(export: ModelExport, data: FederatedData, asked: str) -> list[ClientFiles]:
    """The clients whose train splits set the ranges of int8: the one asked for, or all that use the model.

    A model without users, such as a teacher, takes all clients; a client's personal model that client alone. Of more
    than `MOST_CLIENTS` evenly spaced ones are taken. Clients whose examples lie far away set none: it is nobody.

    Raises:
      FlagError: none of them has train examples.
    """
    if data.is_remote:
        if asked:
            raise FlagError(f"--representative_client={asked}: its examples are on its own machine; leave it out")
        return []
    wanted = {asked} if asked else set(export.clients)
    users = [client for client in data.everyone if client.name in wanted] or list(data.clients)
    clients = [client for client in users if client.num_train]
    if not clients:
        names = abbreviate([client.name for client in users])
        raise FlagError(f"--representative_client={names}: no train examples there; choose another client")
    return clients[:: -(-len(clients) // MOST_CLIENTS)]


def read_representative_examples(
    data: FederatedData, clients: Sequence[ClientFiles], num_examples: int, has_classes: bool = True
) -> np.ndarray:
    """At most `num_examples` of these clients' train splits, as stored, shape (n, *input_shape); of nobody, of the
    global test set.

    Every class of every client gives one example, then every one gives a second, and so on, until there are enough; a
    class has its own evenly spaced over the split. If not every class of every client can give one, every class gives
    one of some client, then one of another. Without classes, all of a client are as of one class. The same clients
    always give the same examples.
    """
    if not clients:
        ((_, rows),) = choose_examples([data.test_y if has_classes else np.zeros(len(data.test_y), int)], num_examples)
        return data.test_x[rows]
    labels = [
        data.read_labels(client, "train") if has_classes else np.zeros(client.num_train, np.int32) for client in clients
    ]
    chosen = choose_examples(labels, num_examples)
    parts = [data.read_split(clients[index], "train")[0][rows] for index, rows in chosen]
    return np.concatenate(parts)


def choose_examples(labels: Sequence[np.ndarray], num_examples: int) -> list[tuple[int, np.ndarray]]:
    """Which examples `read_representative_examples` takes.

    Args:
      labels: of each client's train split, int (examples,).
      num_examples: how many at most.

    Returns:
      (index of the client, its rows in ascending order, int64), for each client that gives any.
    """
    groups = [(client, label) for client, own in enumerate(labels) for label in np.unique(own).tolist()]
    sizes = np.array([int(np.sum(labels[client] == label)) for client, label in groups])
    # How many each group gives, int64 (groups,): one at a time in this order, until there are enough or none left
    shares = np.zeros(len(sizes), np.int64)
    left = min(num_examples, int(sizes.sum()))
    order = _draw_order(groups)
    while left:
        giving = [group for group in order if shares[group] < sizes[group]][:left]
        # As many whole turns at once as nobody is exhausted by.
        turns = max(1, min(left // len(giving), int(np.min((sizes - shares)[giving]))))
        shares[giving] += turns
        left -= turns * len(giving)
    rows: dict[int, list[np.ndarray]] = {}
    for (client, label), share in zip(groups, shares, strict=True):
        if share:
            rows.setdefault(client, []).append(choose_evenly(np.flatnonzero(labels[client] == label), share))
    return [(client, np.sort(np.concatenate(own))) for client, own in rows.items()]


def _draw_order(groups: Sequence[tuple[int, int]]) -> np.ndarray:
    """The order in which groups (client, label) give, int64: of every class one, then of every class a second."""
    drawn = np.random.default_rng(0).permutation(len(groups))  # so that early clients are not preferred
    labels, turns = np.array([label for _, label in groups]), np.zeros(len(groups), np.int64)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        turns[own[np.argsort(drawn[own])]] = np.arange(len(own))
    return np.lexsort((drawn, turns))


def choose_evenly(x: np.ndarray, num_examples: int) -> np.ndarray:
    """At most so many rows of an array, evenly spaced over it."""
    return x[np.unique(np.linspace(0, len(x) - 1, num=min(num_examples, len(x))).astype(int))]
