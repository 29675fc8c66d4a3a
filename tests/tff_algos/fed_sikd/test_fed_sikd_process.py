"""FedSiKD as a process, on a TFF worker: its equations, its reductions to FedAvg, its edges."""

import dataclasses

import numpy as np
import pytest

from datasets.federated_data import Preprocessing
from tff_algos.config_fields import ConfigError
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.fed_sikd.process import build_fed_sikd_process, compute_round_costs
from tff_algos.local_training_config import LocalTrainingConfig
from tff_algos.process import COMMON_METRICS

SGD = LocalTrainingConfig(epochs=1, optimizer="sgd", learning_rate=0.1, batch_size=4)
SIZES = [9, 12, 30, 3, 17]


def make_config(**fields):
    return FedSiKDConfig(**{"student": SGD, "teacher_training": SGD, "num_clusters": 2, **fields})


def run(process, num_rounds=1):
    state = process.initialize()
    for _ in range(num_rounds):
        state, metrics = process.next(state)
    return state, metrics


@pytest.mark.parametrize("num_clusters", [1, 2])
def test_without_distillation_and_weighted_by_examples_it_is_fed_avg(
    tff_runtime, make_federation, linear_spec, num_clusters
):
    """Cluster means weighted by their examples, of members weighted by theirs, are the mean over all examples."""
    data = make_federation(SIZES)
    config = make_config(label_weight=1.0, weighting="examples", num_clusters=num_clusters)
    state, metrics = run(build_fed_sikd_process(linear_spec, data, config, seed=5), 3)
    expected, _ = run(build_fed_avg_process(linear_spec, data, FedAvgConfig(SGD), seed=5), 3)
    for trained, stacked in zip(state.student, expected.models, strict=True):
        np.testing.assert_allclose(trained, stacked[0], atol=1e-6)
    assert metrics["num_clusters"] == num_clusters and np.isnan(metrics["teacher_accuracy"])


def test_one_cluster_without_distillation_is_fed_avg_with_equal_weights(tff_runtime, make_federation, linear_spec):
    data = make_federation(SIZES)
    config = make_config(label_weight=1.0, num_clusters=1)
    state, _ = run(build_fed_sikd_process(linear_spec, data, config, seed=5), 3)
    equal = FedAvgConfig(SGD, client_weighting="equal")
    expected, _ = run(build_fed_avg_process(linear_spec, data, equal, seed=5), 3)
    for trained, stacked in zip(state.student, expected.models, strict=True):
        np.testing.assert_allclose(trained, stacked[0], atol=1e-6)


def test_the_average_is_equal_in_a_cluster_and_then_over_clusters(tff_runtime, make_federation, linear_spec):
    """The students' updates, each from a federation of one client, averaged by hand."""
    data = make_federation(SIZES)
    process = build_fed_sikd_process(linear_spec, data, make_config(label_weight=1.0), seed=5)
    start = process.initialize()
    updates = []
    for client in data.clients:
        # The seed of a client's training is derived from its index, so it must keep its place: the others get no say.
        alone = dataclasses.replace(data, clients=(client,))
        solo = build_fed_avg_process(linear_spec, alone, FedAvgConfig(dataclasses.replace(SGD, batch_size=99)), seed=5)
        updates.append(run(solo)[0].models[0][0] - start.student[0])
    full_batch = make_config(label_weight=1.0, student=dataclasses.replace(SGD, batch_size=99))
    state, _ = run(build_fed_sikd_process(linear_spec, data, full_batch, seed=5))
    clusters = [np.mean([u for u, c in zip(updates, state.assignments, strict=True) if c == k], axis=0) for k in (0, 1)]
    np.testing.assert_allclose(state.student[0] - start.student[0], np.mean(clusters, axis=0), atol=1e-6)
    assert len({int(n) for n in np.bincount(state.assignments)}) == 2, (
        "clusters of one size would not tell the means apart"
    )


