"""Rounds whose clients are asked, and their twins, whose clients are those of a record."""

import dataclasses

import hypothesis
import numpy as np
import pytest
import tree
from hypothesis import strategies as st
from scripted_network import ScriptedNetwork
from small_runs import assert_same, flatten, silence

from tff_algos.client.cohort import ClientInput
from tff_algos.client.local_training import LocalResult
from tff_algos.rounds.aggregators import SumAggregator
from tff_algos.rounds.asked_rounds import NOT_PLAIN, AskedProcess, find_obstacle
from tff_algos.rounds.network import JOINED, LEFT, TICK_S
from tff_algos.rounds.partners import AskedBy, RepeatedFrom, Terms
from tff_algos.rounds.training_phase import SlotInput
from tff_algos.settings.aggregation import AGGREGATORS, AggregationConfig, AttackConfig, CompressionConfig
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.update_privacy import UpdatePrivacyConfig

TRAINING = LocalTrainingConfig(epochs=1, batch_size=4, optimizer="sgd", learning_rate=0.3, learning_rate_decay=0.9)
SIZES = (6, 9, 12, 5, 7, 8, 4)
SPEEDS = np.array([0.125, 0.5, 0.875, 0.25, 1.75, 0.625, 0.375])  # whole ticks
TERMS = Terms()
EVERYONE = range(len(SIZES))
# Of these, clients of a network cannot do their part.
BY_SIMULATION = {
    "compression": "its updates are compressed",
    "quantization": "its updates are compressed",
    "dp_tree": "its updates are private",
    "secure": "the server sees only sums of its updates",
}
FORGED = AttackConfig(attack="sign_flip", attack_share=0.1)


@pytest.fixture
def build(build_algorithm, make_federation):
    """A function (aggregator, fields of the config) -> process."""

    def make(aggregator="mean", attack=None, algorithm="fedavg", **fields):
        aggregation = AggregationConfig(aggregator=aggregator, attacks=attack or AttackConfig())
        federation = make_federation(list(SIZES))
        return build_algorithm(algorithm, federation, TRAINING, aggregation=aggregation, **fields)

    return make


def collect(process, models, inputs):
    """What clients answer, by a graph that is the same whatever the server does with it."""
    phase = dataclasses.replace(process.phase, aggregator=SumAggregator(), attack=None)
    return [each.update.result for each in phase.collect(models, inputs, ())]


def ask(process, terms=TERMS, spoil=lambda task, result: result, time_s=0.0, **script):
    """(the process whose clients a script's network has, the network); clients train as simulated ones."""

    def train(task):
        told = ClientInput(
            process.clients.clients[task.client].path, task.seed, np.int32(0), np.float32(1), task.learning_rate
        )
        return spoil(task, collect(process, tuple(array[np.newaxis] for array in task.start), [SlotInput(told)])[0])

    script = {"present": EVERYONE, **script}
    network = ScriptedNetwork(train, lambda client, number: SPEEDS[client], time_s=time_s, **script)
    return process.ask(AskedBy(network, terms)), network


def run(process, num_rounds, state=None):
    """(states, metrics, record) of the first rounds, or of those after a state."""
    states, metrics, record = [process.initialize() if state is None else state], [], {}
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


@pytest.mark.parametrize(
    "aggregator",
    ["mean", "multi_krum", *(pytest.param(name, marks=pytest.mark.slow) for name in ("median", "fedadam"))],
)
def test_asked_rounds_are_those_of_the_simulation(build, aggregator):
    attack = FORGED if aggregator == "multi_krum" else None
    given = {"algorithm": aggregator} if aggregator == "fedadam" else {"aggregator": aggregator}
    simulated = build(attack=attack, cohort_size=5, **given)
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


def list_aggregators():
    """Those of a network; all but three take long, since each is traced anew."""
    for name in AGGREGATORS:
        if name not in BY_SIMULATION:
            yield pytest.param(name, marks=() if name in ("mean", "median", "krum") else pytest.mark.slow)


@pytest.mark.parametrize("aggregator", list_aggregators())
def test_who_does_not_answer_is_as_good_as_not_there(build, aggregator):
    """Client 4 is too slow for the deadline; the same as an update that is not finite."""
    process = build(aggregator)
    live, metrics, record = run(ask(process, Terms(deadline_s=1.0))[0], 2)
    state = process.initialize()
    for _ in range(2):
        invited = process.invite(state, np.arange(len(SIZES)))
        inputs = [SlotInput(each.told, each.own) for each in invited]
        models, round_num = process.distribute(state), int(state.round_num) + 1
        results = collect(process, models, inputs)
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
QUICK_SCRIPTS = ("more", "leaving")


