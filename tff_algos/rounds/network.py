"""Clients that answer over a network, as an algorithm sees them: present or not, asked, and heard.

An algorithm knows nothing of connections. It asks seats, which are the clients' indices, and takes what happens one
after another. `launch.live` has the network of a run; a test may have a scripted one.
"""

from typing import NamedTuple, Protocol

import numpy as np

from tff_algos.client.local_training import LocalResult
from tff_algos.protocol import Weights

# Times are whole numbers of ticks, so that their sums and differences are exact, and a record gives them back.
TICK_S = 2.0**-20

# What can happen to a client.
JOINED, LEFT, ANSWERED, REJECTED = "joined", "left", "answered", "rejected"


class Task(NamedTuple):
    """What a client is asked to train.

    Attributes:
      client: its index.
      number: of the round, or of the client's start: it names the task beside the client's other ones.
      version: of the model that it starts from, for people and records.
      start: that model's weights, in the order of `keras_model.weights`.
      seed: int32, shape (2,), from which the orders of its examples are derived as in local training.
      learning_rate: float32.
    """

    client: int
    number: int
    version: int
    start: Weights
    seed: np.ndarray
    learning_rate: np.float32


class Happening(NamedTuple):
    """Something that happened to a client.

    Attributes:
      time_s: since the run began, a multiple of `TICK_S`, at least that of what was taken before.
      client: its index.
      what: JOINED, LEFT, ANSWERED, or REJECTED, an answer that must not count.
      number: of the task that was answered.
      result: the answer, in NumPy arrays; None where there is none.
    """

    time_s: float
    client: int
    what: str
    number: int = 0
    result: LocalResult | None = None


class Network(Protocol):
    """The clients of a run. A short loss of a connection is not seen here: pending tasks are sent again."""

    def start_clock(self, time_s: float) -> None:
        """It is this time now: that of the state with which a run begins or goes on. Later calls change nothing."""

    def now_s(self) -> float:
        """Seconds since the run began, a multiple of `TICK_S`. What is taken later has no earlier time."""

    def find_present(self) -> np.ndarray:
        """Indices of the clients that are there: JOINED was taken, and LEFT was not since; ascending, int64."""

    def ask(self, *tasks: Task) -> None:
        """Sends tasks, each in place of another one that its client may have. Of one that it has already, nothing."""

    def withdraw(self, client: int) -> None:
        """Forgets a client's task, if it has one: its answer is late from now on, counted and dropped."""

    def take(self, until_s: float | None) -> Happening | None:
        """Waits for what happens next; None if nothing has until this time. Without a time it waits for ever."""
