"""Counts the joules of an algorithm's clients, round by round. They are a part of the state, so that a resumed run goes
on counting where it stopped.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from datasets.federated_data import EnergyRates
from tff_algos.protocol import JOULES, JOULES_TOTAL, FederatedProcess, RoundOutput, State
from tff_algos.rounds.forwarding import ForwardingProcess
from tff_algos.simulation.energy import compute_joules


class MeteredState(NamedTuple):
    """The algorithm's state, and the joules of each device so far, new clients last, float64, shape (devices,)."""

    inner: State
    joules: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class MeteredProcess(ForwardingProcess):
    """An algorithm with the columns `joules` and `joules_total` in its metrics, and `joules` in those of its clients.

    Attributes:
      process: the algorithm; it says what its clients do, so its `list_work` is not None.
      rates: what the devices spend, those of new clients, too.
    """

    process: FederatedProcess
    rates: EnergyRates

    def initialize(self) -> MeteredState:
        return MeteredState(self.process.initialize(), np.zeros(len(self.rates.joules_per_example)))

    def next(self, state: MeteredState) -> RoundOutput:
        assert self.process.list_work is not None
        output = self.process.next(state.inner)
        joules = compute_joules(self.rates, self.process.list_work(state.inner, output.state))
        new_state = MeteredState(output.state, state.joules + joules)
        energy = {JOULES: float(joules.sum()), JOULES_TOTAL: float(new_state.joules.sum())}
        return RoundOutput(new_state, {**output.metrics, **energy})

    def client_columns(self, state: MeteredState) -> dict[str, list]:
        return {**self.process.client_columns(state.inner), JOULES: state.joules.tolist()}
