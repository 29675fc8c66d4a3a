"""Rounds whose clients are asked, and their twins, whose clients are those of a record."""

import numpy as np
import pytest
import tree
from scripted_network import ScriptedNetwork
from small_runs import assert_same

from tff_algos.client.cohort import ClientInput
from tff_algos.rounds.asked_rounds import find_obstacle
from tff_algos.rounds.network import JOINED, LEFT, TICK_S
from tff_algos.rounds.partners import AskedBy, RepeatedFrom, Terms
from tff_algos.rounds.training_phase import SlotInput
from tff_algos.settings.aggregation import AGGREGATORS, AggregationConfig, AttackConfig
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.local_training import LocalTrainingConfig

TRAINING = LocalTrainingConfig(epochs=1, batch_size=4, optimizer="sgd", learning_rate=0.3, learning_rate_decay=0.9)
SIZES = (6, 9, 12, 5, 7, 8, 4)
SPEEDS = np.array([0.125, 0.5, 0.875, 0.25, 1.75, 0.625, 0.375])  # whole ticks
TERMS = Terms()
EVERYONE = range(len(SIZES))


@pytest.fixture
def build(build_algorithm, make_federation):
    """A function (aggregator, fields of the config) -> process."""

    def make(aggregator="mean", attack=None, algorithm="fedavg", **fields):
        aggregation = AggregationConfig(aggregator=aggregator, attacks=attack or AttackConfig())
        federation = make_federation(list(SIZES))
        return build_algorithm(algorithm, federation, TRAINING, aggregation=aggregation, **fields)

    return make


def ask(process, terms=TERMS, **script):
    """(the process whose clients a script's network has, the network); clients train as simulated ones."""

    def train(task):
        told = ClientInput(
            process.clients.clients[task.client].path, task.seed, np.int32(0), np.float32(1), task.learning_rate
        )
        models = tuple(array[np.newaxis] for array in task.start)
        state = process.initialize()
        return process.phase.collect(models, [SlotInput(told)], state.aggregator)[0].update.result

    script = {"present": EVERYONE, **script}
    network = ScriptedNetwork(train, lambda client, number: SPEEDS[client], **script)
    return process.ask(AskedBy(network, terms)), network


def run(process, num_rounds):
    """(states, metrics, record) of the first rounds."""
    states, metrics, record = [process.initialize()], [], {}
    for round_num in range(1, num_rounds + 1):
        output = process.next(states[-1])
        states.append(output.state)
        metrics.append(output.metrics)
        record[round_num] = process.get_events(output.state)
    return states, metrics, record


def list_rows(record, *whats):
    return [(row.client, row.what) for row in record if not whats or row.what in whats]


