"""FedSiKD as a process, on a TFF worker: its equations, its reductions to FedAvg, its edges."""

import dataclasses

import numpy as np
import pytest
from small_formats import change_format

from datasets.example_format import Preprocessing
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.fed_sikd.process import build_fed_sikd_process, list_round_phases
from tff_algos.fed_sikd.statistics import project_to_plane, standardize
from tff_algos.protocol import COMMON_METRICS
from tff_algos.rounds.aggregation import sum_bytes
from tff_algos.settings.aggregation import AggregationConfig
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.server_step import ServerStepConfig
from tff_algos.simulation.virtual_clock import compute_phases_s

pytestmark = pytest.mark.usefixtures("trace_once")

SGD = LocalTrainingConfig(epochs=1, optimizer="sgd", learning_rate=0.1, batch_size=4)
FULL_BATCH = dataclasses.replace(SGD, batch_size=99)
SIZES = [9, 12, 30, 3, 17]
NINE_SIZES = [*SIZES, 8, 21, 6, 13]  # padded to ten places


def make_config(**fields):
    return FedSiKDConfig(**{"student": SGD, "teacher_training": SGD, "num_clusters": 2, **fields})


def compute_costs(*arguments):
    """((bytes down, bytes up), virtual seconds) of a round that begins at 0."""
    phases = list_round_phases(*arguments)
    return sum_bytes(phases), compute_phases_s(arguments[0].profiles, phases, 0.0)


def run(process, num_rounds=1):
    state = process.initialize()
    for _ in range(num_rounds):
        state, metrics = process.next(state)
    return state, metrics


@pytest.mark.parametrize(("num_clusters", "weighting"), [(2, "examples"), (1, "equal")])
def test_without_distillation_it_is_fed_avg(tff_runtime, make_federation, linear_spec, num_clusters, weighting):
    """Cluster means weighted by their examples, of members weighted by theirs, are the mean over all examples."""
    data = make_federation(NINE_SIZES)
    config = make_config(label_weight=1.0, weighting=weighting, num_clusters=num_clusters)
    state, metrics = run(build_fed_sikd_process(linear_spec, data, config, seed=5), 3)
    fed_avg = FedAvgConfig(SGD, client_weighting=weighting)
    expected, _ = run(build_fed_avg_process(linear_spec, data, fed_avg, seed=5), 3)
    for trained, stacked in zip(state.student, expected.models, strict=True):
        np.testing.assert_allclose(trained, stacked[0], atol=1e-6)
    assert metrics["num_clusters"] == num_clusters and np.isnan(metrics["teacher_accuracy"])


def test_the_average_is_equal_in_a_cluster_and_then_over_clusters(tff_runtime, make_federation, linear_spec, descend):
    """The clients' steps, averaged by hand; each is one full batch, so that the order of the examples plays no part."""
    data = make_federation(SIZES)
    config = make_config(label_weight=1.0, student=FULL_BATCH)
    process = build_fed_sikd_process(linear_spec, data, config, seed=5)
    start = process.initialize()
    state, _ = process.next(start)
    steps = [descend(linear_spec, start.student, *data.read_split(client, "train"), 0.1) for client in data.clients]
    for trained, *students in zip(state.student, *steps, strict=True):
        clusters = [np.mean(np.stack(students)[state.assignments == cluster], axis=0) for cluster in (0, 1)]
        np.testing.assert_allclose(trained, np.mean(clusters, axis=0), atol=1e-6)
    assert len({int(n) for n in np.bincount(state.assignments)}) == 2, (
        "clusters of one size would not tell the means apart"
    )


@pytest.mark.parametrize(("num_clusters", "weighting"), [(2, "equal"), (5, "examples")])
def test_aggregates_of_single_updates_are_averaged_over_the_clusters(
    tff_runtime, make_federation, linear_spec, break_client, num_clusters, weighting
):
    """A trimmed mean that leaves out nobody is the equal mean; with a client a cluster that is the mean by examples."""
    data, processes = make_federation(SIZES), []
    for aggregation in (AggregationConfig(), AggregationConfig("trimmed_mean", aggregator_trimmed_share=0.0)):
        config = make_config(label_weight=1.0, num_clusters=num_clusters, weighting=weighting, aggregation=aggregation)
        processes.append(build_fed_sikd_process(linear_spec, data, config, seed=5))
    states = [process.initialize() for process in processes]
    break_client(data, 0)  # whose cluster has no say, where it is alone
    for _ in range(2):
        states = [process.next(state).state for process, state in zip(processes, states, strict=True)]
    for array, same in zip(states[0].student, states[1].student, strict=True):
        np.testing.assert_allclose(array, same, atol=1e-6)


