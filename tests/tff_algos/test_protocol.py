"""Every algorithm meets the protocol of `tff_algos/protocol.py`: the same checks for each row of the launch table."""

import dataclasses
import functools
import json
import shutil
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from small_runs import assert_same

from datasets.federated_data import Archetypes, EnergyRates, Windows
from launch.runs.checkpoints import Checkpoints
from launch.settings.algorithms import ALGORITHMS
from models.quantization import build_quantized_spec
from tff_algos.protocol import BYTES_DOWN, BYTES_UP, COMMON_METRICS, VIRTUAL_TIME_S, FederatedProcess
from tff_algos.rounds.aggregation import sum_bytes
from tff_algos.rounds.asked_rounds import find_obstacle
from tff_algos.rounds.forwarding import MeteredProcess, QuantizationStart
from tff_algos.rounds.synchronous import SynchronousProcess
from tff_algos.settings.asynchronous import TrainingTimesConfig
from tff_algos.simulation.virtual_clock import compute_phases_s
from tff_algos.weights import initialize_weights

NUM_ROUNDS = 3  # FL+HC clusters in the second
# Second-order gradients need weights as tensors; asynchronous devices train models of before and after a switch; what
# an optimizer, a client or CFL's tree keeps has the shapes of the model before it.
FIXED = (
    "amfl_p",
    "async_periodic",
    "fed_async",
    "buffered",
    "fedadam",
    "fedyogi",
    "fedavgm",
    "ditto",
    "apfl",
    "partial",
    "pfedme",
    "scaffold",
    "fedproto",
    "moon",
    "cfl",
)
SWITCHING = [name for name in ALGORITHMS if name not in FIXED]
SWITCHING_FAST = ("fedavg", "fedcd", "fedsikd")  # the others switch by the same code
# These have no rounds that all wait for, or no server.
NOT_SYNCHRONOUS = ("async_periodic", "fed_async", "buffered", "local_only", "pooled")
# Personal models, two models a device, and the updates that clients are clustered by.
SENDING_TWICE = ("ditto", "fedcd", "fl_hc")
# Their clients can be asked over a network.
ASKED = ("fedavg", "fedadam", "fedyogi", "fedavgm", "fine_tuning", "async_periodic", "buffered")
# What fits four clients of a few examples; devices drop out where they can.
SMALL = {
    "num_clusters": 2,
    "personal": "*/bias",  # of one dense layer
    "support_size": 1,
    "query_size": 2,
    "cohort_size": 3,
    "milestones": (1, 2),
    "quality_model": "fine_tuned",
    "times": TrainingTimesConfig(speed="profiles", dropout=0.4, max_away_s=0.5),
    "waiting": "synchronous",  # a short period would end before a device can be reached
}


class Walk(NamedTuple):
    """A metered process with the states and metrics of its first rounds, and each state as it was when it was new."""

    name: str
    process: Any
    data: Any
    states: list
    copies: list
    metrics: list

    def list_rounds(self):
        """(the algorithm's state before, that after, the metrics) of each round."""
        inner = [state.inner for state in self.states]
        return list(zip(inner, inner[1:], self.metrics, strict=False))


@pytest.fixture(scope="module")
def data(build_federation, tmp_path_factory):
    """Four clients that validate on their train examples; devices with energy, and windows from hour 1 on."""
    made = build_federation(tmp_path_factory.mktemp("protocol"), [9, 12, 30, 3])
    for client in made.clients:
        for array in ("x", "y"):
            shutil.copy(f"{client.path}.train.{array}", f"{client.path}.validation.{array}")
    profiles = dataclasses.replace(
        made.profiles,
        names=tuple(f"device {index}" for index in range(4)),
        energy=EnergyRates(np.array([1.0, 2.0, 3.0, 4.0]), np.full(4, 1e-3), np.full(4, 2e-3)),
        windows=Windows(np.full((4, 1), 3600.0), np.full((4, 1), 80000.0)),
        resources=np.array([0.25, 0.5, 0.75, 1.0]),
    )
    clients = tuple(dataclasses.replace(client, num_validation=client.num_train) for client in made.clients)
    archetypes = Archetypes(("even", "odd"), (0, 1), (0, 1, 0, 1))
    return dataclasses.replace(made, clients=clients, profiles=profiles, archetypes=archetypes)


@pytest.fixture(scope="module")
def build_process(data):
    """A function (algorithm, spec) -> its process, built once."""

    @functools.cache
    def build(name, spec):
        config = ALGORITHMS[name].default_config()
        config = dataclasses.replace(config, **{name: value for name, value in SMALL.items() if hasattr(config, name)})
        config.check_devices(data.profiles, 4)
        return ALGORITHMS[name].load_builder()(spec, data, config, 7)

    return build


