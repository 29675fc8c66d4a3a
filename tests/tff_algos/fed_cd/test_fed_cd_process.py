"""FedCD as a process, on a TFF worker: limit cases, single steps against NumPy, and the edges of its state."""

import dataclasses

import numpy as np
import psutil
import pytest
import tensorflow as tf
from small_runs import assert_close, assert_same, run

from tff_algos.fed_cd.config import FedCDConfig
from tff_algos.fed_cd.state import ServerState, delete_models, find_live, find_preferred
from tff_algos.rounds.aggregators import SumAggregator
from tff_algos.settings.aggregation import CompressionConfig, ServerStepConfig
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import stack_models

SGD = LocalTrainingConfig(epochs=2, optimizer="sgd", learning_rate=0.1, batch_size=4)
STEP = LocalTrainingConfig(epochs=1, optimizer="sgd", learning_rate=0.5, batch_size=100)  # one full batch


def round_to(array, bits):
    """Uniform quantization in NumPy."""
    low, step = array.min(), (array.max() - array.min()) / (2**bits - 1)
    return low + np.round((array - low) / step) * step


def test_what_travels_is_compressed_and_the_server_keeps_its_precision(build, linear_spec, descend):
    """One device, one full-batch step from Q(w): w + Q(trained - Q(w)); the clone is Q of that."""
    process = build([12], STEP, compression=CompressionConfig(bits=3), milestones=(1,))
    start = process.initialize()
    first = [array[0] for array in start.models]
    received = [round_to(first[0], 3), first[1]]  # the biases are all 0
    trained = descend(linear_spec, received, *process.clients.read_split(process.clients.clients[0], "train"), 0.5)
    expected = [old + round_to(new - got, 3) for old, new, got in zip(first, trained, received, strict=True)]
    state, (metrics,) = run(process, 1)
    assert_close([array[0] for array in state.models], expected, 1e-5)
    assert_close([array[1] for array in state.models], [round_to(array, 3) for array in expected], 1e-5)
    held = process.get_models(state)
    for name, slot in (("model_0", 0), ("model_1", 1)):  # what is tested, saved and exported is what the device has
        assert_close(held[name], [round_to(array[slot], 3) for array in state.models], 1e-5)
    assert any(np.abs(held["model_0"][i] - state.models[i][0]).max() > 1e-3 for i in (0, 1))
    sent = 5 + 2 + 2 * 8  # 12 and 3 weights at 3 bits, and the range of each tensor
    assert metrics["bytes_up"] == sent + 4 and metrics["bytes_down"] == 2 * sent


def test_a_parent_and_its_clone_part_without_noise(build):
    process = build([9, 12, 10], SGD, milestones=(1,))
    state, _ = run(process, 1)
    assert state.is_active.all() and state.scores.tolist() == [[1.0, 0.0]] * 3
    assert state.parents.tolist() == [-1, 0] and state.birth_rounds.tolist() == [0, 1]
    assert find_preferred(state).tolist() == [0, 0, 0]
    for array in state.models:
        np.testing.assert_array_equal(array[0], array[1])
    state, _ = run(process, 1, state)
    assert any((array[0] != array[1]).any() for array in state.models)
    assert (state.history[:, 1, :2] == -1).all() and (state.history[:, 1, 2] >= 0).all()
    assert (state.history[:, 0, 1:] >= 0).all(), "the parent keeps its evaluations"


FALLING = dataclasses.replace(STEP, learning_rate_steps=(2,))


@pytest.mark.parametrize(("schedule", "rates"), [("shared", [0.05, 0.05]), ("anew", [0.05, 0.5])])
def test_a_clone_shares_the_rounds_rate_or_begins_anew(build, linear_spec, descend, schedule, rates):
    """One device, a full-batch step a round at 0.5, a tenth after two: the clone of round 2 trains in round 3."""
    process = build([12], FALLING, milestones=(2,), clone_schedule=schedule)
    before, _ = run(process, 2)
    assert process.compute_learning_rates(before) == pytest.approx(rates)
    after, _ = run(process, 1, before)
    for slot, rate in enumerate(rates):
        start = [array[slot] for array in before.models]
        expected = descend(linear_spec, start, *process.clients.read_split(process.clients.clients[0], "train"), rate)
        assert_close([array[slot] for array in after.models], expected, 1e-5)
    pairs = process.describe_rates(before, np.array([0]))
    assert pairs == pytest.approx({"learning_rate_mean": sum(rates) / 2})
    if schedule == "anew":
        assert after.trained_rounds.tolist() == [3, 1] and after.trained_rounds.dtype == np.int32
    else:
        assert len(tf.nest.flatten(after)) == 10, "a checkpoint of an earlier version fits"


