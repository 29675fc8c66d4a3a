"""Counts the joules of an algorithm's clients, round by round. They are a part of the state, so that a resumed run goes
on counting where it stopped.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from datasets.federated_data import ClientShard, EnergyRates
from tff_algos.protocol import JOULES, JOULES_TOTAL, FederatedProcess, RoundOutput, State, Weights
from tff_algos.simulation.energy import compute_joules


class MeteredState(NamedTuple):
    """The algorithm's state, and the joules of each device so far, new clients last, float64, shape (devices,)."""

    inner: State
    joules: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class MeteredProcess(FederatedProcess):
    """An algorithm with the columns `joules` and `joules_total` in its metrics, and `joules` in those of its clients.

    Attributes: see `meter_energy`.
    """

    process: FederatedProcess
    rates: EnergyRates

    # Every public method is passed on by name, since a default inherited from the base class would hide what the inner
    # process says; a test fails for one that is missing here.

    @property
    def is_personal(self) -> bool:
        return self.process.is_personal

    @property
    def fine_tuning_start(self) -> str:
        return self.process.fine_tuning_start

    @property
    def curve(self) -> tuple[int, ...]:
        return self.process.curve

    @property
    def takes_new_clients(self) -> bool:
        return self.process.takes_new_clients

    def initialize(self) -> MeteredState:
        return MeteredState(self.process.initialize(), np.zeros(len(self.rates.joules_per_example)))

    def next(self, state: MeteredState) -> RoundOutput:
        output = self.process.next(state.inner)
        joules = compute_joules(self.rates, self.process.list_work(state.inner, output.state))
        new_state = MeteredState(output.state, state.joules + joules)
        energy = {JOULES: float(joules.sum()), JOULES_TOTAL: float(new_state.joules.sum())}
        return RoundOutput(new_state, {**output.metrics, **energy})

    def get_models(self, state: MeteredState) -> dict[str, Weights]:
        return self.process.get_models(state.inner)

    def client_model(self, state: MeteredState) -> list[str]:
        return self.process.client_model(state.inner)

    def personalize(self, state: MeteredState, clients: Sequence[ClientShard]) -> Iterator[tuple[ClientShard, Weights]]:
        return self.process.personalize(state.inner, clients)

    def personalize_from(
        self, state: MeteredState, clients: Sequence[ClientShard], start: str, most_steps: int | None = None
    ) -> Iterator[tuple[ClientShard, Weights]]:
        return self.process.personalize_from(state.inner, clients, start, most_steps)

    def get_teachers(self, state: MeteredState) -> dict[str, Weights]:
        return self.process.get_teachers(state.inner)

    def is_spent(self, state: MeteredState) -> bool:
        return self.process.is_spent(state.inner)

    def get_notes(self, state: MeteredState) -> Sequence[str]:
        return self.process.get_notes(state.inner)

    def summarize(self, state: MeteredState) -> dict[str, Any]:
        return self.process.summarize(state.inner)

    def client_columns(self, state: MeteredState) -> dict[str, list]:
        return {**self.process.client_columns(state.inner), JOULES: state.joules.tolist()}

    def get_events(self, state: MeteredState) -> Sequence[tuple[float, int, str, int]]:
        return self.process.get_events(state.inner)


def meter_energy(process: FederatedProcess, rates: EnergyRates) -> MeteredProcess:
    """The same algorithm, with the energy of its clients.

    Args:
      process: an algorithm that says what its clients do, whose `list_work` is not None.
      rates: what the devices spend, of new clients, too.
    """
    return MeteredProcess(process, rates)