def assert_near(found, expected):
    for a, b in zip(found.models, expected.models, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("aggregator", ["mean", "median", "multi_krum"])
def test_asked_rounds_are_those_of_the_simulation(build, aggregator):
    attack = AttackConfig(attack="sign_flip", attack_share=0.1) if aggregator == "multi_krum" else None
    simulated = build(aggregator, attack, cohort_size=5)
    asked, network = ask(simulated)
    live, of_live, record = run(asked, 3)
    states, of_simulated, _ = run(simulated, 3)
    assert_near(live[-1].inner, states[-1])
    cohorts = [sorted({row.client for row in rows if row.what == "received"}) for rows in record.values()]
    assert cohorts == [simulated.choose_cohort(state)[1].tolist() for state in states[:3]]
    seeds = {(task.client, task.number): task.seed.tolist() for task in network.tasks}
    for each in simulated.invite(states[1], np.array(cohorts[1])):
        assert seeds[each.index, 2] == each.told.seed.tolist()
    for ours, theirs in zip(of_live, of_simulated, strict=True):
        assert ours["num_clients"] == 5 and ours["bytes_up"] == theirs["bytes_up"]
        assert ours.get("num_attackers") == theirs.get("num_attackers")
        assert ours["train_loss"] == pytest.approx(theirs["train_loss"], rel=1e-5)


def make_not_finite(result):
    """As local training gives it where the update is not finite."""
    zero, deltas = np.float32(0), tuple(np.zeros_like(delta) for delta in result.weights_delta)
    return result._replace(
        weights_delta=deltas, squared_norm=zero, loss_sum=zero, num_trained=zero, is_finite=np.bool_(False)
    )


@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_who_does_not_answer_is_as_good_as_not_there(build, aggregator):
    """Client 4 is too slow for the deadline; the same as an update that is not finite."""
    process = build(aggregator)
    live, metrics, record = run(ask(process, Terms(deadline_s=1.0))[0], 2)
    state = process.initialize()
    for _ in range(2):
        invited = process.invite(state, np.arange(len(SIZES)))
        inputs = [SlotInput(each.told, each.own) for each in invited]
        models, round_num = process.distribute(state), int(state.round_num) + 1
        results = [each.update.result for each in process.phase.collect(models, inputs, state.aggregator)]
        results[4] = make_not_finite(results[4])
        outcome = process.phase.receive(results, inputs, 1, state.aggregator, round_num)
        state = process.conclude(state, state, np.arange(len(SIZES)), invited, outcome, 0.0, (0, 0), 0).state
    assert_near(live[-1].inner, state)
    assert [row["num_missing"] for row in metrics] == [1, 1] and metrics[-1]["virtual_time_s"] == 2.0
    assert list_rows(record[1], "missing") == [(4, "missing")]


SCRIPTS = {
    "all": ({}, Terms()),
    "slow": ({}, Terms(deadline_s=0.5)),
    "more": ({}, Terms(more_asked=2)),
    "too_few": ({}, Terms(least_answers=6, deadline_s=0.875)),
    "rejected": ({"rejected": [(2, 1), (5, 3)]}, Terms()),
    "leaving": ({"moves": [(0.0625, 3, LEFT), (0.5, 3, JOINED), (3.0, 1, LEFT), (4.0, 1, JOINED)]}, Terms()),
    "doubled": ({"doubled": [0, 1]}, Terms(deadline_s=1.0)),
    "late_start": (
        {"present": (0, 1), "moves": [(2.0, each, JOINED) for each in (2, 3, 4, 5, 6)]},
        Terms(6.0, 0, 9, 5),
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_twin_repeats_a_run(build, name):
    """Times, clients, bytes and models; of the answers of a script to the same bits as a list would give."""
    script, terms = SCRIPTS[name]
    process = build("median", cohort_size=5 if name == "more" else 0)
    states, metrics, record = run(ask(process, terms, **script)[0], 4)
    twins, of_twin, again = run(process.ask(RepeatedFrom(record)), 4)
    assert again == record
    for state, twin in zip(states, twins, strict=True):
        assert_same(tree.flatten(state.inner), tree.flatten(twin.inner))
    for ours, theirs in zip(metrics, of_twin, strict=True):
        np.testing.assert_equal(ours, theirs)
    times = [row["virtual_time_s"] for row in metrics]
    assert times == sorted(times) and all((time / TICK_S).is_integer() for time in times)


def test_of_more_than_the_cohort_the_first_answers_count(build):
    process = build(cohort_size=5)
    _, metrics, record = run(ask(process, Terms(more_asked=2))[0], 1)
    assert list_rows(record[1], "received") == [(each, "received") for each in (0, 1, 3, 5, 6)]
    assert list_rows(record[1], "missing") == [(2, "missing"), (4, "missing")]
    assert metrics[0]["num_asked"] == 7 and metrics[0]["virtual_time_s"] == 0.625
    model_bytes = process.transport.model_bytes
    assert (metrics[0]["bytes_down"], metrics[0]["bytes_up"]) == (7 * model_bytes, 5 * model_bytes)


def test_of_too_few_answers_the_model_stays(build):
    process = build()
    states, metrics, _ = run(ask(process, Terms(least_answers=7, deadline_s=1.0))[0], 1)
    assert_same(states[1].inner.models, states[0].inner.models)
    assert metrics[0]["num_clients"] == 0 and metrics[0]["bytes_up"] == 6 * process.transport.model_bytes
    assert np.isnan(metrics[0]["train_loss"]) and states[1].inner.round_num == 1


def test_a_record_that_ends_early_says_how_many_rounds_it_has(build):
    process = build()
    record = run(ask(process)[0], 1)[2]
    twin = process.ask(RepeatedFrom(record))
    state = twin.next(twin.initialize()).state
    with pytest.raises(ConfigError, match="rounds=2: expected at most 1, as the record has"):
        twin.next(state)


def test_who_can_be_asked(build):
    for algorithm in ("fedavg", "fedadam", "fedyogi", "fedavgm"):
        assert not find_obstacle(build(algorithm=algorithm))
    for algorithm in ("ditto", "moon", "fednova", "scaffold"):
        assert find_obstacle(build(algorithm=algorithm)).startswith("its clients do more than train")