def test_only_rounds_in_which_a_model_got_an_average_count(build):
    """One device a round, each with a model of its own: one of the two counts on."""
    process = build([6, 9], FALLING, cohort_size=1, milestones=(8,), clone_schedule="anew")
    start = process.initialize()
    models = tuple(np.concatenate([array[:1], array[:1]]) for array in start.models)
    state = start._replace(models=models, is_active=np.eye(2, dtype=bool), scores=np.eye(2))
    state, _ = run(process, 5, state)
    assert state.trained_rounds.sum() == 5 and 0 < state.trained_rounds[0] < 5


def test_slots_are_never_reused_and_capacity_is_never_exceeded(build):
    process = build([9, 12, 30, 5], SGD, seed=3, milestones=(1, 3, 4), late_round=1, score_noise=0.1)
    config = process.config
    state, dead = process.initialize(), set()
    for round_num in range(1, 8):
        state, metrics = process.next(state)
        live = set(find_live(state).tolist())
        born = {int(slot) for slot in np.flatnonzero(state.birth_rounds == round_num)}
        assert live <= set(range(config.count_slots(round_num + 1)))
        assert not born & dead and metrics["live_models"] == len(live) <= config.capacity == 8
        assert all(state.parents[slot] == slot - config.count_slots(round_num) for slot in born)
        dead |= set(np.flatnonzero(state.birth_rounds >= 0).tolist()) - live
        assert set(process.get_models(state)) == {f"model_{slot}" for slot in live}
        assert state.is_active.any(axis=1).all(), "a device always has a model"
        for slot in set(range(8)) - live:
            assert all((array[slot] == 0).all() for array in state.models)
    assert dead, "something was deleted"
    summary = process.summarize(state)
    assert summary["num_models_made"] == 8 and summary["num_models_deleted"] == 8 - len(live)


@pytest.mark.parametrize(("weighting", "share"), [("scores", 0.25), ("equal", 0.5)])
def test_a_model_is_trained_by_the_cohort_members_that_have_it(build, linear_spec, descend, weighting, share):
    """Slot 0 on devices 0 and 1 with scores 0.2 and 0.6, slot 1 on devices 1 and 2 with scores 0: Eq. (1)."""
    process = build([6, 9, 12], STEP, milestones=(8,), weighting=weighting)
    models = [
        tuple(rng.normal(size=s).astype(np.float32) for s in ((4, 3), (3,)))
        for rng in map(np.random.default_rng, (1, 2))
    ]
    state = process.initialize()._replace(
        models=stack_models(models),
        scores=np.array([[0.2, 0.0], [0.6, 0.0], [0.0, 0.0]]),
        is_active=np.array([[True, False], [True, True], [False, True]]),
    )
    splits = [process.clients.read_split(client, "train") for client in process.clients.clients]
    trained = [[descend(linear_spec, model, *split, 0.5) for split in splits] for model in models]
    new_state, (metrics,) = run(process, 1, state)
    first = [share * a + (1 - share) * b for a, b in zip(trained[0][0], trained[0][1], strict=True)]
    second = [0.5 * a + 0.5 * b for a, b in zip(trained[1][1], trained[1][2], strict=True)]
    assert_close(new_state.models, stack_models([tuple(first), tuple(second)]), 1e-5)
    assert metrics["bytes_up"] == 4 * 64


def test_groups_of_contrary_labels_get_models_of_their_own(build, relabel):
    process = build([30] * 6, SGD, cohort_size=4, milestones=(2,), score_noise=0.01, late_round=6)
    relabel(process.clients, (3, 4, 5))
    for client in process.clients.clients:  # validation follows the new labels
        process.clients.read_split(client, "train")[1].tofile(f"{client.path}.validation.y")
    state, rows = run(process, 14)
    preferred = find_preferred(state)
    assert len(set(preferred[:3])) == len(set(preferred[3:])) == 1 and preferred[0] != preferred[3]
    assert rows[-1]["active_models"] == 6, "the late rule leaves each device its own"
    events = process.get_events(run(process, 2)[0])
    assert {row[2] for row in events} == {"cloned", "prefers"}
    assert [row[1:] for row in events if row[2] == "cloned"] == [(client, "cloned", 1) for client in range(6)]


