"""Processes around another one, which changes some of what it says and passes on the rest.

Counts the joules of an algorithm's clients, round by round. They are a part of the state, so that a resumed run goes
on counting where it stopped.

Starts quantization-aware training some rounds into a run: float rounds first, then one switch.

The state always has the quantization-aware model's structure, so that the checkpoints before and after the switch are
alike. In the float rounds its value ranges and counters keep their first values. The ranges are found from the clients'
examples within the first quantized round.
"""

import dataclasses
import operator
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from datasets.federated_data import EnergyRates
from models.model_spec import Quantization
from tff_algos.protocol import JOULES, JOULES_TOTAL, ClientWork, FederatedProcess, RoundOutput, State, Weights
from tff_algos.simulation.device_work import compute_joules


def _pass_on(name: str) -> Callable:
    """A method that asks the process whose turn it is for what it says under this name."""

    def ask(self: "ForwardingProcess", state: State, *arguments: Any, **named: Any) -> Any:
        process, inner = self.find_current(state)
        return getattr(process, name)(inner, *arguments, **named)

    return ask


class ForwardingProcess(FederatedProcess):
    """What a process around another extends: all that it does not define itself, the other says.

    Attributes:
      process: the other, which says what is the same in every round.
    """

    process: FederatedProcess

    def find_current(self, state: State) -> tuple[FederatedProcess, State]:
        """The process that made this state, and the state as that process knows it; by default `process`, `inner`."""
        return self.process, state.inner

    # Everything public is passed on by name, since a default inherited from the base class would hide what the process
    # inside says; a test fails for a name that is missing here.
    is_personal = property(operator.attrgetter("process.is_personal"))
    fine_tuning_start = property(operator.attrgetter("process.fine_tuning_start"))
    curve = property(operator.attrgetter("process.curve"))
    takes_new_clients = property(operator.attrgetter("process.takes_new_clients"))
    shares_models = property(operator.attrgetter("process.shares_models"))
    # Not passed on: what is around a process would be left out, since the process inside would be asked alone.
    ask = None

    get_models = _pass_on("get_models")
    client_model = _pass_on("client_model")
    personalize = _pass_on("personalize")
    personalize_from = _pass_on("personalize_from")
    get_teachers = _pass_on("get_teachers")
    summarize = _pass_on("summarize")
    client_columns = _pass_on("client_columns")
    is_spent = _pass_on("is_spent")
    compute_final_s = _pass_on("compute_final_s")
    get_notes = _pass_on("get_notes")
    get_events = _pass_on("get_events")
    find_kept = _pass_on("find_kept")

    def keep_in(self, folder: pathlib.Path) -> None:
        self.process.keep_in(folder)

    def forget(self, needed: Sequence[Any]) -> None:
        self.process.forget(needed)


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
        # At the end of the row, so that tables with and without energy begin alike.
        energy = {JOULES: float(joules.sum()), JOULES_TOTAL: float(new_state.joules.sum())}
        return RoundOutput(new_state, {**output.metrics, **energy})

    def client_columns(self, state: MeteredState) -> dict[str, list]:
        return {**self.process.client_columns(state.inner), JOULES: state.joules.tolist()}


class DelayedState(NamedTuple):
    """Rounds done, int32, and the state of the algorithm, with quantization-aware models."""

    round_num: np.int32
    inner: State


@dataclasses.dataclass(frozen=True, eq=False)
class QuantizationStart(ForwardingProcess):
    """Runs `float_process` before round `start_round`, and from then on `quantized_process`.

    Each method is that of the process whose turn it is: before the switch the models are float models, after it
    quantization-aware ones.

    Attributes:
      float_process: the algorithm over the float model; its `map_models` is not None, nor is the other's.
      quantized_process: the same algorithm over the quantization-aware model.
      quantization: how the two models relate.
      template: a quantization-aware model's first weights, for its ranges and counters.
      start_round: the first quantized round, 1-based.
    """

    float_process: FederatedProcess
    quantized_process: FederatedProcess
    quantization: Quantization
    template: Weights
    start_round: int

    process = property(operator.attrgetter("quantized_process"))

    def initialize(self) -> DelayedState:
        return DelayedState(np.int32(0), self._wrap(self.float_process.initialize()))

    def next(self, state: DelayedState) -> RoundOutput:
        round_num = np.int32(state.round_num + 1)
        if round_num < self.start_round:
            output = self.float_process.next(self._strip(state.inner))
            return output._replace(state=DelayedState(round_num, self._wrap(output.state)))
        output = self.quantized_process.next(state.inner)
        return output._replace(state=DelayedState(round_num, output.state))

    def list_work(self, state: DelayedState, next_state: DelayedState) -> Sequence[ClientWork]:
        # The process that makes the round, which before the switch is not yet the one that the next state belongs to.
        process, before, after = self.quantized_process, state.inner, next_state.inner
        if next_state.round_num < self.start_round:
            process, before, after = self.float_process, self._strip(before), self._strip(after)
        assert process.list_work is not None  # or nobody would ask
        return process.list_work(before, after)

    def map_models(self, state: DelayedState, function: Callable[[Weights], Weights]) -> DelayedState:
        process, inner = self.find_current(state)
        mapped = _map_models(process, inner, function)
        return state._replace(inner=self._wrap(mapped) if process is self.float_process else mapped)

    def keep_in(self, folder: pathlib.Path) -> None:
        for process in (self.float_process, self.quantized_process):
            process.keep_in(folder)

    def forget(self, needed: Sequence[Any]) -> None:
        for process in (self.float_process, self.quantized_process):
            process.forget(needed)

    def find_current(self, state: DelayedState) -> tuple[FederatedProcess, State]:
        # The state after the last float round is still float: a later round switches, not the end of this one.
        if state.round_num < self.start_round:
            return self.float_process, self._strip(state.inner)
        return self.quantized_process, state.inner

    def _strip(self, inner: State) -> State:
        return _map_models(self.quantized_process, inner, self.quantization.strip)

    def _wrap(self, inner: State) -> State:
        return _map_models(self.float_process, inner, lambda weights: self.quantization.wrap(weights, self.template))


def _map_models(process: FederatedProcess, inner: State, function: Callable[[Weights], Weights]) -> State:
    assert process.map_models is not None  # see `QuantizationStart`
    return process.map_models(inner, function)
