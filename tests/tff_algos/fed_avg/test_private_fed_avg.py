"""FedAvg with private updates, as a process on a TFF worker."""

import dataclasses

import numpy as np
import pytest
from small_runs import flatten, silence

from tff_algos.client.cohort import pad_cohort
from tff_algos.rounds import training_phase
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.update_privacy import UpdatePrivacyConfig

SGD = LocalTrainingConfig(epochs=1, optimizer="sgd", learning_rate=0.5, batch_size=4)
SIZES = [8, 12, 5, 9, 7, 3]
PRIVATE = UpdatePrivacyConfig(epsilon=20.0, clip_norm=0.1, rounds=3)


@pytest.fixture
def build(build_algorithm):
    """A function (data, settings) -> process; the clip norm is told in each round, so it is in no graph."""

    def build(data, training=SGD, privacy=PRIVATE, **fields):
        fields |= {"participation": "bernoulli", "client_weighting": "equal", "privacy": privacy}
        return build_algorithm("fedavg", data, training, **fields)

    return build


def sum_of(process, fix_cohort, cohort, state=None):
    """What a round adds to the global model, times the expected cohort: the sum of the clipped updates, one vector."""
    fix_cohort(cohort)
    state = silence(process.initialize()) if state is None else state
    moved, _ = process.next(state)
    deltas = [after - before for after, before in zip(moved.models, state.models, strict=True)]
    return process.aggregator.denominator * flatten(deltas)


def test_the_worst_client_changes_no_more_than_any_other(build, make_federation, fix_cohort):
    """A rate of 1e5 makes updates of about 1e5, and still none weighs more than the norm."""
    huge = LocalTrainingConfig(epochs=1, optimizer="sgd", learning_rate=1e5, batch_size=4)
    process = build(make_federation(SIZES), training=huge)
    change = sum_of(process, fix_cohort, [0, 1, 2]) - sum_of(process, fix_cohort, [0, 2])
    assert 0.0999 < np.linalg.norm(change) <= 0.1 * (1 + 1e-5)


def test_a_broken_client_is_as_if_it_had_not_come(build, make_federation, fix_cohort, break_client):
    data = make_federation(SIZES)
    process = build(data)
    without = sum_of(process, fix_cohort, [0, 2])
    break_client(data, 1)
    np.testing.assert_array_equal(sum_of(process, fix_cohort, [0, 1, 2]), without)


def test_the_round_of_an_empty_cohort_is_noise_alone(build, make_federation, fix_cohort):
    process = build(make_federation(SIZES))
    assert not sum_of(process, fix_cohort, []).any()
    noise = sum_of(process, fix_cohort, [], process.initialize())
    expected = process.aggregator.noise_multiplier * 0.1
    assert 0.5 * expected < noise.std() < 1.6 * expected  # of 15 entries
    state, metrics = process.next(process.initialize())
    assert (metrics["num_clients"], metrics["bytes_up"], metrics["num_clipped"]) == (0, 0, 0)
    assert np.isnan(metrics["train_loss"]) and metrics["epsilon_spent"] > 0 and state.virtual_time_s == 0


def test_the_clip_norm_follows_the_updates(build, make_federation):
    """All six updates are longer than 0.01: b = 1/2 - 3/6 = 0, so S rises by exp(0.2 / 2) in each round."""
    adaptive = {"clip_norm": 0.01, "clipping": "adaptive", "clip_count_noise": 2.0}
    process = build(make_federation(SIZES), privacy=dataclasses.replace(PRIVATE, **adaptive))
    state = silence(process.initialize())
    for round_num in (1, 2, 3):
        state, metrics = process.next(state)
        assert metrics["clip_norm"] == pytest.approx(0.01 * np.exp(0.1 * round_num), rel=1e-6)
        assert metrics["num_clipped"] == 6


def test_the_budget_and_the_noise_of_a_run(build, make_federation):
    process = build(make_federation(SIZES), cohort_size=3)
    state, spent = process.initialize(), []
    while not process.is_spent(state):
        state, metrics = process.next(state)
        spent.append(metrics["epsilon_spent"])
    own = [
        process.aggregator.accounting.compute_epsilon(float(state.aggregator.noise_multiplier), n) for n in (1, 2, 3)
    ]
    assert spent == own and 19.99 < spent[-1] <= 20
    assert process.summarize(state)["privacy"]["epsilon_spent"] == spent[-1]
    first, *others = process.get_notes(state)
    assert "epsilon 20 at delta 1e-05 hides a client more or less; each of 6 clients by chance, 3 a round" in first
    assert "clients.csv" in others[-1] and "simulation only" in others[0]


def test_cohorts_of_all_sizes_are_calls_of_one_size(build, make_federation, monkeypatch):
    process = build(make_federation(SIZES), cohort_size=3)
    places, num_clients, state = set(), set(), process.initialize()

    def note_places(inputs, *arguments):
        padded = pad_cohort(inputs, *arguments)
        places.add(len(padded))
        return padded

    monkeypatch.setattr(training_phase, "pad_cohort", note_places)
    for _ in range(3):
        state, metrics = process.next(state)
        num_clients.add(metrics["num_clients"])
    assert len(places) == 1 and len(num_clients) > 1
