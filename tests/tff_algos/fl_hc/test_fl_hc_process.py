"""FL+HC as a process, on a TFF worker."""

import numpy as np
import pytest

from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.fl_hc import process as fl_hc_process
from tff_algos.fl_hc.config import FLHCConfig
from tff_algos.fl_hc.process import build_fl_hc_process
from tff_algos.local_training_config import LocalTrainingConfig

SGD = LocalTrainingConfig(epochs=1, optimizer="sgd", learning_rate=0.1, batch_size=4)
SIZES = [9, 12, 30, 3, 17]


def run(process, num_rounds):
    state = process.initialize()
    for _ in range(num_rounds):
        state, metrics = process.next(state)
    return state, metrics


def test_one_cluster_is_fed_avg(tff_runtime, make_federation, linear_spec):
    data = make_federation(SIZES)
    config = FLHCConfig(SGD, clustering_round=1, num_clusters=1)
    state, _ = run(build_fl_hc_process(linear_spec, data, config, seed=2), 3)
    expected, _ = run(build_fed_avg_process(linear_spec, data, FedAvgConfig(SGD), seed=2), 3)
    for trained, other in zip(state.models, expected.models, strict=True):
        np.testing.assert_allclose(trained, other, atol=1e-6)


def relabel(data, clients):
    """Gives these clients labels that contradict the others': class c becomes c + 1."""
    for index in clients:
        shard = data.clients[index]
        _, y = data.read_split(shard, "train")
        ((y + 1) % 3).astype(np.int32).tofile(shard.path + ".train.y")


@pytest.mark.parametrize("fields", [{"num_clusters": 2}, {"distance_threshold": 0.5}])
def test_clients_with_contradicting_labels_part_and_get_models_of_their_own(
    tff_runtime, make_federation, linear_spec, fields
):
    data = make_federation([40] * 6)
    relabel(data, [1, 4])
    training = LocalTrainingConfig(optimizer="sgd", learning_rate=0.3, batch_size=8, epochs=3)
    process = build_fl_hc_process(linear_spec, data, FLHCConfig(training, clustering_round=2, **fields), seed=2)
    before, metrics = run(process, 2)
    assert metrics["num_clusters"] == 1 and process.client_model(before) == ["cluster_0"] * 6
    state, metrics = run(process, 5)
    assert state.assignments.tolist() == [0, 1, 0, 0, 1, 0]
    assert process.client_columns(state)["cluster"] == [0, 1, 0, 0, 1, 0]
    model = linear_spec.build()
    for name, shift in (("cluster_0", 0), ("cluster_1", 1)):
        model.set_weights(process.get_models(state)[name])
        assert np.mean(np.argmax(model(data.test_x), axis=1) == (data.test_y + shift) % 3) > 0.9


def test_a_cluster_trains_alone(tff_runtime, make_federation, linear_spec):
    """From the clustering on, a cluster's model is FedAvg among its members from the global model."""
    data = make_federation([40] * 4)
    relabel(data, [3])
    training = LocalTrainingConfig(optimizer="sgd", learning_rate=0.3, batch_size=40, epochs=3)
    process = build_fl_hc_process(linear_spec, data, FLHCConfig(training, num_clusters=2), seed=2)
    global_state, _ = run(process, 1)
    state, _ = process.next(global_state)
    assert state.assignments.tolist() == [0, 0, 0, 1]
    x, y = data.read_split(data.clients[3], "train")
    weights = [w[0] for w in global_state.models]
    for _ in range(3):  # full-batch steps of softmax regression, in NumPy
        logits = x @ weights[0] + weights[1]
        probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        error = (probabilities - np.eye(3)[y]) / len(y)
        weights = [weights[0] - 0.3 * x.T @ error, weights[1] - 0.3 * error.sum(axis=0)]
    np.testing.assert_allclose(state.models[0][1], weights[0], atol=1e-5)


def test_the_clustering_round_costs_two_exchanges(tff_runtime, make_federation, linear_spec):
    process = build_fl_hc_process(linear_spec, make_federation(SIZES), FLHCConfig(SGD, num_clusters=2), seed=2)
    state, first = process.next(process.initialize())
    state, second = process.next(state)
    _, third = process.next(state)
    assert first["bytes_up"] == third["bytes_up"] == 5 * 60 and second["bytes_up"] == 2 * 5 * 60
    times = first["virtual_time_s"], second["virtual_time_s"], third["virtual_time_s"]
    assert times == pytest.approx([times[0] * n for n in (1, 3, 4)])


def test_updates_fetched_in_parts_give_the_same_clusters(tff_runtime, make_federation, linear_spec, monkeypatch):
    data = make_federation(SIZES)
    whole, _ = run(build_fl_hc_process(linear_spec, data, FLHCConfig(SGD, num_clusters=3), seed=2), 2)
    monkeypatch.setattr(fl_hc_process, "_MAX_RESULT_BYTES", 130)  # two clients of 60 bytes a call
    parts, _ = run(build_fl_hc_process(linear_spec, data, FLHCConfig(SGD, num_clusters=3), seed=2), 2)
    assert whole.assignments.tolist() == parts.assignments.tolist()
    np.testing.assert_array_equal(whole.models[0], parts.models[0])
