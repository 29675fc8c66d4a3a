"""The wrapper for a later start of quantization passes everything on: nothing of the inner processes is lost."""

import inspect
from types import SimpleNamespace

import numpy as np
import pytest

from tff_algos.protocol import FederatedProcess, RoundOutput
from tff_algos.rounds.forwarding import DelayedState, ForwardingProcess, QuantizationStart

PUBLIC = [name for name in dir(FederatedProcess) if not name.startswith("_")]
FACTS = ("is_personal", "fine_tuning_start", "curve", "takes_new_clients")  # attributes, the same in every round
OF_FILES = ("keep_in", "forget")  # methods that both processes are told, and that have no state
METHODS = [name for name in PUBLIC if name not in ("initialize", "next", *FACTS, *OF_FILES)]
# The state of a recorder is its one model: a tuple of one number. "Quantized" models are a hundred larger.
QUANTIZATION = SimpleNamespace(
    strip=lambda weights: (weights[0] - 100,), wrap=lambda weights, template: (weights[0] + template[0],)
)
TEMPLATE = (100,)


class Recorder:
    """Stands in for a process: notes every call, and returns its own name and the arguments."""

    def __init__(self, name):
        self.name, self.calls = name, []
        for fact in FACTS:
            setattr(self, fact, f"{fact} of {name}")

    def initialize(self):
        return (0,)

    def next(self, state):
        self.calls.append(("next", state))
        return RoundOutput((state[0] + 1,), {"by": self.name})

    def map_models(self, state, function):
        return function(state)

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append((name, *arguments))
            return self.name, *arguments

        return call


@pytest.fixture
def late():
    return QuantizationStart(Recorder("float"), Recorder("quantized"), QUANTIZATION, TEMPLATE, start_round=2)


@pytest.mark.parametrize("name", PUBLIC)
def test_everything_public_is_defined_anew(name):
    """What the base class gains must be passed on here too; its default would hide what the inner processes say."""
    defined = {*vars(QuantizationStart), *vars(ForwardingProcess)}
    assert name in defined, f"QuantizationStart does not pass on {name!r}"


@pytest.mark.parametrize("name", [name for name in METHODS if name not in ("map_models", "list_work")])
def test_a_method_is_that_of_the_process_whose_turn_it_is(late, name):
    """With the model as that process knows it, and with all further arguments."""
    further = [object() for _ in list(inspect.signature(getattr(FederatedProcess, name)).parameters)[2:]]
    method = getattr(late, name)
    assert method(DelayedState(np.int32(1), (107,)), *further) == ("float", (7,), *further)
    assert method(DelayedState(np.int32(2), (107,)), *further) == ("quantized", (107,), *further)


def test_work_is_that_of_the_process_that_makes_the_round(late):
    """The round that follows the last float one is quantized, though the state that it begins with is float."""
    states = [DelayedState(np.int32(number), (107 + number,)) for number in range(3)]
    assert late.list_work(*states[:2]) == ("float", (7,), (8,))
    assert late.list_work(*states[1:]) == ("quantized", (108,), (109,))


def test_models_are_mapped_as_the_current_process_knows_them(late):
    def double(weights):
        return (2 * weights[0],)

    assert late.map_models(DelayedState(np.int32(1), (107,)), double) == (1, (114,))
    assert late.map_models(DelayedState(np.int32(2), (107,)), double) == (2, (214,))


def test_rounds_before_the_start_are_float_and_the_state_is_always_quantized(late):
    state = late.initialize()
    assert state == (0, (100,))
    rows = []
    for _ in range(3):
        state, metrics = late.next(state)
        rows.append(metrics["by"])
    assert rows == ["float", "quantized", "quantized"] and state == (3, (103,))
    assert late.float_process.calls == [("next", (0,))]
    assert late.quantized_process.calls == [("next", (101,)), ("next", (102,))]


@pytest.mark.parametrize("name", OF_FILES)
def test_both_processes_know_of_the_files_of_what_clients_keep(late, name):
    getattr(late, name)("told")
    assert late.float_process.calls == late.quantized_process.calls == [(name, "told")]


@pytest.mark.parametrize("fact", FACTS)
def test_what_does_not_change_is_what_the_quantized_process_says(late, fact):
    assert getattr(late, fact) == f"{fact} of quantized"