@pytest.fixture(scope="module")
def quantized_spec(linear_spec):
    return build_quantized_spec(linear_spec)


def list_walks():
    yield from ALGORITHMS
    for name in SWITCHING:
        marks = () if name in SWITCHING_FAST else pytest.mark.slow
        yield pytest.param(f"{name} quantized from round 2", marks=marks)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_whose_clients_can_be_asked(tff_runtime, build_process, linear_spec, name):
    process = build_process(name, linear_spec)
    assert (process.ask is not None) == (name in ASKED) == (not find_obstacle(process))


# One walk serves all checks of a process: tracing it and three rounds take seconds.
@pytest.fixture(scope="module", params=list_walks())
def walk(request, tff_runtime, data, build_process, linear_spec):
    name, *is_quantized = request.param.split(" quantized", 1)
    process = build_process(name, linear_spec)
    if is_quantized:
        quantized_spec = request.getfixturevalue("quantized_spec")
        template = initialize_weights(quantized_spec, 7)
        quantized = build_process(name, quantized_spec)
        process = QuantizationStart(process, quantized, quantized_spec.quantization, template, 2)
    process = MeteredProcess(process, data.profiles.energy)
    states, metrics = [process.initialize()], []
    copies = [copy_state(states[0])]
    for _ in range(NUM_ROUNDS):
        state, row = process.next(states[-1])
        states.append(state)
        copies.append(copy_state(state))
        metrics.append(row)
    return Walk(name, process, data, states, copies, metrics)


def copy_state(state):
    return tf.nest.map_structure(np.copy, state)


def assert_same_state(first, second):
    assert_same(tf.nest.flatten(first), tf.nest.flatten(second))


def test_models_can_be_mapped_or_the_process_says_that_they_cannot(walk):
    """Doubling every model of the first state doubles what the process then says its models are."""
    process, state = walk.process.process, walk.states[0].inner
    assert isinstance(process, FederatedProcess) and (process.map_models is not None) == (walk.name in SWITCHING)
    if process.map_models is None:
        return
    mapped = process.map_models(state, lambda weights: tuple(array * array.dtype.type(2) for array in weights))
    tf.nest.assert_same_structure(state, mapped)
    before, after = process.get_models(state), process.get_models(mapped)
    assert list(before) == list(after) and any(np.any(array) for array in next(iter(before.values())))
    for model, doubled in zip(before.values(), after.values(), strict=True):
        for array, double in zip(model, doubled, strict=True):
            np.testing.assert_array_equal(2 * array, double)


def test_the_protocol(walk):
    process, states, metrics = walk.process, walk.states, walk.metrics
    assert all(list(row) == list(metrics[0]) for row in metrics), "columns are fixed from the first row"
    assert set(COMMON_METRICS) <= set(metrics[0])
    assert all(np.isscalar(value) for row in metrics for value in row.values())
    times = [row["virtual_time_s"] for row in metrics]
    assert times == sorted(times) and times[0] > 3600, "nobody could be reached before"
    for state in states:
        tf.nest.assert_same_structure(states[0], state)
        leaves = [np.asarray(leaf) for leaf in tf.nest.flatten(state)]
        assert all(leaf.dtype.kind in "fiub" for leaf in leaves), "numbers and masks only, no strings"
        models, names = process.get_models(state), process.client_model(state)
        assert len(names) == 4 and set(names) <= set(models)
        for model in [*models.values(), *process.get_teachers(state).values()]:
            assert all(isinstance(array, np.ndarray) for array in model)
        assert all(len(column) == 4 for column in process.client_columns(state).values())
        json.dumps(process.summarize(state))


def test_a_round_is_a_pure_function_of_its_state(walk):
    process, states, metrics = walk.process, walk.states, walk.metrics
    again, same_metrics = process.next(states[1])
    assert_same_state(again, states[2])
    np.testing.assert_equal(same_metrics, metrics[1])
    assert_same_state(states, walk.copies)


def test_a_run_goes_on_from_a_checkpoint_bit_for_bit(walk, tmp_path):
    process, states, metrics = walk.process, walk.states, walk.metrics
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(states[2], 2)
    loaded = checkpoints.load(2, process.initialize())
    state, row = process.next(loaded)
    assert_same_state(state, states[3])
    np.testing.assert_equal(row, metrics[2])