def assert_twin(process, states, metrics, record):
    """Repeated from its record, a run has the same states and metrics, to the bit."""
    twins, of_twin, again = run(process.ask(RepeatedFrom(record)), len(record))
    assert again == record
    for state, twin in zip(states, twins, strict=True):
        assert_same(tree.flatten(state), tree.flatten(twin))
    for ours, theirs in zip(metrics, of_twin, strict=True):
        np.testing.assert_equal(ours, theirs)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK_SCRIPTS else pytest.mark.slow) for name in SCRIPTS]
)
def test_the_twin_repeats_a_run(build, name):
    """Times, clients, bytes and models; of the answers of a script to the same bits as a list would give."""
    script, terms = SCRIPTS[name]
    process = build("median", cohort_size=5 if name == "more" else 0)
    states, metrics, record = run(ask(process, terms, **script)[0], 4)
    assert_twin(process, states, metrics, record)
    times = [row["virtual_time_s"] for row in metrics]
    assert times == sorted(times) and all((time / TICK_S).is_integer() for time in times)


@pytest.mark.parametrize(
    "given",
    [
        {"attack": FORGED},
        {"algorithm": "fedadam", "cohort_size": 5},
        *(
            pytest.param(given, marks=pytest.mark.slow)
            for given in (
                {},
                {"aggregator": "multi_krum", "attack": FORGED},
                {"cohort_size": 1, "participation": "bernoulli"},  # some rounds are of nobody
            )
        ),
    ],
    ids=["forged mean", "fedadam", "mean", "multi_krum", "bernoulli"],
)
def test_the_twin_repeats_whatever_the_server_does(build, given):
    """A mean is summed in the graph by the twin, on the host of what came."""
    process = build(**given)
    asked, _ = ask(process, Terms(more_asked=1, deadline_s=1.0), rejected=[(2, 1)])
    assert_twin(process, *run(asked, 3))


def test_a_server_that_begins_anew_goes_on_from_the_state(build):
    process = build(algorithm="fedadam")
    states, metrics, record = run(ask(process)[0], 3)
    again, network = ask(process, time_s=metrics[0]["virtual_time_s"])
    later, of_later, rest = run(again, 2, states[1])
    assert_same(tree.flatten(later[-1]), tree.flatten(states[-1]))
    assert of_later == metrics[1:] and list(rest.values()) == [record[2], record[3]]
    assert network.started_s == metrics[0]["virtual_time_s"]


def test_an_answer_of_an_earlier_round_does_not_count_for_this_one(build):
    """Client 4 leaves in round 1, is back at once and trains for it until 2 s, in round 2, for which it is asked."""
    process = build()
    asked, _ = ask(process, moves=[(0.125, 4, LEFT), (0.25, 4, JOINED)])
    states, metrics, record = run(asked, 2)
    assert list_rows(record[1], "dropped") == [(4, "dropped")] and metrics[0]["virtual_time_s"] == 0.875
    assert metrics[1]["num_clients"] == 7 and metrics[1]["virtual_time_s"] == 0.875 + 1.75
    assert_twin(process, states, metrics, record)


def test_an_answer_that_is_not_finite_is_rejected_though_the_network_took_it(build):
    """Left to the aggregator, it would count among the round's clients, and its twin would send a finite one."""
    process = build()
    asked, _ = ask(process, spoil=lambda task, result: make_not_finite(result) if task.client == 2 else result)
    states, metrics, record = run(asked, 2)
    assert [(row["num_clients"], row["num_rejected"], row["num_missing"]) for row in metrics] == [(6, 1, 0)] * 2
    assert list_rows(record[1], "rejected") == [(2, "rejected")]
    assert_twin(process, states, metrics, record)


@pytest.fixture
def stubbed(build):
    """A process, and a function (task) that answers at once that nothing was learned."""
    process = build(cohort_size=4)

    def train(task):
        zero = np.float32(0)
        return LocalResult(tuple(np.zeros_like(array) for array in task.start), zero, zero, zero, np.bool_(True))

    return process, train


TIMES = st.integers(1, 64).map(lambda number: number / 16)


