"""Starts quantization-aware training some rounds into a run: float rounds first, then one switch.

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

from models.model_spec import Quantization
from tff_algos.protocol import ClientWork, FederatedProcess, RoundOutput, State, Weights
from tff_algos.rounds.forwarding import ForwardingProcess


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