def test_clients_end_up_with_their_shared_model_or_one_of_their_own(walk):
    process, state, clients = walk.process, walk.states[-1], walk.data.clients[1:3]
    models, names = process.get_models(state), process.client_model(state)
    personal = list(process.personalize(state, clients))
    assert [client.index for client, _ in personal] == [1, 2]
    for client, weights in personal:
        shared = zip(weights, models[names[client.index]], strict=True)
        assert all(np.array_equal(a, b) for a, b in shared) != process.is_personal


def test_clients_that_diverge_are_left_out_and_keep_what_they_had(walk, build_federation, break_client, tmp_path):
    """First one of the cohort, then all, which changes no model, whatever the server's optimizer remembers."""
    process, state = walk.process.process, walk.states[1].inner
    if walk.name in NOT_SYNCHRONOUS or isinstance(process, QuantizationStart):
        return
    process = getattr(process, "process", process)  # of Fine-Tuning
    files = build_federation(tmp_path, [9, 12, 30, 3])
    process = dataclasses.replace(process, clients=dataclasses.replace(walk.data, clients=files.clients))
    _, cohort = process.choose_cohort(state)
    for broken in (cohort[:1], cohort):
        for client in broken:
            break_client(files, client)
        after, row = process.next(state)
        fewest = len(broken) * (2 if walk.name in SENDING_TWICE else 1)
        # A leader has a teacher that diverges, too.
        assert fewest <= row["num_rejected"] <= fewest + len(broken) * (walk.name in ("fedsikd", "random_cluster"))
        assert np.isnan(row["train_loss"]) == (len(broken) == len(cohort))
        assert all(np.isfinite(array).all() for model in process.get_models(after).values() for array in model)
        if process.store:
            old, new = (process.store.read(each.kept, cohort) for each in (state, after))
            is_same = [all(map(np.array_equal, *rows)) for rows in zip(old, new, strict=True)]
            assert is_same == [client in broken for client in cohort]
    models, same = process.get_models(state), process.get_models(after)
    for name in models.keys() & same.keys():
        assert_same(models[name], same[name])


def test_its_energy_is_that_of_what_its_clients_do(walk):
    """Its parts have the bytes of its metrics, and a round's joules are the sum of the clients'."""
    total, num_examples = np.zeros(4), 0.0
    for number, (before, after, metrics) in enumerate(walk.list_rounds(), 1):
        work = walk.process.process.list_work(before, after)
        down, up, joules = (np.zeros(4) for _ in range(3))
        for part in work:
            for place, client in enumerate(part.clients):  # plainly, one by one
                examples, received, sent = (float(np.broadcast_to(of, len(part.clients))[place]) for of in part[1:])
                down[client] += received
                up[client] += sent
                joules[client] += examples * (client + 1) + received * 1e-3 + sent * 2e-3
        assert (down.sum(), up.sum()) == (metrics[BYTES_DOWN], metrics[BYTES_UP]) == sum_bytes(work)
        # Clients whose data are pooled send them, and then do nothing.
        assert metrics["joules"] == pytest.approx(joules.sum())
        assert (metrics["joules"] > 0) == (walk.name != "pooled" or number == 1)
        total += joules
        assert metrics["joules_total"] == pytest.approx(total.sum())
        columns = walk.process.client_columns(walk.states[number])
        assert columns["joules"] == pytest.approx(total.tolist())
        assert columns.get("resource") == ([0.25, 0.5, 0.75, 1.0] if walk.name == "amfl_p" else None)
        if "energy_examples" in metrics:  # AMFL-P's own energy, in examples since the start, counts the same ones
            num_examples += sum(np.sum(np.broadcast_to(part.num_examples, len(part.clients))) for part in work)
            assert metrics["energy_examples"] == pytest.approx(num_examples)


def test_a_synchronous_round_takes_the_time_of_its_work(walk):
    process = walk.process.process
    if isinstance(process, QuantizationStart):
        return  # whose rounds are those of two processes
    process = getattr(process, "process", process)  # of Fine-Tuning
    assert isinstance(process, SynchronousProcess) == (walk.name not in NOT_SYNCHRONOUS)
    if walk.name in NOT_SYNCHRONOUS:
        return
    for before, after, metrics in walk.list_rounds():
        assert type(after) is type(before) and int(after.round_num) == int(before.round_num) + 1
        wait_s, cohort = process.choose_cohort(before)
        start_s = float(before.virtual_time_s) + wait_s
        seconds = compute_phases_s(walk.data.profiles, process.list_phases(before, cohort), start_s)
        assert metrics[VIRTUAL_TIME_S] == float(after.virtual_time_s) == pytest.approx(start_s + seconds, rel=1e-12)
        assert seconds > 0 and metrics["num_clients"] == len(cohort)
        assert metrics[BYTES_DOWN] > 0 and metrics[BYTES_UP] > 0
