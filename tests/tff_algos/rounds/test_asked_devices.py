"""Asynchronous processes whose devices are asked, and their twins, whose devices a record tells of."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_network import ScriptedNetwork
from small_runs import assert_same

from tff_algos.client.cohort import ClientInput
from tff_algos.client.local_training import LocalResult
from tff_algos.rounds import asked_devices
from tff_algos.rounds.aggregation import RoundTotals
from tff_algos.rounds.asked_devices import round_to_tick
from tff_algos.rounds.network import JOINED, LEFT, TICK_S
from tff_algos.rounds.partners import AskedBy, RepeatedFrom
from tff_algos.rounds.versioned_round import VersionedInput, VersionedResult, build_versioned_updates
from tff_algos.seeds import derive_seed
from tff_algos.settings.asynchronous import TrainingTimesConfig
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.local_training import LocalTrainingConfig

TRAINING = LocalTrainingConfig(steps=3, batch_size=4, optimizer="sgd", learning_rate=0.3, learning_rate_decay=0.9)
SIZES = (6, 9, 12, 5, 7)
PERIODIC = {
    "times": TrainingTimesConfig(max_training_s=2.0),
    "period_fraction": 0.3,  # 0.6 s is no whole number of ticks
    "max_scheduled": 3,
    "weighting": "age_aware",
    "gamma": 0.5,
}
BUFFERED = {"buffer_size": 3, "concurrency": 4}
CASES = {
    "periodic": ("async_periodic", PERIODIC),
    "periodic_by_norm": ("async_periodic", {**PERIODIC, "scheduling": "significance", "max_scheduled": 1}),
    "periodic_all": ("async_periodic", {**PERIODIC, "averaged_devices": "all", "max_scheduled": 1}),
    "buffered": ("buffered", BUFFERED),
    "buffered_by_all": ("buffered", {"buffer_size": 4}),
}
QUICK_CASES = ("periodic", "buffered")
SPEEDS = np.array([0.125, 0.5, 0.875, 0.3125, 1.75])
# Client 4 is not there at first, client 2 leaves twice, once for long, client 0 once while it may wait.
MOVES = [
    (0.25, 4, JOINED),
    (0.40625, 2, LEFT),
    (0.4375, 2, JOINED),
    (1.0, 2, LEFT),
    (1.3125, 0, LEFT),
    (1.40625, 0, JOINED),
    (2.75, 2, JOINED),
]
ROUNDS, RESTARTED_AFTER = 10, 5


@pytest.fixture
def build(build_algorithm, make_federation):
    """A function (case, fields of the config) -> process."""

    def make(case, **fields):
        name, of_case = CASES[case]
        return build_algorithm(name, make_federation(list(SIZES)), TRAINING, **{**of_case, **fields})

    return make


def find_seconds(client, number):
    """Three speeds and more, no start quite as long as the one before."""
    return round_to_tick(SPEEDS[client] * (1 + number % 3 / 7))


def get_time_s(state):
    return float((state.clock if hasattr(state, "clock") else state.starts.clock).time_s)


def run_live(process, networks, num_rounds):
    """(states, metrics, record) of a run; networks: a function (state, round before) -> a network, or None to go on."""
    states, rows, record, asked = [process.initialize()], [], {}, None
    for round_num in range(1, num_rounds + 1):
        if network := networks(states[-1], round_num - 1):
            asked = process.ask(AskedBy(network))
            states[-1] = asked.initialize() if round_num == 1 else states[-1]
        state, metrics = asked.next(states[-1])
        states.append(state)
        rows.append(metrics)
        record[round_num] = asked.get_events(state)
    return states, rows, record


def run_twin(process, record, num_rounds):
    twin = process.ask(RepeatedFrom(record))
    states, rows = [twin.initialize()], []
    for round_num in range(1, num_rounds + 1):
        state, metrics = twin.next(states[-1])
        states.append(state)
        rows.append(metrics)
        assert twin.get_events(state) == record[round_num]
    return states, rows


def assert_twins(process, live, twin):
    """All that is not of a time to come is alike, number by number."""
    for state, other in zip(live[0], twin[0], strict=True):
        assert_same(process.get_models(state)["global"], process.get_models(other)["global"])
        assert process.client_columns(state) == process.client_columns(other)
        assert get_time_s(state) == get_time_s(other)
    for one, other in zip(live[1], twin[1], strict=True):
        np.testing.assert_equal(one, other)


def make_train(process, spec):
    """How a client of the network trains: as a simulated one does, alone."""
    compute = build_versioned_updates(spec, process.config.training, process.initial_weights)

    def train(task):
        path = process.clients.clients[task.client].path
        told = ClientInput(path, task.seed, np.int32(0), np.float32(1), task.learning_rate)
        return compute([VersionedInput(task.start, told, np.int32(0))])[0]

    return train


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in QUICK_CASES else pytest.mark.slow) for case in CASES]
)
def test_a_record_repeats_what_was_asked(case, build, linear_spec):
    """Three speeds; who leaves, returns, comes late, answers twice; a server that begins anew in the middle."""
    process = build(case)
    train, made = make_train(process, linear_spec), []

    def open_network(state, done):
        if done not in (0, RESTARTED_AFTER):
            return None
        present = {0, 1, 2, 3} if done == 0 else {0, 1, 3, 4}
        more = {"doubled": [1], "rejected": [(1, 2), (0, 3)]}
        made.append(ScriptedNetwork(train, find_seconds, MOVES, present, get_time_s(state), **more))
        return made[-1]

    live = run_live(process, open_network, ROUNDS)
    assert made[1].started_s == get_time_s(live[0][RESTARTED_AFTER]) > 0
    twin = run_twin(process, live[2], ROUNDS)
    assert_twins(process, live, twin)
    rows = [row for events in live[2].values() for row in events]
    assert {"start", "ready", "rejected", "dropped", "back", "received"} <= {row.what for row in rows}
    assert [row.time_s for row in rows] == sorted(row.time_s for row in rows)
    assert all((row.time_s / TICK_S).is_integer() for row in rows)
    # Counted where it was scheduled, which it is not by its norm.
    assert sum(metrics["num_rejected"] for metrics in live[1]) > 0 or "max_scheduled" in CASES[case][1]
    first, last = (process.get_models(live[0][i])["global"] for i in (0, -1))
    assert max(np.abs(a - b).max() for a, b in zip(first, last, strict=True)) > 1e-3


@pytest.mark.parametrize(("case", "most"), [("periodic", 6), pytest.param("buffered", 9, marks=pytest.mark.slow)])
def test_who_stays_away_for_good_makes_no_models_be_kept(case, most, build, linear_spec):
    """Client 4 never comes, client 2 leaves in the first period and does not come back."""
    process = build(case)
    moves = [(0.25, 2, LEFT)]
    network = ScriptedNetwork(make_train(process, linear_spec), find_seconds, moves, present=range(4))
    live = run_live(process, lambda state, done: network if done == 0 else None, 3 * ROUNDS)
    state = live[0][-1]
    assert count_models(state) <= most < 3 * ROUNDS
    assert_twins(process, live, run_twin(process, live[2], 3 * ROUNDS))


def count_models(state):
    return len(state.models[0]) if hasattr(state, "models") else len(state.versions.models)


@pytest.mark.parametrize(("case", "first_version"), [("periodic", 1), ("buffered", 0)])
def test_seed_and_rate_go_by_the_start(case, first_version, build, linear_spec):
    """The seed by which of its starts it is, the rate by the version; what the twin is told is the same."""
    process = build(case)
    network = ScriptedNetwork(make_train(process, linear_spec), find_seconds, present=range(5))
    _, _, record = run_live(process, lambda state, done: network if done == 0 else None, 6)
    rate = {}
    for task in network.tasks:
        rate[derive_seed(2, "training", task.number, task.client).tobytes()] = task.learning_rate
        np.testing.assert_array_equal(task.seed, derive_seed(2, "training", task.number, task.client))
        assert task.learning_rate == np.float32(TRAINING.round_learning_rate(task.version - first_version + 1))
    assert len(rate) == len(network.tasks) and len(set(rate.values())) > 3
    starts = sorted((row.client, row.model_version) for rows in record.values() for row in rows if row.what == "start")
    newest = {(task.client, task.version) for task in network.tasks}
    assert newest <= set(starts)

    def look(inputs):
        told = [each.client for each in inputs if each.client.path]
        assert [rate[each.seed.tobytes()] for each in told] == [each.learning_rate for each in told]
        return process.run_round(inputs)

    run_twin(dataclasses.replace(process, run_round=look), record, 6)


def test_periods_by_hand(build, linear_spec):
    """T = 1 s. 0 takes 0.25 s, 1 takes 1.5 s, 2 is not there; 0 leaves at 1.125 s and is back at 1.5 s.

    Period 1: 2 is missed at the first tick, 0 is ready at 0.25 s and starts again at 1 s. Period 2: it leaves and comes
    back; 1 is ready at 1.5 s, the tick after it. Both start again at 2 s.
    """
    process = build("periodic", times=TrainingTimesConfig(max_training_s=1.0), period_fraction=1.0)
    seconds = {0: 0.25, 1: 1.5, 3: 0.5, 4: 8.0}
    network = ScriptedNetwork(
        make_train(process, linear_spec),
        lambda client, number: seconds[client],
        [(1.125, 0, LEFT), (1.5, 0, JOINED)],
        present=[0, 1, 3, 4],
    )
    _, metrics, record = run_live(process, lambda state, done: network if done == 0 else None, 2)
    first = [(row.time_s, row.client, row.what, row.model_version) for row in record[1]]
    assert first[:8] == [
        *((0.0, client, "start", 1) for client in range(5)),
        (TICK_S, 2, "dropped", 1),
        (0.25, 0, "ready", 1),
        (0.5, 3, "ready", 1),
    ]
    events = [(row.time_s, row.client, row.what) for row in record[2] if row.time_s < 2.0]
    assert events == [
        (1.125, 0, "dropped"),
        (1.5, 0, "back"),
        (1.5 + TICK_S, 1, "ready"),
        (1.5 + 2 * TICK_S, 3, "ready"),
    ]
    assert [row["num_ready"] for row in metrics] == [2, 2] and metrics[1]["max_age"] == 1
    assert [(row.client, row.model_version) for row in record[2] if row.what == "start"] == [(0, 3), (1, 3), (3, 3)]


def test_what_cannot_be_asked_or_repeated(build, build_algorithm, make_federation, linear_spec):
    process = build("periodic")
    network = ScriptedNetwork(make_train(process, linear_spec), find_seconds, present=range(5))
    _, _, record = run_live(process, lambda state, done: network if done == 0 else None, 2)
    twin = process.ask(RepeatedFrom(record))
    assert twin.list_work is None and process.list_work is not None
    state = twin.next(twin.next(twin.initialize()).state).state
    with pytest.raises(ConfigError, match="rounds=3: expected at most 2, where the record ends"):
        twin.next(state)
    with pytest.raises(ConfigError, match="waiting=synchronous: expected periodic"):
        build("periodic", waiting="synchronous").ask(RepeatedFrom(record))
    assert build_algorithm("fed_async", make_federation([6, 9]), TRAINING).ask is None


def average(results, weights):
    """The mean of updates of a single number."""
    ok = np.array([each.is_finite for each in results], np.float32)
    shares = weights * ok / max((weights * ok).sum(), 1e-9)
    deltas = [
        sum(s * a for s, a in zip(shares, rows, strict=True))
        for rows in zip(*(each.weights_delta for each in results), strict=True)
    ]
    return VersionedResult(tuple(deltas), ok, RoundTotals(0.0, 1.0, int((1 - ok).sum()), 0.0, 0.0))


def stand_in(start, seed, rate):
    """Not a training, but a function of all that one depends on."""
    deltas = tuple(np.float32(rate) * (np.float32(seed[0] % 7) - array) for array in start)
    return LocalResult(deltas, np.float32(1), np.float32(1), np.float32(1), np.bool_(np.isfinite(rate)))


def repeat(inputs):
    members = [each for each in inputs if each.client.path]
    results = [stand_in(each.start, each.client.seed, each.client.learning_rate) for each in members]
    results = [
        each if each.is_finite else each._replace(weights_delta=tuple(np.zeros_like(a) for a in each.weights_delta))
        for each in results
    ]
    return average(results, np.array([each.client.weight for each in members], np.float32))


TICKS = st.integers(1, 12)
SCRIPTS = st.fixed_dictionaries(
    {
        "ticks": st.lists(TICKS, min_size=7, max_size=7),
        "steps": st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), max_size=14),
        "present": st.sets(st.integers(0, 4), min_size=1),
        "rejected": st.sets(st.tuples(st.integers(0, 4), st.integers(1, 4)), max_size=4),
        "doubled": st.sets(st.integers(0, 4), max_size=2),
        "restart": st.integers(1, 6),
    }
)


@pytest.fixture(scope="module")
def simple_processes(build_algorithm, build_federation, tmp_path_factory):
    data = build_federation(tmp_path_factory.mktemp("data"), list(SIZES))
    # A period of eight ticks, so that much happens at one time.
    times = TrainingTimesConfig(max_training_s=16 * TICK_S)
    more = {"async_periodic": {**PERIODIC, "times": times, "period_fraction": 0.5}, "buffered": BUFFERED}
    made = [build_algorithm(name, data, TRAINING, **fields) for name, fields in more.items()]
    return [dataclasses.replace(process, run_round=repeat) for process in made]


@pytest.mark.parametrize("index", [0, 1])
@given(script=SCRIPTS)
@settings(max_examples=25)
def test_any_run_is_repeated(index, script, simple_processes):
    """Whoever comes, goes, or answers when, many things within a tick or two: the same rows, models and numbers."""
    process, ticks, present, time_s, moves = simple_processes[index], script["ticks"], set(script["present"]), 0, []
    there = set(present)
    for wait, client in script["steps"]:
        time_s += wait
        moves.append((time_s * TICK_S, client, LEFT if client in there else JOINED))
        there ^= {client}
    # In the end all are there, or a buffer might never be full.
    moves += [((time_s + 40) * TICK_S, client, JOINED) for client in range(5) if client not in there]
    seconds = lambda client, number: ticks[(client + 3 * number) % 7] * TICK_S
    more = {"doubled": script["doubled"], "rejected": script["rejected"]}
    train = lambda task: stand_in(task.start, task.seed, task.learning_rate)

    def open_network(state, done):
        if done not in (0, script["restart"]):
            return None
        now_s, here = get_time_s(state), set(present)
        for at_s, client, what in moves:
            if at_s <= now_s:
                (here.add if what == JOINED else here.discard)(client)
        return ScriptedNetwork(train, seconds, moves, here or {0}, now_s, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asked_devices, "average_updates", average)
        live = run_live(process, open_network, 8)
    assert_twins(process, live, run_twin(process, live[2], 8))
