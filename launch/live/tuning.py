"""The last task of a run whose algorithm fine-tunes: each client trains the model on its own, and keeps what it gets.

Only how many test examples it had right before and after, and their losses, leave it.
"""

import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from launch.live.network import FINE_TUNE, LiveNetwork
from launch.live.offers import Offer, describe_work, pick_weights
from launch.live.orders import order_all
from launch.live.referee import Sums
from launch.live.roster import Roster
from launch.runs.columns import CLIENT, NUM_TEST
from launch.runs.tables import format_cell, write_table
from tff_algos.protocol import Weights
from tff_algos.seeds import derive_seed

# A row a client of fine_tuned.csv; what is before and after are sums over its test examples.
COLUMNS = (CLIENT, NUM_TEST, "correct_before", "correct_after", "loss_sum_before", "loss_sum_after")


class Tuned(NamedTuple):
    """What a client measured before and after it fine-tuned."""

    client: int
    before: Sums
    after: Sums


def tune_clients(
    network: LiveNetwork, roster: Roster, offer: Offer, weights: Weights, seed: int, timeout_s: float
) -> list[Tuned]:
    """Has the clients that are there fine-tune these weights, in the orders that simulated ones would take.

    Args:
      network: of the run.
      roster: its seats.
      offer: with the file and the settings of fine-tuning; clients are told of it.
      weights: of the model that was trained.
      seed: of the run.
      timeout_s: how long to wait for them.

    Returns:
      Those that answered, by client, ascending.
    """
    network.publish(offer)
    clients = network.find_present().tolist()
    numbers = [roster.count_examples(client)[0] for client in clients]
    orders = order_all(offer.training, numbers, [derive_seed(seed, "fine-tuning", 0, client) for client in clients])
    requests, rate, sent = {}, np.float32(offer.training.learning_rate), pick_weights(offer.file, weights)
    for client, (steps, order) in zip(clients, orders, strict=True):
        header = {"number": 0, "round": offer.rounds, **describe_work(offer, steps, rate), "is_last": True}
        requests[client] = header, {**sent, "order": order}
    replies = network.gather(FINE_TUNE, requests, timeout_s)
    return [Tuned(client, *replies[client]) for client in sorted(replies)]


def write_tuned(path: pathlib.Path, tuned: Sequence[Tuned]) -> None:
    """Writes the table."""
    rows = [
        (client, before.num, before.correct, after.correct, before.loss_sum, after.loss_sum)
        for client, before, after in tuned
    ]
    write_table(path, COLUMNS, [[format_cell(value) for value in row] for row in rows])
