"""What the server of a live run knows of a client at the moment, and what it asked of it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from launch.live.messages import NOTHING, Packed
from launch.live.referee import Asked
from tff_algos.client.local_training import LocalResult


class Pending:
    """What a client was asked and has not answered."""

    def __init__(
        self,
        kind: str,
        asked: Asked,
        header: Mapping[str, Any],
        arrays: Mapping[str, np.ndarray],
        weights: Packed = NOTHING,
    ):
        self.kind, self.asked, self.weights = kind, asked, weights
        self.header, self.arrays = {"type": kind, **header, "task": asked.task}, arrays
        self.sent_ticks, self.sent_bytes = 0, 0


class ClientState:
    """What is known of a seat's client at the moment."""

    def __init__(self):
        self.connection: int | None = None
        self.is_here = False  # connected, or in the grace
        self.is_present = False  # the same as far as the algorithm has taken it
        self.task: Pending | None = None
        self.request: Pending | None = None
        self.has_been_lost = False
        self.num_fetched = 0  # by this connection
        self.num_answered, self.num_rejected, self.num_late = 0, 0, 0  # since the server began

    @property
    def work(self) -> str:
        """The id of what it was asked and has not answered; "" without."""
        pending = self.task or self.request
        return pending.asked.task if pending is not None else ""


class Queued(NamedTuple):
    """What happened and was not taken by the algorithm yet."""

    ticks: int  # of the transport
    client: int
    what: str
    number: int = 0
    result: LocalResult | None = None
