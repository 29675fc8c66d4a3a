"""FedSiKD with private updates: both releases of a round, and what they cost beside the statistics."""

import dataclasses

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp
from small_runs import flatten, silence

from tff_algos.fed_sikd.privacy import calibrate_noise_multiplier
from tff_algos.fed_sikd.private_round import STUDENTS, TEACHERS, weight_cluster_sums
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.update_privacy import RDP, UpdatePrivacyConfig

SGD = LocalTrainingConfig(epochs=1, optimizer="sgd", learning_rate=0.5, batch_size=4)
PRIVATE = UpdatePrivacyConfig(epsilon=50.0, clip_norm=0.1, rounds=3)
SIZES = [8, 12, 5, 9, 7]


FIELDS = {
    "student": SGD,
    "teacher_training": SGD,
    "clustering": "random",
    "cluster_sizes": "equal",
    "num_clusters": 2,
    "teacher": "cluster",
    "privacy": PRIVATE,
}


@pytest.fixture
def build(build_algorithm):
    """A function (data, fields of the config) -> process."""
    return lambda data, **fields: build_algorithm("fedsikd", data, **{**FIELDS, **fields})


def train_students(process, state):
    """Steps 2 to 4 alone, from the teachers of the state: the next student, and the metrics of privacy."""
    outcome = process.train(state, process.invite(state, process.everyone), int(state.round_num) + 1)
    return process.apply(state, outcome).student, outcome.aggregate.metrics


def train_teachers(process, state):
    """Step 1 alone: the next teachers."""
    return process.prepare(state, process.everyone)[0].teachers


def test_the_students_sum_weighs_clusters_equally_and_no_client_above_one():
    """Clusters of 4 and 1 clients: (1/4) S_0 + S_1, over 2 * 1, is the mean of S_0 / 4 and S_1 / 1."""
    (weighted,) = weight_cluster_sums((np.array([[8.0, 0.0], [6.0, 2.0]], np.float32),), np.array([4, 1]))
    np.testing.assert_allclose(weighted / 2, [(2.0 + 6.0) / 2, (0.0 + 2.0) / 2])


@pytest.mark.parametrize("client", [0, 1])
def test_one_client_changes_the_students_and_the_teachers_sum_by_at_most_the_clip_norm(
    build, make_federation, break_client, client
):
    """A broken client counts as none: what is left out with it is its whole contribution."""
    data = make_federation(SIZES)
    process = build(data)
    state = silence(process.initialize())
    sizes = np.bincount(state.assignments)

    def run():
        student, metrics = train_students(process, state)
        teachers = train_teachers(process, state)
        teacher_sums = [array * sizes.reshape(-1, *[1] * (array.ndim - 1)) for array in teachers]
        return 2 * sizes.min() * flatten(student), flatten(teacher_sums), metrics["num_clipped"]

    student, teacher, num_clipped = run()
    break_client(data, client)
    student_without, teacher_without, _ = run()
    share = sizes.min() / sizes[state.assignments[client]]
    assert num_clipped == 5
    assert np.linalg.norm(student - student_without) == pytest.approx(0.1 * share, rel=2e-3)
    assert np.linalg.norm(teacher - teacher_without) == pytest.approx(0.1, rel=2e-3)


def test_both_releases_have_noise_of_their_own_and_a_clip_norm_of_their_own(build, make_federation):
    adaptive = UpdatePrivacyConfig(epsilon=200.0, clip_norm=0.05, clipping="adaptive", clip_count_noise=1.0)
    process = build(make_federation(SIZES), privacy=adaptive)
    state = process.initialize()
    assert state.aggregator.clip_norms.shape == (2,)
    after, metrics = process.next(state)
    assert after.aggregator.clip_norms[STUDENTS] != after.aggregator.clip_norms[TEACHERS]
    assert metrics["clip_norm"] == after.aggregator.clip_norms[STUDENTS]


def test_the_statistics_the_teachers_and_the_students_are_composed(build, make_federation):
    """One example: the statistics once, then in each round two sums that it changes by twice the clip norm."""
    data = make_federation([20] * 4)
    privacy = UpdatePrivacyConfig(epsilon=9.0, rounds=3, accountant=RDP)
    process = build(data, clustering="kmeans", privacy_epsilon=2.0, privacy=privacy)
    state = process.initialize()
    for _ in range(2):
        state, metrics = process.next(state)
    multiplier = float(state.aggregator.noise_multiplier)
    accountant = rdp.RdpAccountant().compose(dp_accounting.GaussianDpEvent(calibrate_noise_multiplier(2.0, 1e-5)))
    accountant.compose(dp_accounting.GaussianDpEvent(multiplier / 2), 2 * 2)
    assert metrics["epsilon_spent"] == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-6)
    assert "an example more or less" in process.get_notes(state)[0]
    assert "the clusters' teachers, the noisy statistics (epsilon 2 of it" in process.get_notes(state)[2]
    assert not process.is_spent(state) and process.is_spent(state._replace(round_num=np.int32(3)))


def test_without_a_teacher_there_is_one_release(build, make_federation):
    process = build(make_federation(SIZES), label_weight=1.0, teacher="leader")
    assert process.aggregator.accounting.releases_per_round == 1
    assert process.aggregator.accounting.unit == "a client more or less"


def test_the_noise_of_both_releases_is_z_clip_norms_over_their_denominators(work_once, build, make_federation):
    """Clusters of 3 and 2: the student's sum is divided by 2 * 2, a teacher's by the clients of its cluster."""
    process, students, teachers = build(make_federation(SIZES)), [], []
    start = process.initialize()
    sizes = np.bincount(start.assignments)
    assert sorted(sizes.tolist()) == [2, 3]
    for round_num in range(40):
        loud = start._replace(round_num=np.int32(round_num))
        quiet = silence(loud)
        of_students = [flatten(train_students(process, each)[0]) for each in (loud, quiet)]
        of_teachers = [train_teachers(process, each) for each in (loud, quiet)]
        students.append(of_students[0] - of_students[1])
        differences = [array - silent for array, silent in zip(*of_teachers, strict=True)]
        teachers.append(np.concatenate([difference.reshape(2, -1) for difference in differences], axis=1))
    deviation = float(start.aggregator.noise_multiplier) * 0.1
    assert np.std(students) == pytest.approx(deviation / 4, rel=4 / (2 * np.size(students)) ** 0.5)
    by_cluster = np.swapaxes(teachers, 0, 1).reshape(2, -1)
    np.testing.assert_allclose(by_cluster.std(axis=1), deviation / sizes, rtol=4 / (2 * by_cluster.shape[1]) ** 0.5)


def test_where_examples_are_hidden_delta_is_below_one_of_them(build, make_federation):
    """41 examples of 5 clients."""
    data, shared = make_federation(SIZES), {"clustering": "kmeans", "cluster_sizes": "kmeans", "privacy_epsilon": 5.0}
    build(data, privacy=dataclasses.replace(PRIVATE, delta=0.02), **shared)
    with pytest.raises(ConfigError, match=r"dp_delta=0.03: expected below 1 / examples"):
        build(data, privacy=dataclasses.replace(PRIVATE, delta=0.03), **shared)