def test_the_servers_step_is_that_of_the_student_and_the_teachers_take_their_mean(
    tff_runtime, make_federation, linear_spec
):
    data, ends = make_federation(SIZES), []
    for server in (ServerStepConfig(), ServerStepConfig(learning_rate=0.5)):
        process = build_fed_sikd_process(linear_spec, data, make_config(server=server), seed=5)
        start = process.initialize()
        ends.append(process.next(start).state)
    for first, whole, half in zip(start.student, ends[0].student, ends[1].student, strict=True):
        np.testing.assert_allclose(half - first, (whole - first) / 2, atol=1e-6)
    for array, same in zip(ends[0].teachers, ends[1].teachers, strict=True):
        np.testing.assert_array_equal(array, same)


def test_if_no_client_counts_student_and_server_stay(tff_runtime, make_federation, linear_spec, break_client):
    """Momentum would carry the student on."""
    data = make_federation([9, 12])
    config = make_config(label_weight=1.0, server=ServerStepConfig(momentum=0.9))
    process = build_fed_sikd_process(linear_spec, data, config, seed=5)
    state, _ = run(process)
    for client in (0, 1):
        break_client(data, client)
    after, metrics = process.next(state)
    assert metrics["num_rejected"] == 2
    for array, same in zip([*after.student, *after.server], [*state.student, *state.server], strict=True):
        np.testing.assert_array_equal(array, same)


def find_leaders(assignments):
    """The client with the most examples in each of two clusters."""
    return [max(np.flatnonzero(assignments == cluster), key=lambda i: SIZES[i]) for cluster in (0, 1)]


def test_only_leaders_move_the_teachers_each_that_of_its_cluster(
    tff_runtime, make_federation, linear_spec, descend, relabel
):
    """A teacher takes its leader's step; other labels of the others leave it, other labels of a leader move it."""
    data = make_federation(SIZES)
    process = build_fed_sikd_process(linear_spec, data, make_config(teacher_training=FULL_BATCH), seed=5)
    before = process.initialize()
    after, _ = process.next(before)
    leaders = find_leaders(before.assignments)
    for cluster, (leader, teacher) in enumerate(zip(leaders, process.get_teachers(after).values(), strict=True)):
        start = [stacked[cluster] for stacked in before.teachers]
        expected = descend(linear_spec.teacher, start, *data.read_split(data.clients[leader], "train"), 0.1)
        for trained, stepped in zip(teacher, expected, strict=True):
            np.testing.assert_allclose(trained, stepped, atol=1e-6)

    relabel(data, set(range(5)) - set(leaders))
    others_changed, _ = process.next(before)
    assert not np.array_equal(others_changed.student[0], after.student[0]), "the new labels were not read"
    for same, first in zip(others_changed.teachers, after.teachers, strict=True):
        np.testing.assert_array_equal(same, first)

    relabel(data, leaders[:1])
    leader_changed, _ = process.next(before)
    for moved, first in zip(leader_changed.teachers, after.teachers, strict=True):
        assert not np.array_equal(moved[0], first[0])
        np.testing.assert_array_equal(moved[1], first[1])


@pytest.mark.parametrize(("num_clusters", "weighting"), [(1, "equal"), (1, "examples"), (2, "equal")])
def test_a_federated_teacher_is_the_mean_of_its_clusters_members(
    tff_runtime, make_federation, linear_spec, descend, num_clusters, weighting
):
    """One full-batch step a member; with one cluster it is a round of FedAvg of the teacher."""
    data = make_federation(SIZES)
    config = make_config(teacher="cluster", teacher_training=FULL_BATCH, num_clusters=num_clusters, weighting=weighting)
    process = build_fed_sikd_process(linear_spec, data, config, seed=5)
    before = process.initialize()
    after, _ = process.next(before)
    for cluster in range(num_clusters):
        members = np.flatnonzero(before.assignments == cluster)
        start = [stacked[cluster] for stacked in before.teachers]
        splits = [data.read_split(data.clients[member], "train") for member in members]
        steps = [descend(linear_spec.teacher, start, *split, 0.1) for split in splits]
        shares = data.num_train[members] if weighting == "examples" else None
        for trained, *teachers in zip(after.teachers, *steps, strict=True):
            np.testing.assert_allclose(trained[cluster], np.average(teachers, axis=0, weights=shares), atol=1e-6)


