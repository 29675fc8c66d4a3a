"""FL+HC as a process, on a TFF worker."""

import numpy as np
import pytest
from small_runs import assert_close, run

from tff_algos.rounds import training_phase
from tff_algos.settings.local_training import LocalTrainingConfig

SGD = LocalTrainingConfig(epochs=1, optimizer="sgd", learning_rate=0.1, batch_size=4)
SEVERAL_STEPS = LocalTrainingConfig(optimizer="sgd", learning_rate=0.3, batch_size=8, epochs=3)
SIZES = [9, 12, 30, 3, 17]
NINE_SIZES = [*SIZES, 8, 21, 6, 13]  # padded to ten places


@pytest.fixture
def build(build_algorithm):
    """A function (data, training, fields of the config) -> process that makes two clusters, if not said otherwise."""

    def build(data, training=SGD, **fields):
        return build_algorithm("fl_hc", data, training, **(fields or {"distance_multiple": 0, "num_clusters": 2}))

    return build


@pytest.mark.parametrize(
    "fields",
    [
        {"distance_multiple": 0, "num_clusters": 2},
        {"distance_multiple": 0, "distance_threshold": 0.5},
        {"distance_multiple": 0.8},
    ],
)
def test_clients_with_contradicting_labels_part_and_get_models_of_their_own(
    build, make_federation, linear_spec, relabel, fields
):
    """Nine clients are padded to ten places, which belong to no cluster."""
    data = make_federation([40] * 9)
    relabel(data, [1, 4, 8])
    process = build(data, SEVERAL_STEPS, clustering_round=2, **fields)
    before, rows = run(process, 2)
    assert rows[-1]["num_clusters"] == 1 and process.client_model(before) == ["cluster_0"] * 9
    state, _ = run(process, 3, before)
    assert process.client_columns(state)["cluster"] == state.assignments.tolist() == [0, 1, 0, 0, 1, 0, 0, 0, 1]
    model = linear_spec.build()
    for name, shift in (("cluster_0", 0), ("cluster_1", 1)):
        model.set_weights(process.get_models(state)[name])
        assert np.mean(np.argmax(model(data.test_x), axis=1) == (data.test_y + shift) % 3) > 0.9


def test_a_cluster_trains_alone_at_the_rate_of_its_round(build, make_federation, linear_spec, descend):
    """Two clients, full batch: one step at 0.4 down both gradients, then each at 0.2 down its own from there."""
    data = make_federation([12, 12])
    training = LocalTrainingConfig(1, optimizer="sgd", learning_rate=0.4, batch_size=12, learning_rate_decay=0.5)
    process = build(data, training)
    splits = [data.read_split(client, "train") for client in data.clients]
    start = process.get_models(process.initialize())["cluster_0"]
    steps = [descend(linear_spec, start, *split, 0.4) for split in splits]
    together = [np.mean(weights, axis=0) for weights in zip(*steps, strict=True)]
    state, _ = run(process, 2)
    for name, split in zip(("cluster_0", "cluster_1"), splits, strict=True):
        expected = descend(linear_spec, together, *split, 0.2)
        assert_close(process.get_models(state)[name], expected, atol=1e-6)


def test_clients_that_break_join_the_largest_cluster_and_are_counted(build, make_federation, relabel, break_client):
    """Clients 1, 3 and 4 have other labels than 0 and 5; 2 is broken. It sends two updates in the second round."""
    data = make_federation([40] * 6)
    relabel(data, [1, 3, 4])
    break_client(data, 2)
    process = build(data, SEVERAL_STEPS)
    state, (first, second) = run(process, 2)
    assert state.assignments.tolist() == [0, 1, 1, 1, 1, 0]
    assert process.summarize(state) == {"num_clusters": 2, "cluster_sizes": [2, 4]}
    assert (first["num_rejected"], second["num_rejected"], second["num_clusters"]) == (1, 2, 2)
    assert all(np.isfinite(weights).all() for weights in state.models)


def test_updates_fetched_in_parts_give_the_same_clusters(build, make_federation):
    process = build(make_federation(SIZES), distance_multiple=0, num_clusters=3)
    whole, _ = run(process, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_phase, "_MAX_RESULT_BYTES", 130)  # two clients of 60 bytes a call
        parts, _ = run(process, 2)
    assert whole.assignments.tolist() == parts.assignments.tolist()
    np.testing.assert_array_equal(whole.models[0], parts.models[0])
