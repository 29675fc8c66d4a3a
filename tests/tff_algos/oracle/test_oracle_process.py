"""The oracle: a round by hand, groups that nobody is drawn from, and who gets which model."""

import dataclasses

import numpy as np
import pytest

from datasets.federated_data import Archetypes
from tff_algos.settings.local_training import LocalTrainingConfig

BATCHES = LocalTrainingConfig(epochs=2, batch_size=4, optimizer="sgd", learning_rate=0.1)
ONE_STEP = LocalTrainingConfig(epochs=1, batch_size=100, optimizer="sgd", learning_rate=1.0)
# Three archetypes in two meta-archetypes.
KINDS = Archetypes(("a", "b", "c"), (0, 1, 1), (0, 1, 0, 2))


@pytest.fixture
def build(build_algorithm):
    """A function (data, training, spec, fields of the config) -> process of clients of these kinds."""

    def build(data, training, *spec, **fields):
        return build_algorithm("oracle", dataclasses.replace(data, archetypes=KINDS), training, *spec, **fields)

    return build


@pytest.fixture
def data(make_federation):
    return make_federation([9, 4, 14, 6])


def test_a_round_by_hand(build, make_scalar_federation, scalar_spec, run):
    """At w = 0 a client's gradient is (1/2 - y) x, so at a rate of 1 its update is (y - 1/2) x.

    Updates: 1/2, 1, 3/2, -1/2 with 1, 2, 3, 4 examples. Archetype a: (1/2 + 3 * 3/2) / 4; b: 1; c: -1/2.
    Its meta-archetype has (2 * 1 - 4 * 1/2) / 6 = 0.
    """
    data = make_scalar_federation([(1, 1, 1), (2, 1, 2), (3, 1, 3), (1, 0, 4)])
    states, rows = run(build(data, ONE_STEP, scalar_spec), 1)
    assert states[1].models[0].ravel() == pytest.approx([1.25, 1.0, -0.5], abs=1e-6)
    process = build(data, ONE_STEP, scalar_spec, groups="meta_archetype")
    (_, state), (row,) = run(process, 1)
    assert state.models[0].ravel() == pytest.approx([1.25, 0.0], abs=1e-6)
    assert process.client_model(state) == ["group_0", "group_1", "group_0", "group_1"]
    assert row["bytes_down"] == row["bytes_up"] == rows[0]["bytes_up"] == 4 * 4


def test_a_group_that_nobody_is_drawn_from_keeps_its_model(build, data, fix_cohort, run):
    process = build(data, BATCHES, cohort_size=2)
    fix_cohort([1, 3])
    before, after = run(process, 1)[0]
    moved = [not np.array_equal(before.models[0][group], after.models[0][group]) for group in range(3)]
    assert moved == [False, True, True]


def test_an_update_that_is_not_finite_stays_out_of_its_group(build, make_scalar_federation, scalar_spec, run):
    data = make_scalar_federation([(1, 1, 1), (2, 1, 2), (np.inf, 1, 3), (1, 0, 0)])
    (_, state), (row,) = run(build(data, ONE_STEP, scalar_spec), 1)
    assert state.models[0].ravel() == pytest.approx([0.5, 1.0, 0.0], abs=1e-6) and row["num_rejected"] == 1


def test_cohorts_can_have_as_many_of_each_group(build, data):
    process = build(data, BATCHES, cohort_size=3, participation="stratified")
    state = process.initialize()
    cohorts = [process.choose_cohort(state._replace(round_num=np.int32(number)))[1] for number in range(20)]
    assert {tuple(sorted(process.groups[cohort])) for cohort in cohorts} == {(0, 1, 2)}
    assert {tuple(cohort) for cohort in cohorts} == {(0, 1, 3), (1, 2, 3)}