@hypothesis.given(
    speeds=st.lists(TIMES, min_size=len(SIZES), max_size=len(SIZES)),
    moves=st.lists(st.tuples(TIMES, st.integers(1, len(SIZES) - 1), st.sampled_from([LEFT, JOINED])), max_size=8),
    rejected=st.sets(st.tuples(st.integers(0, len(SIZES) - 1), st.integers(1, 2)), max_size=4),
    doubled=st.sets(st.integers(0, len(SIZES) - 1), max_size=2),
    terms=st.builds(Terms, st.integers(1, 5), st.integers(0, 3), TIMES, st.just(1)),
)
@hypothesis.settings(
    deadline=None, max_examples=10, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
def test_whatever_clients_do_the_rows_of_a_round_hold(stubbed, speeds, moves, rejected, doubled, terms):
    process, train = stubbed
    network = ScriptedNetwork(
        train, lambda client, _: speeds[client], sorted(moves), EVERYONE, doubled=doubled, rejected=rejected
    )
    asked, end_s = process.ask(AskedBy(network, terms)), 0.0
    state = asked.initialize()
    for _ in range(3):
        state, metrics = asked.next(state)
        rows = asked.get_events(state)
        found = {what: [row.client for row in rows if row.what == what] for what in {row.what for row in rows}}
        ended = [client for what in ("ready", "rejected", "dropped", "missing") for client in found.get(what, [])]
        assert sorted(ended) == sorted(found["start"])  # each that was asked ends in one way, once
        assert len(found["start"]) <= 4 + terms.more_asked
        ready, received = sorted(found.get("ready", [])), found.get("received", [])
        assert received == (ready if len(ready) >= terms.least_answers else [])
        assert len(ready) <= 4
        times = [row.time_s for row in rows]
        assert times == sorted(times) and times[0] >= end_s and times[-1] <= times[0] + terms.deadline_s
        end_s = times[-1]
        assert metrics["virtual_time_s"] == end_s and metrics["num_clients"] == len(received)
        assert not network.pending.keys() & set(found.get("missing", []))  # withdrawn


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


def test_what_cannot_be_asked_says_why(build):
    plain = build()
    for aggregator in AGGREGATORS:
        config = dataclasses.replace(plain.config, aggregation=AggregationConfig(aggregator=aggregator))
        process = dataclasses.replace(plain, config=config)
        assert find_obstacle(process) == BY_SIMULATION.get(aggregator, "")
    for algorithm in ("fedavg", "fine_tuning"):
        compressed = build(algorithm=algorithm, compression=CompressionConfig(bits=8))
        assert compressed.ask is None and find_obstacle(compressed) == "its updates are compressed"
    privacy = UpdatePrivacyConfig(epsilon=8.0)
    # By noise of the seed, as in simulation.
    assert find_obstacle(build(privacy=privacy, client_weighting="equal")) == "its updates are private"
    assert find_obstacle(build(algorithm="moon")) == NOT_PLAIN


def test_fine_tuning_is_not_done_by_the_process_that_asks(build):
    process = build(algorithm="fine_tuning")
    asked, _ = ask(process.process)
    assert process.is_personal and not process.ask(asked.partners).is_personal
    assert isinstance(process.ask(asked.partners), AskedProcess)
    assert process.ask(asked.partners).process is process.process


CLIP_NORM = 0.01  # updates are several times as long
PRIVACY = UpdatePrivacyConfig(epsilon=50.0, clip_norm=CLIP_NORM, rounds=4, is_asked=True)


@pytest.fixture
def build_private(build):
    """A function (fields of the config) -> process whose clients can be asked, with private updates."""
    return lambda **fields: build(**{"privacy": PRIVACY, "client_weighting": "equal", **fields})


def take_step(asked, is_silent=True):
    """(what a round adds to the model, its metrics, its rows), without noise if silent."""
    state = asked.initialize()
    state = state._replace(inner=silence(state.inner)) if is_silent else state
    output = asked.next(state)
    change = flatten(output.state.inner.models) - flatten(state.inner.models)
    return change, output.metrics, asked.get_events(output.state)


def test_without_noise_a_private_round_is_the_mean_of_clipped_updates_over_all_clients(build_private):
    """Client 4 is too slow: the sum is still divided by 7."""
    process = build_private()
    change, metrics, _ = take_step(ask(process, Terms(deadline_s=1.0))[0])
    state = process.initialize()
    inputs = [SlotInput(each.told) for each in process.invite(state, np.array([0, 1, 2, 3, 5, 6]))]
    updates = [flatten(each.weights_delta) for each in collect(process, process.distribute(state), inputs)]
    expected = sum(update * min(CLIP_NORM / np.linalg.norm(update), 1) for update in updates) / 7
    np.testing.assert_allclose(change, expected, atol=1e-7)  # models are float32
    assert metrics["num_clients"] == 6 and metrics["num_missing"] == 1


def test_who_is_missing_changes_a_private_sum_by_no_more_than_the_clip_norm(build_private):
    everyone, _, _ = take_step(ask(build_private())[0])
    for client in (0, 4, 6):
        others, _, _ = take_step(ask(build_private(), present=set(EVERYONE) - {client})[0])
        assert CLIP_NORM * 0.999 < np.linalg.norm(7 * (everyone - others)) < CLIP_NORM * (1 + 1e-4)


@pytest.mark.parametrize(
    ("terms", "fields"),
    [(Terms(least_answers=7), {}), (Terms(more_asked=2), {"cohort_size": 5})],
    ids=["least_answers", "more_asked"],
)
def test_who_was_rejected_changes_nothing_but_its_own_part_of_a_private_sum(build_private, terms, fields):
    """Neither is a round dropped nor is another client's answer taken in its place."""
    process = build_private(**fields)
    for client in (0, 3):  # the first of a cohort to answer
        (whole, of_whole, _), (rest, of_rest, rows) = (
            take_step(ask(process, terms, rejected=rejected)[0]) for rejected in ([], [(client, 1)])
        )
        size = fields.get("cohort_size", 7)
        assert np.linalg.norm(size * (whole - rest)) == pytest.approx(CLIP_NORM, rel=1e-3)
        assert of_rest["num_clients"] == of_whole["num_clients"] - 1 == size - 1
        assert of_rest["num_rejected"] == 1 and list_rows(rows, "rejected") == [(client, "rejected")]


@pytest.mark.slow  # a graph is made of the round of nobody
def test_a_private_round_of_too_few_answers_is_noise_alone(build_private):
    process = build_private()
    asked, _ = ask(process, Terms(least_answers=7, deadline_s=1.0))
    assert not take_step(asked)[0].any()
    noise = take_step(asked, is_silent=False)[0]
    deviation = process.aggregator.noise_multiplier * CLIP_NORM / 7
    # 15 numbers: their mean square has a standard error of 0.37.
    assert 0.01 < np.mean(np.square(noise / deviation)) < 1 + 8 * 0.37


def test_a_private_run_is_charged_each_round_as_one_of_everybody_and_ends_in_time(build_private):
    process = build_private(cohort_size=3)
    states, metrics, _ = run(ask(process)[0], 4)
    accounting, multiplier = process.aggregator.accounting, process.aggregator.noise_multiplier
    everyone = dataclasses.replace(accounting, cohort_size=7, is_seen=False)
    expected = [everyone.compute_epsilon(multiplier, rounds) for rounds in (1, 2, 3, 4)]
    assert [row["epsilon_spent"] for row in metrics] == expected and expected[-1] <= 50.0
    # A run that goes on has another process, and the noise of the state.
    again = ask(build_private(cohort_size=3, privacy=dataclasses.replace(PRIVACY, rounds=9)))[0]
    assert [again.is_spent(state) for state in states] == [False] * 4 + [True]


def test_no_private_round_comes_again(build_private):
    """As after a kill, which the record of a checkpoint would let be repeated."""
    first, second = (take_step(ask(build_private())[0], is_silent=False)[0] for _ in range(2))
    assert not np.any(first == second)


def test_without_noise_the_clip_norm_of_a_private_run_goes_by_who_was_left_whole(build_private):
    """All are clipped: b = 1/2 + (0 - 7 / 2) / 7 = 0, so that S grows by exp(0.2 / 2)."""
    privacy = dataclasses.replace(PRIVACY, clipping="adaptive", clip_count_noise=1.0)
    asked, _ = ask(build_private(privacy=privacy))
    state = asked.initialize()
    state = asked.next(state._replace(inner=silence(state.inner))).state
    assert state.inner.aggregator.clip_norms[0] == pytest.approx(CLIP_NORM * np.exp(0.1))
