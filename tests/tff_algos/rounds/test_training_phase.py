"""A phase of a round: what is summed on the way and what comes as a list is the same, and who counts."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tff_algos.client.cohort import NOBODY
from tff_algos.client.local_training import reject_if_not_finite
from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.rounds.aggregators import GroupwiseAggregator, ListedMean, SumAggregator
from tff_algos.rounds.attacks import Attack
from tff_algos.rounds.list_aggregator import ListAggregator
from tff_algos.rounds.noise_sources import SeededNoise
from tff_algos.rounds.privacy_accounting import Accounting
from tff_algos.rounds.private_aggregation import PrivateAggregator
from tff_algos.rounds.training_phase import Sent, SlotInput, TrainingPhase
from tff_algos.rounds.transport import Transport
from tff_algos.settings.aggregation import AttackConfig, CompressionConfig
from tff_algos.settings.update_privacy import UpdatePrivacyConfig

SHAPES = ((2,), ())
TRANSPORT = Transport(CompressionConfig(), (False, False), 0, 12, (False, False))
MODELS = (np.zeros((1, 2), np.float32), np.zeros(1, np.float32))
BLANK = SlotInput(NOBODY, (np.zeros(3, np.float32),))
KEEPING_BLANK = BLANK._replace(kept=(np.float32(0),))


class Recording(ListAggregator):
    """The first update; notes what it is called with."""

    def __init__(self):
        self.calls = []

    def combine(self, updates, weights, state):
        self.calls.append((updates.tolist(), weights.tolist()))
        return updates[0], state, {"aggregator_number": len(updates)}


class Work:
    """A client's update is what it is told; beside it sends one number, and keeps how often it was asked."""

    def __init__(self):
        self.num_traced = 0

    def __call__(self, told):
        self.num_traced += 1
        (values,) = told.own
        is_there = tf.strings.length(told.client.path) > 0
        deltas = [values[:2] + told.models[0][0], values[2]]
        result = reject_if_not_finite(deltas, values[2], tf.where(is_there, 4.0, 0.0))
        kept = tuple(each + 1 for each in told.kept)
        return Sent(ClientUpdate(result, told.client.group, told.client.weight), tf.where(is_there, values[0], 0), kept)


def make_phase(aggregator):
    return TrainingPhase(Work(), TRANSPORT, aggregator, SHAPES)


# One for all tests, so that its work is traced once.
SUMMED, LISTED = make_phase(SumAggregator()), make_phase(ListedMean())


def make_inputs(rows, groups=None, weights=None, kept=()):
    """A client for each row of three numbers."""
    groups, weights = groups or [0] * len(rows), weights or [1.0] * len(rows)
    return [
        SlotInput(
            NOBODY._replace(path=f"client_{i}", group=np.int32(group), weight=np.float32(weight)),
            (np.asarray(row, np.float32),),
            kept,
        )
        for i, (row, group, weight) in enumerate(zip(rows, groups, weights, strict=True))
    ]


def draw_inputs(num_clients, num_groups=3, kept=()):
    rng = np.random.default_rng(num_clients)
    groups = rng.integers(0, num_groups, num_clients).tolist()
    return make_inputs(rng.normal(size=(num_clients, 3)), groups, rng.uniform(0.1, 9, num_clients).tolist(), kept)


def get_bytes(nested):
    return [np.asarray(leaf).tobytes() for leaf in tf.nest.flatten(nested)]


@pytest.mark.parametrize("num_clients", [1, 9])
def test_summed_and_listed_are_the_same_bit_for_bit(tff_runtime, num_clients):
    """Nine clients have ten places; three groups, one of them perhaps without a client, and a rejected update."""
    inputs = draw_inputs(num_clients)
    if num_clients > 2:
        # A rejected update among others, which sums in the graph and on the host must leave out alike.
        inputs[2].own[0][1] = np.nan
    summed = SUMMED.run(MODELS, inputs, 3, (), 1, blank=BLANK)
    kept = (np.float32(0),)
    keeping = [each._replace(kept=kept) for each in inputs]
    outcomes = [
        LISTED.run(MODELS, inputs, 3, (), 1, blank=BLANK),
        SUMMED.run(MODELS, keeping, 3, (), 1, blank=KEEPING_BLANK),  # a list, since clients keep something
    ]
    for listed in outcomes:
        assert get_bytes(listed.aggregate.update) == get_bytes(summed.aggregate.update)
        assert listed.aggregate.has_update.tolist() == summed.aggregate.has_update.tolist()
        assert get_bytes(listed.totals) == get_bytes(summed.totals)
        assert get_bytes(listed.sums) == get_bytes(summed.sums)
    assert int(summed.totals.num_rejected) == (num_clients > 2)
    assert summed.aggregate.update[0].shape == (3, 2) and summed.aggregate.update[1].shape == (3,)
    assert summed.kept == [] and [float(row[0]) for row in outcomes[1].kept] == [1.0] * num_clients


