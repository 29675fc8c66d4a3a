"""What the server's step and the aggregator keep for each model of FedCD, on a TFF worker."""

import dataclasses

import numpy as np
from small_runs import assert_close, assert_same

from tff_algos.rounds.aggregators import SumAggregator
from tff_algos.settings.aggregation import ServerStepConfig
from tff_algos.settings.local_training import LocalTrainingConfig

STEP = LocalTrainingConfig(epochs=1, optimizer="sgd", learning_rate=0.5, batch_size=100)  # one full batch
MOMENTUM = ServerStepConfig(momentum=0.5)


SLOTS = {"milestones": (1, 3)}  # four of them


def take_slot(arrays, slot):
    return [array[slot] for array in arrays]


def test_a_clone_goes_on_with_the_momentum_of_its_parent(build):
    """After the milestone of round 1 slots 0 and 1 have the same momentum, and the empty slots have none."""
    process = build([12], STEP, server=MOMENTUM, **SLOTS)
    start = process.initialize()
    state, _ = process.next(start)
    assert_same(take_slot(state.server, 1), take_slot(state.server, 0))
    assert any((a[0] != b[0]).any() for a, b in zip(state.server, start.server, strict=True))
    for slot in (2, 3):
        assert_same(take_slot(state.server, slot), take_slot(start.server, slot))


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
