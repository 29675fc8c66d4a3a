"""Which clients take no part in training: drawn ones in place of the last, or none that are tested.

The last clients by name may all be of one kind, such as the second of two hospitals. Drawn ones are the same with every
seed of a run, so that runs on several seeds speak of the same clients.
"""

import dataclasses

import numpy as np

from datasets.federate import divide_clients
from datasets.federated_data import ClientFiles, FederatedData

DRAW_SEED = (0, 13)  # no run's seed has a part in it


def draw_order(num_clients: int, num_new: int) -> np.ndarray:
    """Places of the clients, then of the new ones, each ascending; int, shape (clients,).

    With a larger number of new clients the ones of a smaller number are among them.
    """
    drawn = np.random.default_rng(DRAW_SEED).permutation(num_clients)
    return np.concatenate([np.sort(drawn[num_new:]), np.sort(drawn[:num_new])])


def draw_new_clients(data: FederatedData, num_new: int) -> FederatedData:
    """The federation with so many of its clients as new ones, drawn; everyone keeps examples, device and kind.

    Args:
      data: has no new clients so far.
      num_new: how many.

    Raises:
      DatasetError: there would be only new clients.
    """
    order = draw_order(len(data.clients), num_new)
    places = order.tolist()
    everyone = tuple(dataclasses.replace(data.clients[place], index=index) for index, place in enumerate(places))
    clients, new_clients = divide_clients(everyone, num_new)

    def read(client: ClientFiles, split: str) -> tuple[np.ndarray, np.ndarray]:
        return data.reader(data.clients[places[client.index]], split)

    return dataclasses.replace(
        data,
        clients=clients,
        new_clients=new_clients,
        label_counts=data.label_counts[order[: len(clients)]],
        profiles=data.profiles.choose(order),
        archetypes=data.archetypes and data.archetypes.choose(order),
        reader=data.reader and read,
    )


def leave_out_new_clients(data: FederatedData) -> FederatedData:
    """The federation of those that train."""
    there = np.arange(len(data.clients))
    return dataclasses.replace(
        data,
        new_clients=(),
        profiles=data.profiles.choose(there),
        archetypes=data.archetypes and data.archetypes.choose(there),
    )