@pytest.mark.parametrize("phase", [SUMMED, LISTED, make_phase(GroupwiseAggregator(Recording(), SHAPES, ""))])
@pytest.mark.parametrize("blank", [BLANK, KEEPING_BLANK])
def test_a_round_of_nobody_changes_nothing(tff_runtime, phase, blank):
    """Of whatever kind, what is summed is the zeros of an empty slot, and nobody keeps anything."""
    outcome = phase.run(MODELS, [], 3, (), 1, blank=blank)
    assert outcome.aggregate.has_update.tolist() == [False] * 3
    assert [array.shape for array in outcome.aggregate.update] == [(3, 2), (3,)]
    assert not any(np.any(array) for array in outcome.aggregate.update)
    assert get_bytes(outcome.sums) == [np.float32(0).tobytes()] and outcome.kept == []
    assert float(outcome.totals.num_trained) == int(outcome.totals.num_rejected) == 0


@pytest.mark.parametrize("blank", [BLANK, KEEPING_BLANK])
def test_a_private_round_of_nobody_is_noise_alone(tff_runtime, blank):
    """What is known of private sums needs rounds in which nobody was drawn, with clients that keep something, too."""
    accounting = Accounting(1e-5, 10, 1, "bernoulli")
    config = UpdatePrivacyConfig(epsilon=2.0)
    phase = make_phase(PrivateAggregator(config, accounting, SeededNoise(1), noise_multiplier=1.0))
    outcome = phase.run(MODELS, [], 1, phase.aggregator.initialize(1), 1, blank=blank)
    assert outcome.aggregate.has_update.all() and np.any(outcome.aggregate.update[0])
    assert outcome.aggregate.metrics["num_clipped"] == 0


def test_empty_places_and_rejected_updates_never_reach_a_list(tff_runtime):
    phase = make_phase(GroupwiseAggregator(Recording(), SHAPES, ""))
    rows = [[1, 2, 3], [4, np.inf, 6], [7, 8, 9], [1, 0, 0], [np.nan, 0, 0]]
    inputs = make_inputs(rows, [0, 0, 0, 1, 2], [2.0, 3.0, 4.0, 0.5, 1.0], (np.float32(5),))
    outcome = phase.run(MODELS, inputs, 4, (), 1, min_slots=8, blank=KEEPING_BLANK)
    assert phase.aggregator.inner.calls == [([[1, 2, 3], [7, 8, 9]], [2, 4]), ([[1, 0, 0]], [0.5])]
    assert outcome.aggregate.has_update.tolist() == [True, True, False, False]
    assert outcome.aggregate.update[0].tolist() == [[1, 2], [1, 0], [0, 0], [0, 0]]
    assert outcome.aggregate.metrics == {"aggregator_number": 1.5}
    assert int(outcome.totals.num_rejected) == 2 and float(outcome.totals.num_trained) == 3 * 4
    assert [float(row[0]) for row in outcome.kept] == [6.0] * 5


@pytest.mark.parametrize("is_listed", [False, True])
def test_places_beyond_the_cohort_change_nothing(tff_runtime, is_listed):
    phase = LISTED if is_listed else SUMMED
    inputs = draw_inputs(3)
    few = phase.run(MODELS, inputs, 3, (), 1, blank=BLANK)
    many = phase.run(MODELS, inputs, 3, (), 1, min_slots=8, blank=BLANK)
    assert get_bytes(few.aggregate.update) == get_bytes(many.aggregate.update)
    assert get_bytes(few[1:3]) == get_bytes(many[1:3])


@pytest.mark.usefixtures("monkeypatch")  # with which it traces its own
@pytest.mark.parametrize("is_listed", [False, True])
def test_a_computation_serves_all_rounds_of_its_size(tff_runtime, is_listed):
    """A client's work is traced once for each size of what the server sends, whatever the round and the cohort."""
    phase = make_phase(ListedMean() if is_listed else SumAggregator())
    phase.run(MODELS, draw_inputs(3, 1), 1, (), 1, blank=BLANK)
    # TFF may trace a function more than once to make one computation.
    first = phase.work.num_traced
    assert first >= 1
    for round_num in (2, 3):
        models = tuple(array + np.float32(round_num) for array in MODELS)
        phase.run(models, draw_inputs(4, 1), 1, (), round_num, blank=BLANK)
    assert phase.work.num_traced == first and len(phase._computations) == 1
    phase.run(tuple(np.repeat(array, 2, axis=0) for array in MODELS), draw_inputs(3, 2), 2, (), 4, blank=BLANK)
    assert len(phase._computations) == 2


def test_single_updates_can_be_had_without_an_aggregate(tff_runtime):
    sent = SUMMED.collect(MODELS, draw_inputs(3), (), min_slots=8, blank=BLANK)
    expected = [each.own[0][:2].tolist() for each in draw_inputs(3)]
    assert [each.update.result.weights_delta[0].tolist() for each in sent] == expected


def test_a_mean_of_forged_updates_is_made_on_the_host(tff_runtime):
    """Updates 1 and 3 with weights 1 and 3; the second client sends -2 * 3: (1 - 18) / 4."""
    attack = Attack(AttackConfig("sign_flip", attack_scale=2.0), np.array([1]), frozenset(["client_1"]))
    phase, inputs = dataclasses.replace(SUMMED, attack=attack), make_inputs([[1] * 3, [3] * 3], weights=[1, 3])
    outcome = phase.run(MODELS, inputs, 1, (), 1, blank=BLANK)
    np.testing.assert_allclose(outcome.aggregate.update[1], [-4.25])
    assert outcome.sums == 4  # what else they send is honest
    flipped = dataclasses.replace(phase, attack=dataclasses.replace(attack, config=AttackConfig("label_flip")))
    assert phase.is_forged and not flipped.is_forged and not SUMMED.is_forged
