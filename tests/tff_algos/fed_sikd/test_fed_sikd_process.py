"""FedSiKD as a process, on a TFF worker: its equations, its reductions to FedAvg, its edges."""

import dataclasses

import numpy as np
import pytest
from small_formats import change_format
from small_runs import assert_close, assert_same, run

from datasets.example_format import Preprocessing
from tff_algos.fed_sikd.statistics import project_to_plane, standardize
from tff_algos.rounds.aggregation import sum_bytes
from tff_algos.rounds.transport import RANGE_BYTES
from tff_algos.settings.aggregation import AggregationConfig, ServerStepConfig
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.local_training import LocalTrainingConfig

SGD = LocalTrainingConfig(epochs=1, optimizer="sgd", learning_rate=0.1, batch_size=4)
FULL_BATCH = dataclasses.replace(SGD, batch_size=99)
SIZES = [9, 12, 30, 3, 17]
NINE_SIZES = [*SIZES, 8, 21, 6, 13]  # padded to ten places


FIELDS = {"student": SGD, "teacher_training": SGD, "num_clusters": 2}


@pytest.fixture
def build(build_algorithm):
    """A function (data, fields of the config) -> process."""
    return lambda data, **fields: build_algorithm("fedsikd", data, seed=5, **{**FIELDS, **fields})


def compute_steps(spec, start, data, clients, descend):
    """Where a full-batch step at the rate 0.1 takes each of these clients."""
    return [descend(spec, start, *data.read_split(data.clients[client], "train"), 0.1) for client in clients]


def test_the_average_is_equal_in_a_cluster_and_then_over_clusters(build, make_federation, linear_spec, descend):
    """The clients' steps, averaged by hand; each is one full batch, so that the order of the examples plays no part."""
    data = make_federation(SIZES)
    process = build(data, label_weight=1.0, student=FULL_BATCH)
    start = process.initialize()
    state, _ = process.next(start)
    for trained, *students in zip(
        state.student, *compute_steps(linear_spec, start.student, data, range(5), descend), strict=True
    ):
        clusters = [np.mean(np.stack(students)[state.assignments == cluster], axis=0) for cluster in (0, 1)]
        np.testing.assert_allclose(trained, np.mean(clusters, axis=0), atol=1e-6)
    assert len(set(np.bincount(state.assignments))) == 2, "clusters of one size would not tell the means apart"


@pytest.mark.parametrize(("num_clusters", "weighting"), [(2, "equal"), (5, "examples")])
def test_aggregates_of_single_updates_are_averaged_over_the_clusters(
    build, make_federation, break_client, num_clusters, weighting
):
    """A trimmed mean that leaves out nobody is the equal mean; with a client a cluster that is the mean by examples."""
    data = make_federation(SIZES)
    processes = [
        build(data, label_weight=1.0, num_clusters=num_clusters, weighting=weighting, aggregation=aggregation)
        for aggregation in (AggregationConfig(), AggregationConfig("trimmed_mean", aggregator_trimmed_share=0.0))
    ]
    starts = [process.initialize() for process in processes]
    break_client(data, 0)  # whose cluster has no say, where it is alone
    states = [run(process, 2, start)[0] for process, start in zip(processes, starts, strict=True)]
    assert_close(states[0].student, states[1].student)


def test_the_servers_step_is_that_of_the_student_and_the_teachers_take_their_mean(build, make_federation):
    data = make_federation(SIZES)
    whole, half = (run(build(data, server=ServerStepConfig(learning_rate=rate)))[0] for rate in (1.0, 0.5))
    start = build(data).initialize().student
    assert_close(half.student, [(first + moved) / 2 for first, moved in zip(start, whole.student, strict=True)])
    assert_same(whole.teachers, half.teachers)


def test_if_no_client_counts_student_and_server_stay(build, make_federation, break_client):
    """Momentum would carry the student on."""
    data = make_federation([9, 12])
    process = build(data, label_weight=1.0, server=ServerStepConfig(momentum=0.9))
    state, _ = run(process)
    break_client(data, 0)
    break_client(data, 1)
    after, metrics = process.next(state)
    assert metrics["num_rejected"] == 2
    assert_same([*after.student, *after.server], [*state.student, *state.server])