def make_state(scores, is_active, round_num=1):
    """The state of a server whose model in slot m is m + 1."""
    scores, is_active = np.array(scores, np.float64), np.array(is_active, bool)
    num_clients, capacity = scores.shape
    return ServerState(
        round_num=np.int32(round_num),
        virtual_time_s=np.float64(0),
        models=(np.arange(1, capacity + 1, dtype=np.float32), np.ones((capacity, 2), np.float32)),
        scores=scores,
        history=np.where(is_active[..., np.newaxis], np.full((num_clients, capacity, 3), 7), -1),
        is_active=is_active,
        was_active=is_active,
        parents=np.full(capacity, -1, np.int32),
        birth_rounds=np.zeros(capacity, np.int32),
    )


BOTH = np.array([True, True])


def test_who_has_not_evaluated_deletes_nothing():
    has = [[True, True, True], [True, True, True]]
    state = delete_models(make_state([[0.5, 0.4, 0.1]] * 2, has), FedCDConfig(), np.array([False, True]))
    assert state.is_active.tolist() == [[True, True, True], [True, True, False]]
    np.testing.assert_allclose(state.scores, [[0.5, 0.4, 0.1], [5 / 9, 4 / 9, 0]])
    assert state.models[0].tolist() == [1, 2, 3] and (state.history[0] == 7).all()


def test_evaluation_by_a_cohort_of_all_is_evaluation_by_all(build):
    """Also in bytes: who trained in the last round has the newest models."""
    settings = {"milestones": (1,), "compression": CompressionConfig(bits=8)}
    (state, rows), (other, others) = (
        run(build([9, 12, 10], SGD, evaluated_devices=who, **settings), 3) for who in ("all", "cohort")
    )
    assert [pytest.approx(row) for row in rows] == others
    assert other.evaluated_rounds.tolist() == [3, 3, 3] and state.evaluated_rounds == ()
    for name in ("models", "scores", "history", "is_active"):
        assert_same(getattr(state, name), getattr(other, name))


def test_only_the_cohort_evaluates_and_fetches_what_it_lacks(build):
    """One device a round. After the clones of round 1 who has not been drawn since still prefers the first model."""
    process = build([9, 12, 10], SGD, cohort_size=1, milestones=(1,), evaluated_devices="cohort")
    state, last, one = process.initialize(), None, process.transport.model_bytes
    for num in range(1, 7):
        before = state
        state, metrics = process.next(state)
        (drawn,) = np.flatnonzero(state.evaluated_rounds == num)
        others = np.arange(3) != drawn
        number = 1 if num == 1 else int(before.is_active[drawn].sum())
        assert metrics["bytes_down"] == number * one * (1 if drawn == last else 2)
        assert_same(state.history[others], before.history[others])
        if num > 1:
            assert_same(state.scores[others], before.scores[others])
        assert (state.history[drawn, 0, -1] >= 0) and (find_preferred(state)[state.evaluated_rounds <= 1] == 0).all()
        last = drawn
    assert len(set(state.evaluated_rounds)) == 3, "draws of a seed, of which two follow each other or do not"


def test_the_server_keeps_a_model_as_long_as_one_device_does():
    """The deviation of 0.5, 0.4, 0.1 is 0.17: the first device deletes slot 2; nobody else has slots 1 and 2."""
    has = [[True, True, True], [True, False, False]]
    state = delete_models(make_state([[0.5, 0.4, 0.1], [1.0, 0.0, 0.0]], has), FedCDConfig(), BOTH)
    assert state.is_active.tolist() == [[True, True, False], [True, False, False]]
    np.testing.assert_allclose(state.scores, [[5 / 9, 4 / 9, 0], [1, 0, 0]])
    assert state.models[0].tolist() == [1, 2, 0] and state.models[1].tolist() == [[1, 1], [1, 1], [0, 0]]
    assert (state.history[0, :2] == 7).all() and (state.history[0, 2] == -1).all()
    has[1][2] = True  # the second device has slots 0 and 2, which are its two best
    state = delete_models(make_state([[0.5, 0.4, 0.1], [0.6, 0.0, 0.4]], has), FedCDConfig(), BOTH)
    assert state.is_active[:, 2].tolist() == [False, True] and state.models[0].tolist() == [1, 2, 3]