def test_the_students_rate_decays_from_round_to_round(tff_runtime, make_federation, linear_spec, descend):
    """One client, full batch: a step at 0.1, then one at 0.05."""
    data = make_federation([12])
    decaying = dataclasses.replace(FULL_BATCH, learning_rate_decay=0.5)
    process = build_fed_sikd_process(linear_spec, data, make_config(student=decaying, label_weight=1.0), seed=5)
    expected = process.initialize().student
    for rate in (0.1, 0.05):
        expected = descend(linear_spec, expected, *data.read_split(data.clients[0], "train"), rate)
    state, _ = run(process, 2)
    for trained, stepped in zip(state.student, expected, strict=True):
        np.testing.assert_allclose(trained, stepped, atol=1e-6)


def test_a_teacher_is_kept_and_its_rate_decays_from_round_to_round(tff_runtime, make_federation, linear_spec, descend):
    """One client, full batch: a step of the teacher at 0.1, then one at 0.05 from there."""
    data = make_federation([12])
    decaying = dataclasses.replace(FULL_BATCH, learning_rate_decay=0.5)
    process = build_fed_sikd_process(linear_spec, data, make_config(teacher_training=decaying), seed=5)
    expected = process.get_teachers(process.initialize())["teacher_0"]
    for rate in (0.1, 0.05):
        expected = descend(linear_spec.teacher, expected, *data.read_split(data.clients[0], "train"), rate)
    state, _ = run(process, 2)
    for trained, stepped in zip(process.get_teachers(state)["teacher_0"], expected, strict=True):
        np.testing.assert_allclose(trained, stepped, atol=1e-6)


def test_teacher_accuracy_is_over_the_members_examples(tff_runtime, make_federation, linear_spec):
    """Of nine clients, padded to ten places: the teachers that the students learn from, each on its own members."""
    data = make_federation(NINE_SIZES)
    process = build_fed_sikd_process(linear_spec, data, make_config(), seed=5)
    state, metrics = run(process)
    teachers = process.get_teachers(state)
    assert list(teachers) == ["teacher_0", "teacher_1"]
    num_correct = 0
    for cluster, weights in enumerate(teachers.values()):
        model = linear_spec.teacher.build()
        model.set_weights(weights)
        members = [client for client in data.clients if state.assignments[client.index] == cluster]
        x, y = data.read_pooled(members, "train")
        num_correct += np.sum(np.argmax(model(x), axis=1) == y)
    assert metrics["teacher_accuracy"] == pytest.approx(num_correct / sum(NINE_SIZES))
    assert 0 < num_correct < sum(NINE_SIZES)


@pytest.mark.parametrize("fields", [{"teacher": "cluster"}, {"clustering": "random"}])
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
    sent, seconds = compute_costs(data, config, np.array([1, 2]), 60, 200)
    assert sent == (900, 700)
    assert seconds == pytest.approx(60 / 300 + 200 / 1500 + 0.74)


def test_bytes_and_seconds_of_a_federated_teacher_by_hand(make_federation):
    """As above, but each client trains the teacher, and all get it.

    Teacher phase: client 0 needs 18 / 100 + 200 / 500 = 0.58 s, client 2 60 / 300 + 200 / 1500 = 0.3333 s, and the
    others less. Student phase: client 0 260 / 1000 + 36 / 100 + 60 / 500 = 0.74 s, client 2 260 / 3000 + 120 / 300 +
    60 / 1500 = 0.5267 s.
    """
    config = make_config(
        student=dataclasses.replace(SGD, epochs=4),
        teacher_training=dataclasses.replace(SGD, epochs=2),
        teacher="cluster",
    )
    sent, seconds = compute_costs(make_federation(SIZES), config, np.arange(5), 60, 200)
    assert sent == (5 * 260, 5 * 260)
    assert seconds == pytest.approx(0.58 + 0.74)


