"""The energy of two devices by hand; that of every algorithm is in `test_protocol.py`."""

import numpy as np
import pytest

from datasets.federated_data import EnergyRates
from launch.runs.checkpoints import Checkpoints
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.protocol import FederatedProcess
from tff_algos.rounds.forwarding import ForwardingProcess, MeteredProcess
from tff_algos.settings.aggregation import CompressionConfig
from tff_algos.settings.local_training import LocalTrainingConfig

MODEL_BYTES = 15 * 4  # of `linear_spec`
RATES = EnergyRates(np.array([0.5, 0.25]), np.array([0.001, 0.01]), np.array([0.002, 0.02]))
INNER = ("map_models", "list_work")  # of the algorithm, which nothing asks a metered process for


def list_public():
    return [name for name in dir(FederatedProcess) if not name.startswith("_") and name not in INNER]


@pytest.mark.parametrize("name", list_public())
def test_everything_public_is_passed_on(name):
    defined = {*vars(MeteredProcess), *vars(ForwardingProcess)}
    assert name in defined, f"MeteredProcess does not pass on {name!r}"


@pytest.fixture
def build(tff_runtime, linear_spec):
    """A function (data, fields of the config) -> FedAvg of two epochs."""

    def build(data, **fields):
        config = FedAvgConfig(LocalTrainingConfig(epochs=2), **fields)
        return build_fed_avg_process(linear_spec, data, config, seed=3)

    return build


def test_two_devices_and_two_rounds_by_hand(build, make_federation, tmp_path):
    """Clients of 3 and 5 examples, 2 epochs, one client a round.

    A round costs client 0: 6 x 0.5 + 60 x 0.001 + 60 x 0.002 = 3.18 J, client 1: 10 x 0.25 + 0.6 + 1.2 = 4.3 J.
    """
    process = MeteredProcess(build(make_federation([3, 5]), cohort_size=1), RATES)
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
    assert process.get_models(state).keys() == {"global"} and process.takes_new_clients


def test_compressed_bytes_cost_less(build, make_federation):
    """At 8 bits the 12 weights of the kernel take 12 bytes and what the scale takes, far from 48."""
    data, joules = make_federation([3, 5]), []
    free = RATES._replace(joules_per_example=np.zeros(2))
    for compression in (CompressionConfig(), CompressionConfig(bits=8)):
        process = MeteredProcess(build(data, compression=compression), free)
        _, metrics = process.next(process.initialize())
        assert metrics["joules"] == pytest.approx(metrics["bytes_down"] / 2 * 0.011 + metrics["bytes_up"] / 2 * 0.022)
        joules.append(metrics["joules"])
    assert joules[1] < joules[0] == pytest.approx(MODEL_BYTES * 0.033)
