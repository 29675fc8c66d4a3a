"""The energy of every algorithm: by hand for two devices, and the same bytes and examples as the ledgers have."""

import dataclasses
import inspect
from types import SimpleNamespace

import numpy as np
import pytest

from datasets.federated_data import EnergyRates, Windows
from launch.runs.checkpoints import Checkpoints
from launch.settings.algorithms import ALGORITHMS
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.protocol import FederatedProcess
from tff_algos.rounds.energy_meter import MeteredProcess, MeteredState
from tff_algos.rounds.forwarding import ForwardingProcess
from tff_algos.settings.asynchronous import TrainingTimesConfig
from tff_algos.settings.compression import CompressionConfig
from tff_algos.settings.local_training import LocalTrainingConfig

MODEL_BYTES = 15 * 4  # of `linear_spec`
RATES = EnergyRates(np.array([0.5, 0.25]), np.array([0.001, 0.01]), np.array([0.002, 0.02]))
# What fits a few clients of a few examples; devices drop out where they can.
SMALL = {
    "num_clusters": 2,
    "support_size": 1,
    "query_size": 2,
    "cohort_size": 3,
    "milestones": (1, 2),
    "quality_model": "fine_tuned",
    "times": TrainingTimesConfig(speed="profiles", dropout=0.4, max_away_s=0.5),
    "waiting": "synchronous",  # a short period would end before a device can be reached
}
INNER = ("map_models", "list_work")  # of the algorithm, which nothing asks a metered process for
CHANGED = ("initialize", "next", "client_columns")
OF_FILES = ("keep_in", "forget")  # which have no state


def list_public():
    return [name for name in dir(FederatedProcess) if not name.startswith("_") and name not in INNER]


@pytest.mark.parametrize("name", list_public())
def test_everything_public_is_passed_on(name):
    defined = {*vars(MeteredProcess), *vars(ForwardingProcess)}
    assert name in defined, f"MeteredProcess does not pass on {name!r}"


@pytest.mark.parametrize(
    "name",
    [name for name in list_public() if callable(getattr(FederatedProcess, name)) and name not in (*CHANGED, *OF_FILES)],
)
def test_methods_pass_on_all_their_arguments(name):
    further = [object() for _ in list(inspect.signature(getattr(FederatedProcess, name)).parameters)[2:]]
    inner = SimpleNamespace(**{name: lambda *arguments, **named: (arguments, named)})
    asked = getattr(MeteredProcess(inner, RATES), name)
    assert asked(MeteredState("state", np.zeros(2)), *further, by_name=1) == (("state", *further), {"by_name": 1})


@pytest.mark.parametrize("name", OF_FILES)
def test_the_algorithm_knows_of_the_files_of_what_clients_keep(name):
    told = []
    getattr(MeteredProcess(SimpleNamespace(**{name: told.append}), RATES), name)("this")
    assert told == ["this"]


def test_two_devices_and_two_rounds_by_hand(tff_runtime, make_federation, linear_spec, tmp_path):
    """Clients of 3 and 5 examples, 2 epochs, one client a round.

    A round costs client 0: 6 x 0.5 + 60 x 0.001 + 60 x 0.002 = 3.18 J, client 1: 10 x 0.25 + 0.6 + 1.2 = 4.3 J.
    """
    config = FedAvgConfig(training=LocalTrainingConfig(epochs=2), cohort_size=1)
    process = MeteredProcess(build_fed_avg_process(linear_spec, make_federation([3, 5]), config, seed=3), RATES)
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


@pytest.fixture(scope="module")
def data(build_federation, tmp_path_factory):
    made = build_federation(tmp_path_factory.mktemp("energy"), [9, 12, 30, 3])
    energy = EnergyRates(np.array([1.0, 2.0, 3.0, 4.0]), np.full(4, 1e-3), np.full(4, 2e-3))
    changes = {
        "names": tuple(f"device {index}" for index in range(4)),
        "energy": energy,
        "windows": Windows(np.full((4, 1), 3600.0), np.full((4, 1), 80000.0)),  # from hour 1 on
        "resources": np.array([0.25, 0.5, 0.75, 1.0]),
    }
    return dataclasses.replace(made, profiles=dataclasses.replace(made.profiles, **changes))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_says_what_its_clients_do(name, tff_runtime, data, linear_spec):
    """Its parts have the bytes of its metrics, a round's joules are the sum of the clients', and windows are kept."""
    config = ALGORITHMS[name].default_config()
    config = dataclasses.replace(config, **{name: value for name, value in SMALL.items() if hasattr(config, name)})
    config.check_devices(data.profiles, 4)
    inner = ALGORITHMS[name].load_builder()(linear_spec, data, config, 7)
    process = MeteredProcess(inner, data.profiles.energy)
    state, total, num_examples = process.initialize(), np.zeros(4), 0.0
    for _ in range(4):
        before = state
        state, metrics = process.next(state)
        work = inner.list_work(before.inner, state.inner)
        down, up, joules = (np.zeros(4) for _ in range(3))
        for part in work:
            for place, client in enumerate(part.clients):  # plainly, one by one
                examples, received, sent = (float(np.broadcast_to(of, len(part.clients))[place]) for of in part[1:])
                down[client] += received
                up[client] += sent
                joules[client] += examples * (client + 1) + received * 1e-3 + sent * 2e-3
        assert metrics["virtual_time_s"] > 3600  # nobody could be reached before
        assert (down.sum(), up.sum()) == (metrics["bytes_down"], metrics["bytes_up"])
        assert metrics["joules"] == pytest.approx(joules.sum()) and metrics["joules"] > 0
        total += joules
        assert metrics["joules_total"] == pytest.approx(total.sum())
        columns = process.client_columns(state)
        assert columns["joules"] == pytest.approx(total.tolist())
        assert columns.get("resource") == ([0.25, 0.5, 0.75, 1.0] if name == "amfl_p" else None)
        if "energy_examples" in metrics:  # AMFL-P's own energy, in examples since the start, counts the same ones
            num_examples += sum(np.sum(np.broadcast_to(part.num_examples, len(part.clients))) for part in work)
            assert metrics["energy_examples"] == pytest.approx(num_examples)


def test_compressed_bytes_cost_less(tff_runtime, make_federation, linear_spec):
    """At 8 bits the 12 weights of the kernel take 12 bytes and what the scale takes, far from 48."""
    data, joules = make_federation([3, 5]), []
    free = RATES._replace(joules_per_example=np.zeros(2))
    for compression in (CompressionConfig(), CompressionConfig(bits=8)):
        config = FedAvgConfig(training=LocalTrainingConfig(epochs=1), compression=compression)
        process = MeteredProcess(build_fed_avg_process(linear_spec, data, config, seed=3), free)
        _, metrics = process.next(process.initialize())
        assert metrics["joules"] == pytest.approx(metrics["bytes_down"] / 2 * 0.011 + metrics["bytes_up"] / 2 * 0.022)
        joules.append(metrics["joules"])
    assert joules[1] < joules[0] == pytest.approx(MODEL_BYTES * 0.033)