def test_bytes_and_seconds_without_a_teacher_by_hand(make_federation):
    """The student's phase alone: client 0 needs 60 / 1000 + 36 / 100 + 60 / 500 = 0.54 s, client 2 0.46 s."""
    config = make_config(student=dataclasses.replace(SGD, epochs=4), label_weight=1.0)
    sent, seconds = compute_costs(make_federation(SIZES), config, np.zeros(0, np.int64), 60, 0)
    assert sent == (5 * 60, 5 * 60)
    assert seconds == pytest.approx(0.54)


def test_a_run_without_a_teacher_costs_only_students(tff_runtime, make_federation, linear_spec):
    """15 floats, 60 bytes each way. Client 0: 0.06 + 9 / 100 + 0.12 s; client 2: 0.02 + 30 / 300 + 0.04 s."""
    process = build_fed_sikd_process(linear_spec, make_federation(SIZES), make_config(label_weight=1.0), seed=5)
    _, metrics = run(process, 2)
    assert (metrics["bytes_down"], metrics["bytes_up"]) == (300, 300)
    assert metrics["virtual_time_s"] == pytest.approx(2 * 0.27)
    assert process.get_teachers(process.initialize()) == {}


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
    data = change_format(make_federation(SIZES), preprocessing=Preprocessing())
    with pytest.raises(ConfigError, match="no known range"):
        build_fed_sikd_process(linear_spec, data, make_config(privacy_epsilon=1.0), seed=0)


def test_more_clusters_than_clients(tff_runtime, make_federation, linear_spec):
    process = build_fed_sikd_process(linear_spec, make_federation([5, 6]), make_config(num_clusters=7), seed=5)
    state, metrics = run(process)
    assert metrics["num_clusters"] == 2 and len(process.get_teachers(state)) == 2


def test_a_model_without_a_teacher_cannot_be_distilled(make_federation, linear_spec):
    spec = dataclasses.replace(linear_spec, teacher=None)
    with pytest.raises(ConfigError, match=r"^label_weight=0\.5: expected 1 .*--teacher_model"):
        build_fed_sikd_process(spec, make_federation(SIZES), make_config(), seed=5)
    build_fed_sikd_process(spec, make_federation(SIZES), make_config(label_weight=1.0), seed=5)


def test_a_cluster_whose_members_all_break_has_no_say(tff_runtime, make_federation, linear_spec, descend, break_client):
    """Five clusters of one client; the mean is over the four that remain, not over five with a step of zero."""
    data = make_federation(SIZES)
    config = make_config(label_weight=1.0, num_clusters=5, student=FULL_BATCH)
    process = build_fed_sikd_process(linear_spec, data, config, seed=5)
    state = process.initialize()
    break_client(data, 0)
    after, metrics = process.next(state)
    assert (metrics["num_rejected"], metrics["num_clusters"]) == (1, 5)
    splits = [data.read_split(client, "train") for client in data.clients[1:]]
    steps = [descend(linear_spec, state.student, *split, 0.1) for split in splits]
    for trained, *students in zip(after.student, *steps, strict=True):
        np.testing.assert_allclose(trained, np.mean(students, axis=0), atol=1e-6)


def test_client_columns_are_drawn_from_the_statistics(tff_runtime, make_federation, linear_spec):
    process = build_fed_sikd_process(linear_spec, make_federation(SIZES), make_config(), seed=5)
    state = process.initialize()
    columns = process.client_columns(state)
    assert columns["cluster"] == state.assignments.tolist()
    plane = project_to_plane(standardize(state.statistics))
    assert (columns["plane_x"], columns["plane_y"]) == (plane[:, 0].tolist(), plane[:, 1].tolist())
    assert np.all(np.ptp(plane, axis=0) > 0)
    equal = make_config(clustering="random", cluster_sizes="equal")
    random = build_fed_sikd_process(linear_spec, make_federation(SIZES), equal, seed=5)
    assert list(random.client_columns(random.initialize())) == ["cluster"]


def test_random_clusters_have_the_sizes_of_k_means(tff_runtime, make_federation, linear_spec):
    data = make_federation([8, 5, 7, 6, 9, 4, 8])
    found, drawn = (
        build_fed_sikd_process(linear_spec, data, make_config(clustering=clustering), seed=5).initialize()
        for clustering in ("kmeans", "random")
    )
    assert sorted(np.bincount(drawn.assignments)) == sorted(np.bincount(found.assignments))
    assert drawn.assignments.tolist() != found.assignments.tolist()
    np.testing.assert_array_equal(drawn.statistics, found.statistics)
