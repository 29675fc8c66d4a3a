"""Who a process works with in place of simulated clients: those of a network, or those of a record of it."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tff_algos.rounds.network import Network
from tff_algos.simulation.event_clock import LogRow

Record = Mapping[int, Sequence[LogRow]]  # what happened, by round from 1 on, in order of time


@dataclasses.dataclass(frozen=True)
class Terms:
    """Of rounds that wait for their clients.

    Attributes:
      least_answers: below it, a round leaves the model as it is; a private round is then noise alone.
      more_asked: clients that are asked beyond the cohort; a round ends with as many answers as the cohort has.
      deadline_s: of a round, since its tasks went out.
      least_present: clients that must be there before a round begins.
    """

    least_answers: int = 1
    more_asked: int = 0
    deadline_s: float = 60.0
    least_present: int = 1


class AskedBy(NamedTuple):
    """Clients that are asked over a network, on these terms."""

    network: Network
    terms: Terms = Terms()


class RepeatedFrom(NamedTuple):
    """Clients that take part as those of a record did, when they did, and are simulated."""

    record: Record