def test_only_leaders_move_the_teachers_each_that_of_its_cluster(build, make_federation, linear_spec, descend, relabel):
    """A teacher takes its leader's step; other labels of the others leave it, other labels of a leader move it."""
    data = make_federation(SIZES)
    process = build(data, teacher_training=FULL_BATCH)
    before = process.initialize()
    after, _ = process.next(before)
    members = [np.flatnonzero(before.assignments == cluster) for cluster in (0, 1)]
    leaders = [max(each, key=lambda i: SIZES[i]) for each in members]  # who have the most examples
    for cluster, teacher in enumerate(process.get_teachers(after).values()):
        start = [stacked[cluster] for stacked in before.teachers]
        assert_close(teacher, compute_steps(linear_spec.teacher, start, data, [leaders[cluster]], descend)[0])

    relabel(data, set(range(5)) - set(leaders))
    others_changed, _ = process.next(before)
    assert not np.array_equal(others_changed.student[0], after.student[0]), "the new labels were not read"
    assert_same(others_changed.teachers, after.teachers)

    relabel(data, leaders[:1])
    leader_changed, _ = process.next(before)
    for moved, first in zip(leader_changed.teachers, after.teachers, strict=True):
        assert [np.array_equal(moved[cluster], first[cluster]) for cluster in (0, 1)] == [False, True]


@pytest.mark.parametrize(("num_clusters", "weighting"), [(1, "examples"), (2, "equal")])
def test_a_federated_teacher_is_the_mean_of_its_clusters_members(
    build, make_federation, linear_spec, descend, num_clusters, weighting
):
    """One full-batch step a member; with one cluster it is a round of FedAvg of the teacher."""
    data = make_federation(SIZES)
    fields = {"teacher": "cluster", "num_clusters": num_clusters, "weighting": weighting}
    process = build(data, teacher_training=FULL_BATCH, **fields)
    before = process.initialize()
    after, _ = process.next(before)
    for cluster in range(num_clusters):
        members = np.flatnonzero(before.assignments == cluster)
        start = [stacked[cluster] for stacked in before.teachers]
        steps = compute_steps(linear_spec.teacher, start, data, members, descend)
        shares = data.num_train[members] if weighting == "examples" else None
        for trained, *teachers in zip(after.teachers, *steps, strict=True):
            np.testing.assert_allclose(trained[cluster], np.average(teachers, axis=0, weights=shares), atol=1e-6)


@pytest.mark.parametrize("of_teacher", [False, True])
def test_a_rate_decays_from_round_to_round(build, make_federation, linear_spec, descend, of_teacher):
    """The student's, or that of the teacher, which is kept. One client, full batch: a step at 0.1, then at 0.05."""
    data, decaying = make_federation([12]), dataclasses.replace(FULL_BATCH, learning_rate_decay=0.5)
    process = build(
        data, **({"teacher_training": decaying} if of_teacher else {"student": decaying, "label_weight": 1.0})
    )
    spec = linear_spec.teacher if of_teacher else linear_spec

    def find(state):
        return process.get_teachers(state)["teacher_0"] if of_teacher else state.student

    expected = find(process.initialize())
    for rate in (0.1, 0.05):
        expected = descend(spec, expected, *data.read_split(data.clients[0], "train"), rate)
    assert_close(find(run(process, 2)[0]), expected)


def test_teacher_accuracy_is_over_the_members_examples(build, make_federation, linear_spec):
    """Of nine clients, padded to ten places: the teachers that the students learn from, each on its own members."""
    data = make_federation(NINE_SIZES)
    process = build(data)
    state, [metrics] = run(process)
    teachers, num_correct, model = process.get_teachers(state), 0, linear_spec.teacher.build()
    assert list(teachers) == ["teacher_0", "teacher_1"]
    for cluster, weights in enumerate(teachers.values()):
        model.set_weights(weights)
        x, y = data.read_pooled(
            [data.clients[index] for index in np.flatnonzero(state.assignments == cluster)], "train"
        )
        num_correct += np.sum(np.argmax(model(x), axis=1) == y)
    assert metrics["teacher_accuracy"] == pytest.approx(num_correct / sum(NINE_SIZES))
    assert 0 < num_correct < sum(NINE_SIZES)


def test_pure_distillation_follows_the_teacher_and_not_the_labels(build, make_federation, linear_spec):
    """With w = 0 the labels reach the student through the teacher alone: if that never learns, the student cannot."""
    data, accuracies = make_federation([60, 60, 60]), []
    strong = dataclasses.replace(SGD, learning_rate=0.3, epochs=10)
    for training in (strong, dataclasses.replace(strong, learning_rate=1e-9)):
        fields = {"student": strong, "label_weight": 0.0, "temperature": 1.0, "teacher": "cluster"}
        state, _ = run(build(data, teacher_training=training, **fields), 2)
        model = linear_spec.build()
        model.set_weights(state.student)
        accuracies.append(float(np.mean(np.argmax(model(data.test_x), axis=1) == data.test_y)))
    assert accuracies[0] > 0.9 and accuracies[1] < 0.8


def round_to_levels(values, bits):
    """To 2^bits levels from the smallest to the largest value, by hand."""
    low, high = values.min(), values.max()
    step = (high - low) / (2**bits - 1)
    return low + np.round((values - low) / step) * step


