"""CFL: when a cluster is cut, by hand; who goes where; and what it is without a cut."""

import dataclasses

import numpy as np
import pytest

from tff_algos.settings.aggregation import AggregationConfig
from tff_algos.settings.local_training import LocalTrainingConfig

ONE_STEP = LocalTrainingConfig(epochs=1, optimizer="sgd", learning_rate=1.0, batch_size=8)
SEVERAL_STEPS = LocalTrainingConfig(epochs=3, optimizer="sgd", learning_rate=0.3, batch_size=8)
ABSOLUTE = {"eps_1_multiple": 0, "eps_2_multiple": 0}


@pytest.fixture
def opposed(make_scalar_federation):
    """At the weight 0, whose logits are alike, client 0 steps by 1 and client 1 by -1/2; the mean by (2 - 1) / 4."""
    return make_scalar_federation([(2, 1, 2), (1, 0, 2)])


@pytest.mark.parametrize(
    ("fields", "is_cut"),
    [
        ({"eps_1": 0.2501, "eps_2": 0.9999}, True),
        ({"eps_1": 0.2499, "eps_2": 0.9999}, False),  # the mean still moves
        ({"eps_1": 0.2501, "eps_2": 1.0001}, False),  # nobody wants to move far
        ({"eps_1": 0.2501, "eps_2": 0.9999, "gamma_max": 1.0}, False),  # opposite directions have the gap 1
        ({"eps_1": 0.2501, "eps_2_multiple": 3.999}, True),  # of the largest mean so far, 1/4
        ({"eps_1": 0.2501, "eps_2_multiple": 4.001}, False),
        ({"eps_1_multiple": 1.001, "eps_2": 0.9999}, True),
        ({"eps_1_multiple": 0.999, "eps_2": 0.9999}, False),  # it is the largest so far
    ],
)
def test_the_conditions_of_a_cut_by_hand(build_algorithm, scalar_spec, opposed, fields, is_cut, run):
    process = build_algorithm("cfl", opposed, ONE_STEP, scalar_spec, **{**ABSOLUTE, **fields})
    (_, state), (metrics,) = run(process, 1)
    assert metrics["mean_update_norm"] == pytest.approx(0.25) and metrics["largest_update_norm"] == pytest.approx(1.0)
    assert metrics["num_clusters"] == 1 + is_cut and state.assignments.tolist() == [0, int(is_cut)]
    np.testing.assert_allclose(state.models[0].ravel(), [0.25] * (1 + is_cut))  # the mean is everybody's
    if is_cut:
        tree, leaves = state.own, [[0], [1], [0.0], [1.0, -1.0]]
        assert tree.largest.tolist() == pytest.approx([0.25, 0.25])
        assert [tree.clusters.tolist(), tree.rounds.tolist(), tree.models[0].ravel().tolist()] == leaves[:3]
        assert tree.directions.ravel().tolist() == leaves[3]


@pytest.fixture
def two_kinds(make_federation, relabel):
    """Nine clients, of whom 1, 4 and 8 have other labels; the last two take no part in training."""
    data = make_federation([40] * 9)
    relabel(data, [1, 4, 8])
    return dataclasses.replace(data, clients=data.clients[:7], new_clients=data.clients[7:])


@pytest.mark.parametrize("aggregator", ["mean", pytest.param("median", marks=pytest.mark.slow)])
def test_kinds_of_clients_part_and_new_ones_find_their_own(build_algorithm, two_kinds, linear_spec, aggregator, run):
    fields = {"client_weighting": "equal", "aggregation": AggregationConfig(aggregator)}
    process = build_algorithm("cfl", two_kinds, SEVERAL_STEPS, eps_1_multiple=0.8, gamma_max=0.5, **fields)
    states, rows = run(process, 8)
    assert process.client_model(states[0]) == ["cluster_0"] * 9
    assert process.summarize(states[-1])["cluster_sizes"] == [5, 2]
    kinds = [int(index in (1, 4, 8)) for index in range(9)]
    assert process.client_columns(states[-1])["cluster"] == kinds
    assert rows[-1]["bytes_up"] == rows[-1]["bytes_down"] == 7 * 60
    model = linear_spec.build()
    for cluster, shift in enumerate((0, 1)):
        model.set_weights(process.get_models(states[-1])[f"cluster_{cluster}"])
        assert np.mean(np.argmax(model(two_kinds.test_x), axis=1) == (two_kinds.test_y + shift) % 3) > 0.9


def test_who_breaks_goes_with_the_larger_part(build_algorithm, two_kinds, break_client, run):
    break_client(two_kinds, 4)
    process = build_algorithm("cfl", two_kinds, SEVERAL_STEPS, eps_1_multiple=0.8, gamma_max=0.5)
    (*_, state), rows = run(process, 8)
    assert state.assignments.tolist() == [0, 1, 0, 0, 0, 0, 0] and rows[-1]["num_rejected"] == 1
    assert all(np.isfinite(array).all() for array in state.models)


def test_one_client_and_clients_that_all_break_stay_together(build_algorithm, make_federation, break_client, run):
    data, fields = make_federation([5, 6]), {"eps_1_multiple": 9, "eps_2_multiple": 0}
    alone = dataclasses.replace(data, clients=data.clients[:1])
    assert run(build_algorithm("cfl", alone, SEVERAL_STEPS, **fields), 2)[1][-1]["num_clusters"] == 1
    for index in range(2):
        break_client(data, index)
    (*_, state), rows = run(build_algorithm("cfl", data, SEVERAL_STEPS, **fields), 2)
    assert rows[-1]["num_clusters"] == 1 and rows[-1]["num_rejected"] == 2
    assert state.own.largest.tolist() == [0]
