"""Starts quantization-aware training some rounds into a run: float rounds first, then one switch.

The state always has the quantization-aware model's structure, so that checkpoints of both parts are alike; in the float
rounds its value ranges and counters keep their first values. The ranges are found within the first quantized round,
from the clients' examples.
"""

from typing import NamedTuple

import numpy as np

from models.model_spec import Quantization
from tff_algos.protocol import FederatedProcess, RoundOutput, State, Weights


class DelayedState(NamedTuple):
    """Rounds done, int32, and the state of the algorithm, with quantization-aware models."""

    round_num: np.int32
    inner: State


def start_quantization_later(
    float_process: FederatedProcess,
    quantized_process: FederatedProcess,
    quantization: Quantization,
    template: Weights,
    start_round: int,
) -> FederatedProcess:
    """A process that runs `float_process` before round `start_round`, and from then on `quantized_process`.

    Before the switch its models are float models, after it quantization-aware ones.

    Args:
      float_process: the algorithm over the float model; its `map_models` is not None, like the other's.
      quantized_process: the same algorithm over the quantization-aware model.
      quantization: how the two models relate.
      template: a quantization-aware model's first weights, for its ranges and counters.
      start_round: the first quantized round, 1-based.
    """

    def strip(state: State) -> State:
        return quantized_process.map_models(state, quantization.strip)

    def wrap(state: State) -> State:
        return float_process.map_models(state, lambda weights: quantization.wrap(weights, template))

    def initialize() -> DelayedState:
        return DelayedState(np.int32(0), wrap(float_process.initialize()))

    def run_next(state: DelayedState) -> RoundOutput:
        round_num = np.int32(state.round_num + 1)
        if round_num < start_round:
            output = float_process.next(strip(state.inner))
            return output._replace(state=DelayedState(round_num, wrap(output.state)))
        output = quantized_process.next(state.inner)
        return output._replace(state=DelayedState(round_num, output.state))

    def delegate(name: str):
        def call(state: DelayedState, *arguments):
            if state.round_num < start_round:
                return getattr(float_process, name)(strip(state.inner), *arguments)
            return getattr(quantized_process, name)(state.inner, *arguments)

        return call

    names = ("get_models", "client_model", "personalize", "get_teachers", "summarize", "client_columns", "get_events")
    functions = {name: delegate(name) for name in names}
    return FederatedProcess(
        initialize=initialize, next=run_next, is_personal=quantized_process.is_personal, **functions
    )
