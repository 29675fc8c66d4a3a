"""With privacy FedSiKD's leaders and weights follow from the noisy sizes, without it from the exact ones."""

import numpy as np
import pytest

from tff_algos.fed_sikd.process import ServerState
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import stack_models

ONE_STEP = LocalTrainingConfig(epochs=1, optimizer="sgd", learning_rate=0.1, batch_size=99)
SIZES = [9, 12, 30, 3, 17]
ASSIGNMENTS = np.array([0, 0, 1, 1, 1], np.int32)


@pytest.fixture
def private_state(build_algorithm, make_federation):
    """A function (fields) -> (process, state): privacy, the clusters of ASSIGNMENTS, noisy sizes made up.

    The true sizes 9, 12 | 30, 3, 17 have the leaders 1 and 2; the noisy ones 20.5, 8 | 1, 30.25, 4 have 0 and 3.
    """

    def build(**fields):
        fields |= {"student": ONE_STEP, "teacher_training": ONE_STEP, "privacy_epsilon": 1.0}
        process = build_algorithm("fedsikd", make_federation(SIZES), **fields)
        teachers = stack_models([process.initial_teacher] * 2)
        shared = np.column_stack([[20.5, 8, 1, 30.25, 4], np.zeros((5, 3))])
        start = np.int32(0), np.float64(0), process.initial_weights
        return process, ServerState(*start, teachers, ASSIGNMENTS, shared, np.zeros(3))

    return build


def test_with_privacy_noisy_sizes_choose_the_leaders(private_state):
    process, state = private_state()
    assert process.choose_trainers(state).tolist() == [0, 3]
    of_earlier_version = state._replace(shared=state.statistics)
    assert process.choose_trainers(of_earlier_version).tolist() == [1, 2]
    assert private_state(leader="speed")[0].choose_trainers(state).tolist() == [1, 4]


def test_with_privacy_noisy_sizes_are_the_weights_by_examples(private_state):
    process, state = private_state(weighting="examples")
    clients = np.array([1, 2, 3])

    def weigh(process, state):
        return [float(each.weight) for each in process.build_inputs(state, clients, "training", ONE_STEP)]

    assert weigh(process, state) == [8, 1, 30.25]
    assert weigh(process, state._replace(shared=state.statistics)) == [12, 30, 3], "as an earlier version had them"
    assert weigh(private_state(weighting="equal")[0], state) == [1, 1, 1]


def test_with_privacy_a_round_averages_by_noisy_sizes(private_state, linear_spec, descend):
    """The mean of the clusters' means, each by the noisy sizes of its members, is the mean over all by those sizes."""
    process, state = private_state(weighting="examples", label_weight=1.0)
    after, _ = process.next(state)
    splits = [process.clients.read_split(client, "train") for client in process.clients.clients]
    steps = [descend(linear_spec, state.student, *split, 0.1) for split in splits]
    for trained, *students in zip(after.student, *steps, strict=True):
        expected = np.average(students, axis=0, weights=[20.5, 8, 1, 30.25, 4])
        np.testing.assert_allclose(trained, expected, atol=1e-6)
    np.testing.assert_array_equal(after.shared, state.shared)