def test_teachers_travel_rounded_both_ways(build, make_federation, linear_spec, descend):
    """A leader starts from the rounded teacher; its step is rounded, and added to the teacher as the server has it."""
    data = make_federation(SIZES)
    process = build(data, teacher_training=FULL_BATCH, teacher_bits=3)
    before = process.initialize()
    before = before._replace(teachers=tuple(0.1 + np.square(each) for each in before.teachers))  # no two levels alike
    after, _ = process.next(before)
    members = [np.flatnonzero(before.assignments == cluster) for cluster in (0, 1)]
    for cluster, teacher in enumerate(process.get_teachers(after).values()):
        start = [stacked[cluster] for stacked in before.teachers]
        sent = [round_to_levels(each, 3) if np.ptp(each) else each for each in start]
        leader = max(members[cluster], key=lambda i: SIZES[i])
        (trained,) = compute_steps(linear_spec.teacher, sent, data, [leader], descend)
        steps = [round_to_levels(each - own, 3) for each, own in zip(trained, sent, strict=True)]
        assert_close(teacher, [each + step for each, step in zip(start, steps, strict=True)])
    students = process.distribute(before)[1]
    assert all(len(np.unique(each[0])) <= 8 for each in students) and np.ptp(students[0][0])
    whole, rounded = build(data), build(data, teacher_bits=8)
    down, up = (sum_bytes(each.list_phases(before, np.arange(5))) for each in (whole, rounded))
    saved = sum(array[0].size * 3 - RANGE_BYTES for array in before.teachers)
    # Three members get a teacher, two leaders send one.
    assert (down[0] - up[0], down[1] - up[1]) == (3 * saved, 2 * saved)
    with pytest.raises(ConfigError, match="teacher_bits=20: expected 2 to 16, or 32 for no compression"):
        build(data, teacher_bits=20)


def test_privacy_changes_what_is_shared_and_says_what_it_costs(build, make_federation):
    data = make_federation([200, 300, 250])
    process, exact = build(data, privacy_epsilon=1.0), build(data).initialize()
    noisy = process.initialize()
    assert np.abs(noisy.statistics - exact.statistics).max() > 2e-3
    assert 0.999 < process.summarize(noisy)["spent_epsilon"] <= 1.0
    np.testing.assert_array_equal(noisy.statistics, process.initialize().statistics)


def test_privacy_needs_a_known_range(build, make_federation):
    with pytest.raises(ConfigError, match="no known range"):
        build(change_format(make_federation(SIZES), preprocessing=Preprocessing()), privacy_epsilon=1.0)


def test_a_model_without_a_teacher_cannot_be_distilled(build, make_federation, linear_spec):
    data, spec = make_federation(SIZES), dataclasses.replace(linear_spec, teacher=None)
    with pytest.raises(ConfigError, match=r"^label_weight=0\.5: expected 1 .*--teacher_model"):
        build(data, spec=spec)
    build(data, spec=spec, label_weight=1.0)


def test_a_cluster_whose_members_all_break_has_no_say(build, make_federation, linear_spec, descend, break_client):
    """Five clusters of one client; the mean is over the four that remain, not over five with a step of zero."""
    data = make_federation(SIZES)
    process = build(data, label_weight=1.0, num_clusters=5, student=FULL_BATCH)
    state = process.initialize()
    break_client(data, 0)
    after, metrics = process.next(state)
    assert metrics["num_clusters"] == 5 and np.isnan(metrics["teacher_accuracy"])
    steps = compute_steps(linear_spec, state.student, data, range(1, 5), descend)
    assert_close(after.student, [np.mean(students, axis=0) for students in zip(*steps, strict=True)])


def test_client_columns_are_drawn_from_the_statistics(build, make_federation):
    process = build(make_federation(SIZES))
    state = process.initialize()
    columns, plane = process.client_columns(state), project_to_plane(standardize(state.statistics))
    assert columns["cluster"] == state.assignments.tolist()
    assert (columns["plane_x"], columns["plane_y"]) == (plane[:, 0].tolist(), plane[:, 1].tolist())
    assert np.all(np.ptp(plane, axis=0) > 0)
    random = build(make_federation(SIZES), clustering="random", cluster_sizes="equal")
    assert list(random.client_columns(random.initialize())) == ["cluster"]


def test_random_clusters_have_the_sizes_of_k_means(build, make_federation):
    data = make_federation([8, 5, 7, 6, 9, 4, 8])
    found, drawn = (build(data, clustering=clustering).initialize() for clustering in ("kmeans", "random"))
    assert drawn.assignments.tolist() != found.assignments.tolist()
    np.testing.assert_array_equal(drawn.statistics, found.statistics)