def test_only_leaders_move_the_teacher_and_their_clusters_keep_it(tff_runtime, make_federation, linear_spec):
    """The teacher of a cluster equals its leader trained alone: one client per group, so the mean is its own."""
    data = make_federation(SIZES)
    process = build_fed_sikd_process(linear_spec, data, make_config(), seed=5)
    before = process.initialize()
    after, metrics = process.next(before)
    leaders = [max(np.flatnonzero(before.assignments == c), key=lambda i: SIZES[i]) for c in (0, 1)]
    spec = linear_spec.teacher
    for cluster, leader in enumerate(leaders):
        x, y = data.read_split(data.clients[leader], "train")
        model = spec.build()
        model.set_weights([w[cluster] for w in after.teachers])
        trained_loss = model_loss(model, x, y)
        model.set_weights([w[cluster] for w in before.teachers])
        assert trained_loss < model_loss(model, x, y)
    assert 0 < metrics["teacher_accuracy"] <= 1
    teachers = process.get_teachers(after)
    assert list(teachers) == ["teacher_0", "teacher_1"]
    np.testing.assert_array_equal(teachers["teacher_1"][0], after.teachers[0][1])
    assert not np.array_equal(after.teachers[0][0], after.teachers[0][1])


def model_loss(model, x, y):
    import tensorflow as tf

    return float(tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x))))


@pytest.mark.parametrize(
    "fields", [{}, {"teacher": "cluster"}, {"clustering": "random"}, {"statistics": "per_feature"}]
)
def test_rounds_repeat_bit_for_bit_and_learn(tff_runtime, make_federation, linear_spec, fields):
    process = build_fed_sikd_process(linear_spec, make_federation(SIZES), make_config(**fields), seed=5)
    (first, metrics), (second, same) = run(process, 3), run(process, 3)
    np.testing.assert_array_equal(first.student[0], second.student[0])
    np.testing.assert_array_equal(first.teachers[0], second.teachers[0])
    np.testing.assert_equal(metrics, same)
    assert set(COMMON_METRICS) <= set(metrics)
    assert metrics["within_cluster_drift"] <= metrics["total_drift"] + 1e-9
    assert metrics["train_loss"] < run(process, 1)[1]["train_loss"]


def test_pure_distillation_follows_the_teacher_and_not_the_labels(tff_runtime, make_federation, linear_spec):
    """With w = 0 the labels reach the student through the teacher alone: if that never learns, the student cannot."""
    data = make_federation([60, 60, 60])
    strong = dataclasses.replace(SGD, learning_rate=0.3, epochs=10)
    still = dataclasses.replace(SGD, learning_rate=1e-9)
    taught = make_config(student=strong, teacher_training=strong, label_weight=0.0, temperature=1.0, teacher="cluster")
    untaught = dataclasses.replace(taught, teacher_training=still)
    accuracies = []
    for config in (taught, untaught):
        state, _ = run(build_fed_sikd_process(linear_spec, data, config, seed=5), 2)
        model = linear_spec.build()
        model.set_weights(state.student)
        accuracies.append(float(np.mean(np.argmax(model(data.test_x), axis=1) == data.test_y)))
    assert accuracies[0] > 0.9 and accuracies[1] < 0.8


def test_bytes_and_seconds_by_hand(make_federation):
    """Student 60 bytes, teacher 200; two leaders; per client 4 epochs of the student, 2 of the teacher.

    Leader: down 5 * 60 + 3 * 200 = 900, up 5 * 60 + 2 * 200 = 700. Teacher phase, clients 1 and 2 (rates 2 and 3 times
    the first's 100 examples/s and 500 B/s up): client 1 has 24 / 200 + 200 / 1000 = 0.32 s, client 2 60 / 300 + 200 /
    1500 = 0.3333 s. Student phase: client 0: 260 / 1000 + 36 / 100 + 60 / 500 = 0.74 s, client 2: 60 / 3000 + 120 /
    300 + 60 / 1500 = 0.46 s; the slowest is client 0.
    """
    config = make_config(
        student=dataclasses.replace(SGD, epochs=4), teacher_training=dataclasses.replace(SGD, epochs=2)
    )
    data = make_federation(SIZES)
    costs = compute_round_costs(data, config, np.array([1, 2]), 60, 200)
    assert (costs.bytes_down, costs.bytes_up) == (900, 700)
    assert costs.seconds == pytest.approx(60 / 300 + 200 / 1500 + 0.74)
    everyone = compute_round_costs(data, dataclasses.replace(config, teacher="cluster"), np.arange(5), 60, 200)
    assert (everyone.bytes_down, everyone.bytes_up) == (5 * 260, 5 * 260)


