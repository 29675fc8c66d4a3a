"""The scalars that every algorithm reports for a round."""

from collections.abc import Sequence

import numpy as np

from tff_algos.protocol import BYTES_DOWN, BYTES_UP, NUM_CLIENTS, NUM_REJECTED, TRAIN_LOSS, VIRTUAL_TIME_S, ClientWork
from tff_algos.rounds.aggregation import RoundTotals


def build_common_metrics(
    totals: RoundTotals, virtual_time_s: float, num_clients: int, bytes_down: int, bytes_up: int
) -> dict[str, float]:
    """The values of `protocol.COMMON_METRICS`; without a trained example the loss is NaN.

    Args:
      totals: the round's aggregate.
      virtual_time_s: since the start of the run.
      num_clients: clients that took part.
      bytes_down: sent by the server in this round, to all clients together.
      bytes_up: sent by the clients in this round.
    """
    num_trained = float(totals.num_trained)
    return {
        VIRTUAL_TIME_S: float(virtual_time_s),
        NUM_CLIENTS: num_clients,
        NUM_REJECTED: int(totals.num_rejected),
        BYTES_DOWN: int(bytes_down),
        BYTES_UP: int(bytes_up),
        TRAIN_LOSS: float(totals.loss_sum) / num_trained if num_trained else float(np.nan),
    }


def sum_bytes(works: Sequence[ClientWork]) -> tuple[int, int]:
    """(down, up): what all clients together receive and send in these parts of a round."""
    down = sum(_sum_over_clients(work.bytes_down, work) for work in works)
    up = sum(_sum_over_clients(work.bytes_up, work) for work in works)
    return round(down), round(up)


def _sum_over_clients(num_bytes: np.ndarray | float, work: ClientWork) -> float:
    return float(np.broadcast_to(num_bytes, work.clients.shape).sum(dtype=np.float64))
