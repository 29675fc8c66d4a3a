"""The oracle: its reductions, a round by hand, groups that nobody is drawn from, and who gets which model."""

import dataclasses

import numpy as np
import pytest
from small_runs import assert_close

from datasets.federated_data import Archetypes
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.local_only.config import LocalOnlyConfig
from tff_algos.local_only.process import build_local_only_process
from tff_algos.oracle.config import OracleConfig
from tff_algos.oracle.process import build_oracle_process
from tff_algos.protocol import COMMON_METRICS
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.update_privacy import UpdatePrivacyConfig

BATCHES = LocalTrainingConfig(epochs=2, batch_size=4, optimizer="sgd", learning_rate=0.1)
ONE_STEP = LocalTrainingConfig(epochs=1, batch_size=100, optimizer="sgd", learning_rate=1.0)
# Three archetypes in two meta-archetypes.
KINDS = Archetypes(("a", "b", "c"), (0, 1, 1), (0, 1, 0, 2))


@pytest.fixture
def build():
    """A function (spec, data, archetypes, training, fields of the config) -> process."""

    def build(spec, data, archetypes, training, **fields):
        known = dataclasses.replace(data, archetypes=archetypes)
        return build_oracle_process(spec, known, OracleConfig(training, **fields), 2)

    return build


@pytest.fixture
def data(tff_runtime, make_federation):
    return make_federation([9, 4, 14, 6])


def test_one_group_is_fed_avg_to_the_byte(build, data, linear_spec, run, get_bytes):
    same = Archetypes(("all",), (0,), (0,) * 4)
    fed_avg = build_fed_avg_process(linear_spec, data, FedAvgConfig(BATCHES, cohort_size=3), 2)
    (*_, expected), rows = run(fed_avg)
    (*_, state), own = run(build(linear_spec, data, same, BATCHES, cohort_size=3))
    assert get_bytes(state.models) == get_bytes(expected.models)
    assert [{name: row[name] for name in COMMON_METRICS} for row in own] == [
        {name: row[name] for name in COMMON_METRICS} for row in rows
    ]


def test_groups_of_one_client_are_local_training(build, data, linear_spec, run):
    alone = Archetypes(tuple("abcd"), (0,) * 4, (0, 1, 2, 3))
    process = build(linear_spec, data, alone, BATCHES)
    local = build_local_only_process(linear_spec, data, LocalOnlyConfig(BATCHES), 2)
    state, expected = run(process, 2)[0][-1], run(local, 2)[0][-1]
    for (_, own), (_, other) in zip(
        process.personalize(state, data.clients), local.personalize(expected, data.clients), strict=True
    ):
        assert_close(own, other, atol=1e-6)


def test_a_round_by_hand(build, make_scalar_federation, scalar_spec, tff_runtime, run):
    """At w = 0 a client's gradient is (1/2 - y) x, so at a rate of 1 its update is (y - 1/2) x.

    Updates: 1/2, 1, 3/2, -1/2 with 1, 2, 3, 4 examples. Archetype a: (1/2 + 3 * 3/2) / 4; b: 1; c: -1/2.
    Its meta-archetype has (2 * 1 - 4 * 1/2) / 6 = 0.
    """
    data = make_scalar_federation([(1, 1, 1), (2, 1, 2), (3, 1, 3), (1, 0, 4)])
    states, rows = run(build(scalar_spec, data, KINDS, ONE_STEP), 1)
    assert states[1].models[0].ravel() == pytest.approx([1.25, 1.0, -0.5], abs=1e-6)
    process = build(scalar_spec, data, KINDS, ONE_STEP, groups="meta_archetype")
    (_, state), (row,) = run(process, 1)
    assert state.models[0].ravel() == pytest.approx([1.25, 0.0], abs=1e-6)
    assert process.client_model(state) == ["group_0", "group_1", "group_0", "group_1"]
    assert row["bytes_down"] == row["bytes_up"] == rows[0]["bytes_up"] == 4 * 4


def test_a_group_that_nobody_is_drawn_from_keeps_its_model(build, data, linear_spec, fix_cohort, run):
    process = build(linear_spec, data, KINDS, BATCHES, cohort_size=2)
    fix_cohort([1, 3])
    before, after = run(process, 1)[0]
    moved = [not np.array_equal(before.models[0][group], after.models[0][group]) for group in range(3)]
    assert moved == [False, True, True]


def test_an_update_that_is_not_finite_stays_out_of_its_group(
    build, make_scalar_federation, scalar_spec, tff_runtime, run
):
    data = make_scalar_federation([(1, 1, 1), (2, 1, 2), (np.inf, 1, 3), (1, 0, 0)])
    (_, state), (row,) = run(build(scalar_spec, data, KINDS, ONE_STEP), 1)
    assert state.models[0].ravel() == pytest.approx([0.5, 1.0, 0.0], abs=1e-6) and row["num_rejected"] == 1


def test_cohorts_can_have_as_many_of_each_group(build, data, linear_spec):
    process = build(linear_spec, data, KINDS, BATCHES, cohort_size=3, participation="stratified")
    state = process.initialize()
    cohorts = [process.choose_cohort(state._replace(round_num=np.int32(number)))[1] for number in range(20)]
    assert {tuple(sorted(process.groups[cohort])) for cohort in cohorts} == {(0, 1, 2)}
    assert {tuple(cohort) for cohort in cohorts} == {(0, 1, 3), (1, 2, 3)}


def test_data_without_known_groups_are_refused(make_federation, linear_spec):
    with pytest.raises(ConfigError, match=r"^groups=archetype: expected another --algo, since the data know no groups"):
        build_oracle_process(linear_spec, make_federation([3, 4]), OracleConfig(), 0)
    with pytest.raises(ConfigError, match=r"^participation=stratified: expected fixed or bernoulli, since the data"):
        FedAvgConfig(participation="stratified").check_archetypes(None)


def test_a_draw_by_group_is_not_private():
    private = UpdatePrivacyConfig(epsilon=8.0)
    with pytest.raises(ConfigError, match=r"^participation=stratified: expected fixed or bernoulli, whose part in"):
        FedAvgConfig(participation="stratified", client_weighting="equal", privacy=private)
