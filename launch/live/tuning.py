"""The last task of a run whose algorithm fine-tunes: each client trains the model on its own, and keeps what it gets.

Only how many test examples it had right before and after, and their losses, leave it.
"""

import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from launch.live.network import FINE_TUNE, LiveNetwork
from launch.live.offers import Offer, describe_work
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
    requests, training = {}, offer.training
    for client in map(int, network.find_present()):
        examples = roster.count_examples(client)[0]
        rate, seed_of_order = np.float32(training.learning_rate), derive_seed(seed, "fine-tuning", 0, client)
        header, arrays = describe_work(offer, examples, weights, seed_of_order, rate)
        requests[client] = {"number": 0, "round": offer.rounds, **header, "is_last": True}, arrays
    replies = network.gather(FINE_TUNE, requests, timeout_s)
    return [Tuned(client, *replies[client]) for client in sorted(replies)]


def write_tuned(path: pathlib.Path, tuned: Sequence[Tuned]) -> None:
    """Writes the table."""
    rows = [
        (client, before.num, before.correct, after.correct, before.loss_sum, after.loss_sum)
        for client, before, after in tuned
    ]
    write_table(path, COLUMNS, [[format_cell(value) for value in row] for row in rows])
