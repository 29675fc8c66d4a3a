"""Processes around another: all that they do not change is passed on; joules by hand, and the start of quantization."""

import inspect
from types import SimpleNamespace

import numpy as np
import pytest

from datasets.federated_data import EnergyRates
from launch.runs.checkpoints import Checkpoints
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.protocol import FederatedProcess, RoundOutput
from tff_algos.rounds.forwarding import DelayedState, ForwardingProcess, MeteredProcess, QuantizationStart
from tff_algos.settings.aggregation import CompressionConfig
from tff_algos.settings.local_training import LocalTrainingConfig

PUBLIC = [name for name in dir(FederatedProcess) if not name.startswith("_")]
OF_MODELS = ("map_models", "list_work")  # of the algorithm, which nothing asks a metered process for
# Attributes, the same in every round.
FACTS = ("is_personal", "fine_tuning_start", "curve", "takes_new_clients", "shares_models")
OF_FILES = ("keep_in", "forget")  # methods that both processes are told, and that have no state
METHODS = [name for name in PUBLIC if name not in ("initialize", "next", "ask", *FACTS, *OF_FILES, *OF_MODELS)]
# The state of a recorder is its one model: a tuple of one number. "Quantized" models are a hundred larger.
QUANTIZATION = SimpleNamespace(
    strip=lambda weights: (weights[0] - 100,), wrap=lambda weights, template: (weights[0] + template[0],)
)
RATES = EnergyRates(np.array([0.5, 0.25]), np.array([0.001, 0.01]), np.array([0.002, 0.02]))


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
    return QuantizationStart(Recorder("float"), Recorder("quantized"), QUANTIZATION, (100,), start_round=2)


def after(round_num, model):
    return DelayedState(np.int32(round_num), (model,))


@pytest.mark.parametrize("kind", [QuantizationStart, MeteredProcess])
def test_everything_public_is_defined_anew(kind):
    """What the base class gains must be passed on, too; its default would hide what the inner processes say."""
    # By `vars`, since an attribute that is only inherited would be found as well.
    missing = set(PUBLIC) - set(vars(kind)) - set(vars(ForwardingProcess))
    assert missing == (set() if kind is QuantizationStart else set(OF_MODELS))


def test_clients_are_not_asked_of_what_is_inside_alone(late):
    """The joules would not be counted, nor would the models be switched."""
    assert MeteredProcess(Recorder("inside"), RATES).ask is None and late.ask is None


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_that_of_the_process_whose_turn_it_is(late, name):
    """With the model as that process knows it, and with all further arguments."""
    further = [object() for _ in list(inspect.signature(getattr(FederatedProcess, name)).parameters)[2:]]
    method = getattr(late, name)
    assert method(after(1, 107), *further) == ("float", (7,), *further)
    assert method(after(2, 107), *further) == ("quantized", (107,), *further)


def test_work_is_that_of_the_process_that_makes_the_round(late):
    """The round that follows the last float one is quantized, though the state that it begins with is float."""
    states = [after(number, 107 + number) for number in range(3)]
    assert late.list_work(*states[:2]) == ("float", (7,), (8,))
    assert late.list_work(*states[1:]) == ("quantized", (108,), (109,))


def test_models_are_mapped_as_the_current_process_knows_them(late):
    def double(weights):
        return (2 * weights[0],)

    assert [late.map_models(after(number, 107), double) for number in (1, 2)] == [(1, (114,)), (2, (214,))]


def test_rounds_before_the_start_are_float_and_the_state_is_always_quantized(late):
    state, rows = late.initialize(), []
    assert state == (0, (100,))
    for _ in range(3):
        state, metrics = late.next(state)
        rows.append(metrics["by"])
    assert rows == ["float", "quantized", "quantized"] and state == (3, (103,))
    assert late.float_process.calls == [("next", (0,))]
    assert late.quantized_process.calls == [("next", (101,)), ("next", (102,))]


def test_both_processes_know_of_files_and_what_does_not_change_is_the_quantized_ones(late):
    for name in OF_FILES:
        getattr(late, name)("told")
    assert late.float_process.calls == late.quantized_process.calls == [(name, "told") for name in OF_FILES]
    assert [getattr(late, fact) for fact in FACTS] == [f"{fact} of quantized" for fact in FACTS]


@pytest.fixture
def build(tff_runtime, linear_spec):
    """A function (data, rates, fields of the config) -> FedAvg of two epochs, metered."""

    def build(data, rates, **fields):
        config = FedAvgConfig(LocalTrainingConfig(epochs=2), **fields)
        return MeteredProcess(build_fed_avg_process(linear_spec, data, config, seed=3), rates)

    return build


def test_two_devices_and_two_rounds_by_hand(build, make_federation, tmp_path):
    """Clients of 3 and 5 examples, 2 epochs, one client a round.

    A round costs client 0: 6 x 0.5 + 60 x 0.001 + 60 x 0.002 = 3.18 J, client 1: 10 x 0.25 + 0.6 + 1.2 = 4.3 J.
    """
    process = build(make_federation([3, 5]), RATES, cohort_size=1)
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    state, spent, costs = process.initialize(), np.zeros(2), np.array([3.18, 4.3])
    for round_num in (1, 2):
        cohort = process.process.choose_cohort(state.inner)[1]
        state, metrics = process.next(state)
        spent[cohort] += costs[cohort]
        assert metrics["joules"] == pytest.approx(costs[cohort].sum()) and list(metrics)[-1] == "joules_total"
        assert metrics["joules_total"] == pytest.approx(spent.sum())
        assert process.client_columns(state) == {"joules": pytest.approx(spent.tolist())}
        # A resumed run counts on from the very number.
        checkpoints.save(state, round_num)
        _, state = checkpoints.restore(process.initialize())


def test_compressed_bytes_cost_less(build, make_federation):
    """The model has 60 bytes. At 8 bits the 12 weights of the kernel take 12 bytes and what the scale takes."""
    data, joules = make_federation([3, 5]), []
    for compression in (CompressionConfig(), CompressionConfig(bits=8)):
        process = build(data, RATES._replace(joules_per_example=np.zeros(2)), compression=compression)
        _, metrics = process.next(process.initialize())
        assert metrics["joules"] == pytest.approx(metrics["bytes_down"] / 2 * 0.011 + metrics["bytes_up"] / 2 * 0.022)
        joules.append(metrics["joules"])
    assert joules[1] < joules[0] == pytest.approx(60 * 0.033)