def test_the_first_round_counts_the_statistics(tff_runtime, make_federation, linear_spec):
    """Scalar: 3 float64 a client, 120 bytes for five; per feature 4 times that; privacy adds the count, 40 bytes."""
    data = make_federation(SIZES)
    for fields, expected in (
        ({}, 120),
        ({"statistics": "per_feature"}, 480),
        ({"privacy_epsilon": 2.0}, 160),
    ):
        process = build_fed_sikd_process(linear_spec, data, make_config(**fields), seed=5)
        state, first = process.next(process.initialize())
        assert first["bytes_up"] - process.next(state).metrics["bytes_up"] == expected


def test_privacy_changes_what_is_shared_and_says_what_it_costs(tff_runtime, make_federation, linear_spec):
    data = make_federation([200, 300, 250])
    exact = build_fed_sikd_process(linear_spec, data, make_config(), seed=5).initialize()
    loose = build_fed_sikd_process(linear_spec, data, make_config(privacy_epsilon=1e6), seed=5).initialize()
    process = build_fed_sikd_process(linear_spec, data, make_config(privacy_epsilon=1.0), seed=5)
    noisy = process.initialize()
    np.testing.assert_allclose(loose.statistics, exact.statistics, atol=2e-3)
    assert np.abs(noisy.statistics - exact.statistics).max() > 2e-3
    assert np.isfinite(noisy.statistics).all()
    assert 0.9 < process.summarize(noisy)["spent_epsilon"] <= 1.0
    np.testing.assert_array_equal(noisy.statistics, process.initialize().statistics)


def test_privacy_needs_a_known_range(make_federation, linear_spec):
    data = dataclasses.replace(make_federation(SIZES), preprocessing=Preprocessing())
    with pytest.raises(ConfigError, match="no known range"):
        build_fed_sikd_process(linear_spec, data, make_config(privacy_epsilon=1.0), seed=0)


def test_more_clusters_than_clients(tff_runtime, make_federation, linear_spec):
    process = build_fed_sikd_process(linear_spec, make_federation([5, 6]), make_config(num_clusters=7), seed=5)
    state, metrics = run(process)
    assert metrics["num_clusters"] == 2 and len(process.get_teachers(state)) == 2


def test_a_cluster_whose_members_all_break_has_no_say(tff_runtime, make_federation, linear_spec):
    data = make_federation(SIZES)
    process = build_fed_sikd_process(linear_spec, data, make_config(label_weight=1.0, num_clusters=5), seed=5)
    state = process.initialize()
    np.full((9, 4), np.nan, np.float32).tofile(data.clients[0].path + ".train.x")
    after, metrics = process.next(state)
    assert metrics["num_rejected"] == 1
    assert all(np.isfinite(w).all() for w in after.student)
    assert not np.array_equal(after.student[0], state.student[0])


def test_client_columns_are_drawn_from_the_statistics(tff_runtime, make_federation, linear_spec):
    process = build_fed_sikd_process(linear_spec, make_federation(SIZES), make_config(), seed=5)
    state = process.initialize()
    columns = process.client_columns(state)
    assert columns["cluster"] == state.assignments.tolist()
    assert len(columns["plane_x"]) == len(columns["plane_y"]) == len(SIZES)
    random = build_fed_sikd_process(linear_spec, make_federation(SIZES), make_config(clustering="random"), seed=5)
    assert list(random.client_columns(random.initialize())) == ["cluster"]