def test_devices_score_what_they_receive(build):
    """With steps of nothing the models stay, and each evaluation is of their 2-bit roundings, new in every round."""
    standing, compression = dataclasses.replace(STEP, learning_rate=1e-30), CompressionConfig(2, "stochastic")
    process = build([40, 40], standing, compression=compression)
    state, _ = run(process, 3)
    assert_close(state.models, process.initialize().models)
    counts = state.history[:, 0]
    assert len({tuple(column) for column in counts.T}) == 3, "the model itself would get the same count each time"


def test_models_that_the_memory_cannot_hold_are_refused(build, monkeypatch):
    """16 models of 60 bytes, 30 copies: 28,800 bytes."""
    memory = psutil.virtual_memory()._replace(available=28_799)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    milestones = (5, 15, 25, 30)
    with pytest.raises(ConfigError, match=r"milestones=5,15,25,30: expected fewer: 16 models .* need about 0.0 GB"):
        build([5, 5], SGD, milestones=milestones)
    memory = memory._replace(available=28_800)
    build([5, 5], SGD, milestones=milestones)


MOMENTUM = ServerStepConfig(momentum=0.5)


SLOTS = {"milestones": (1, 3)}  # four of them


def take_slot(arrays, slot):
    return [array[slot] for array in arrays]


def test_a_step_with_momentum_by_hand(build, linear_spec, descend):
    """One device: w1 = w0 + d1, and for parent and clone w2 = w1 + 0.5 d1 + d2, d being what the device's step adds."""
    process = build([12], STEP, server=MOMENTUM, **SLOTS)
    states = [process.initialize()]
    for _ in range(2):
        states.append(process.next(states[-1])[0])
    first, second = (take_slot(state.models, 0) for state in states[:2])
    trained = descend(linear_spec, second, *process.clients.read_split(process.clients.clients[0], "train"), 0.5)
    expected = [w1 + 0.5 * (w1 - w0) + (t - w1) for w0, w1, t in zip(first, second, trained, strict=True)]
    for slot in (0, 1):
        assert_close(take_slot(states[2].models, slot), expected, atol=1e-5)


def test_a_model_that_nobody_trains_is_not_carried_on_by_its_momentum(build):
    """Both devices have only slot 0 in round 2; slot 1 stays, its momentum too."""
    process = build([6, 9], STEP, server=MOMENTUM, **SLOTS)
    state, _ = process.next(process.initialize())
    only_first = np.tile([True, False, False, False], (2, 1))
    after, _ = process.next(state._replace(is_active=only_first, scores=only_first.astype(float)))
    assert_same(take_slot(after.server, 1), take_slot(state.server, 1))
    assert any((a[0] != b[0]).any() for a, b in zip(after.server, state.server, strict=True))


@dataclasses.dataclass(frozen=True, eq=False)
class CountingAggregator(SumAggregator):
    """The mean, with a count for each group of the rounds in which it had an update."""

    def initialize(self, num_groups):
        return np.zeros(num_groups, np.int32)

    def copy_groups(self, state, sources):
        return state[sources]

    def finish(self, values, weight, counts, sizes, state, round_num):
        aggregate = super().finish(values, weight, counts, sizes, state, round_num)
        return aggregate._replace(state=(state + aggregate.has_update).astype(np.int32))


def test_a_clone_goes_on_with_what_the_aggregator_has_of_its_parent(build):
    """Milestones after rounds 1 and 3. Slot 1 has rounds 1 and 3, since nobody has it in round 2; its clone as well."""
    process = build([6, 9], STEP, **SLOTS)
    process = dataclasses.replace(process, phase=dataclasses.replace(process.phase, aggregator=CountingAggregator()))
    state, _ = process.next(process.initialize())
    assert state.aggregator.tolist() == [1, 1, 0, 0]
    both = np.tile([True, True, False, False], (2, 1))
    first = np.tile([True, False, False, False], (2, 1))
    for is_active, counts in ((first, [2, 1, 0, 0]), (both, [3, 2, 3, 2])):
        state, _ = process.next(state._replace(is_active=is_active, scores=is_active / is_active.sum(axis=1)[:, None]))
        assert state.aggregator.tolist() == counts
