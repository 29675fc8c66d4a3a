"""IFCA: both options by hand, who finds which model, and who does not count."""

import dataclasses

import numpy as np
import pytest
from small_runs import run

from tff_algos.settings.local_training import LocalTrainingConfig

RATE = 0.5
ONE_STEP = LocalTrainingConfig(epochs=1, steps=1, optimizer="sgd", learning_rate=RATE, batch_size=8)
SEVERAL_STEPS = LocalTrainingConfig(epochs=3, optimizer="sgd", learning_rate=0.3, batch_size=8)
OPPOSITE = (np.array([[[1.0]], [[-1.0]]], np.float32),)  # the weights 1 and -1, stacked
# (x, y, number of such examples): the first and the last are right with a weight above 0, the second with one below.
CLIENTS = [(1, 1, 2), (1, 0, 4), (2, 1, 6)]


def step(weight, x, y):
    """What one step on the cross-entropy of the logits (0, w x) adds to w."""
    return -RATE * (1 / (1 + np.exp(-weight * x)) - y) * x


@pytest.mark.parametrize(("averaging", "divisors"), [("models", (2 + 6, 4)), ("gradients", (2 + 4 + 6, 2 + 4 + 6))])
def test_a_round_by_hand(build_algorithm, scalar_spec, make_scalar_federation, averaging, divisors):
    """Clients 0 and 2 choose the weight 1, client 1 chooses -1; option I divides by the weight of all."""
    fields = {"num_models": 2, "averaging": averaging}
    process = build_algorithm("ifca", make_scalar_federation(CLIENTS), ONE_STEP, scalar_spec, **fields)
    state, [metrics] = run(process, 1, process.initialize()._replace(models=OPPOSITE))
    moves = [n * step(weight, x, y) for (x, y, n), weight in zip(CLIENTS, (1, -1, 1), strict=True)]
    expected = [1 + (moves[0] + moves[2]) / divisors[0], -1 + moves[1] / divisors[1]]
    np.testing.assert_allclose(state.models[0].ravel(), expected, rtol=1e-6)
    assert state.own.tolist() == [0, 1, 0]
    assert (metrics["bytes_down"], metrics["bytes_up"]) == (3 * 2 * 4, 3 * 4)
    assert (metrics["num_clusters"], metrics["num_changed"]) == (2, 0)


def test_who_changes_its_model_is_counted_and_a_broken_model_is_nobodys_choice(
    build_algorithm, scalar_spec, make_scalar_federation
):
    """Client 1 had chosen what is now the weight 1, client 2 had not taken part; then the other weight is NaN."""
    process = build_algorithm("ifca", make_scalar_federation(CLIENTS), ONE_STEP, scalar_spec, num_models=2)
    before = process.initialize()._replace(models=OPPOSITE, own=np.array([0, 0, -1], np.int32))
    assert process.client_model(before) == ["model_0", "model_1", "model_0"]  # by their loss, whatever they had
    assert process.summarize(before) == {"cluster_sizes": [2, 1]}
    state, [metrics] = run(process, 1, before)
    assert metrics["num_changed"] == 1 and before.own.tolist() == [0, 0, -1]
    broken = state._replace(models=(np.array([[[np.nan]], [[-1.0]]], np.float32),))
    assert process.client_columns(broken) == {"cluster": [1, 1, 1]}
    state, [metrics] = run(process, 1, broken)
    assert (metrics["num_clusters"], metrics["num_changed"], metrics["num_rejected"]) == (1, 2, 0)
    assert np.isfinite(state.models[0][1]).all()


@pytest.mark.parametrize("dealt_rounds", [0, 1])
def test_clients_with_contradicting_labels_find_models_of_their_own(
    build_algorithm, make_federation, linear_spec, relabel, dealt_rounds
):
    """So do clients that were in no cohort yet, and the last two, which take no part in training."""
    data = make_federation([40] * 9)
    relabel(data, [1, 4, 8])
    data = dataclasses.replace(data, clients=data.clients[:7], new_clients=data.clients[7:])
    fields = {"num_models": 2, "cohort_size": 6, "dealt_rounds": dealt_rounds}
    process = build_algorithm("ifca", data, SEVERAL_STEPS, **fields)
    first, _ = run(process)
    state, rows = run(process, 4, first)
    trained = first.own[first.own >= 0]
    assert len(trained) == 6 and (not dealt_rounds or sorted(trained) == [0, 0, 0, 1, 1, 1])
    names = process.client_model(state)
    own, others = names[1], names[0]
    assert own != others and [name == own for name in names] == [index in (1, 4, 8) for index in range(9)]
    assert rows[-1]["num_clusters"] == 2 and rows[-1]["num_changed"] == 0
    assert process.takes_new_clients and len(list(process.personalize(state, data.new_clients))) == 2
    model = linear_spec.build()
    for name, shift in ((own, 1), (others, 0)):
        model.set_weights(process.get_models(state)[name])
        assert np.mean(np.argmax(model(data.test_x), axis=1) == (data.test_y + shift) % 3) > 0.9
