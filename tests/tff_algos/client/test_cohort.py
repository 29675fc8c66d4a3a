"""The draw of a round's clients, padded cohorts, and what clients are told."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from tff_algos.client.cohort import NOBODY, compute_padded_size, compute_usual_slots, pad_cohort, tell_clients
from tff_algos.client.cohort_draw import sample_cohort
from tff_algos.seeds import derive_seed
from tff_algos.settings.local_training import LocalTrainingConfig


@given(st.integers(1, 10_000))
def test_padding_is_small_and_sizes_are_few(size):
    padded = compute_padded_size(size)
    assert size <= padded <= 1.25 * size
    assert compute_padded_size(padded) == padded


def test_sizes_are_those_of_the_docstring():
    sizes = sorted({compute_padded_size(size) for size in range(1, 41)})
    assert sizes == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40]


def test_usual_places_are_four_deviations_above_the_mean():
    """100 of 1000: 100 + 4 sqrt(100 * 0.9) = 137.9, padded to 160; 5 of 10: 5 + 4 sqrt(2.5) = 11.3 > 10."""
    assert compute_usual_slots(1000, 100) == 160
    assert compute_usual_slots(10, 5) == 10
    assert compute_usual_slots(40, 40) == 40


@given(st.integers(1, 500), st.data())
def test_usual_places_hold_nearly_every_cohort(num_clients, data):
    mean_size = data.draw(st.integers(1, num_clients))
    places = compute_usual_slots(num_clients, mean_size)
    assert binom.sf(places, num_clients, mean_size / num_clients) < 1e-3 and places == compute_padded_size(places)


@given(st.integers(0, 50), st.integers(1, 50))
def test_a_cohort_is_padded_with_nobody_to_its_size_or_to_more(size, places):
    padded = pad_cohort(["client"] * size, places)
    assert padded[:size] == ["client"] * size and padded[size:] == [NOBODY] * (len(padded) - size)
    assert len(padded) == max(places, compute_padded_size(size)) and (NOBODY.path, NOBODY.weight) == ("", 0)


def build_inputs(data, weighting="examples", purpose="training", round_num=3):
    """Clients 0 and 2, in rows 1 and 0, at a rate that halves after every round."""
    training = LocalTrainingConfig(learning_rate=0.4, learning_rate_decay=0.5)
    return tell_clients(
        data, np.array([0, 2]), np.array([1, 0]), weighting, training, seed=7, purpose=purpose, round_num=round_num
    )


def test_inputs_carry_path_group_weight_rate_and_a_seed_of_client_purpose_and_round(make_federation):
    """0.4 halved twice before round 3 is 0.1."""
    data = make_federation([5, 7, 9])
    inputs = build_inputs(data)
    assert [(i.path, int(i.group), float(i.weight)) for i in inputs] == [
        (data.clients[0].path, 1, 5.0),
        (data.clients[2].path, 0, 9.0),
    ]
    assert [float(i.learning_rate) for i in inputs] == pytest.approx([0.1, 0.1])
    assert [float(i.weight) for i in build_inputs(data, "equal")] == [1.0, 1.0]
    for purpose, round_num in (("training", 3), ("training", 4), ("clustering", 3)):
        seeds = [each.seed for each in build_inputs(data, purpose=purpose, round_num=round_num)]
        np.testing.assert_array_equal(seeds, [derive_seed(7, purpose, round_num, client) for client in (0, 2)])


def test_cohorts_are_drawn_from_seed_and_round():
    cohorts = [tuple(sample_cohort(10, 3, "fixed", 0, r)) for r in range(20)]
    assert all(len(set(c)) == 3 and list(c) == sorted(c) for c in cohorts)
    assert len(set(cohorts)) > 5
    assert cohorts[4] == tuple(sample_cohort(10, 3, "fixed", 0, 4)) != tuple(sample_cohort(10, 3, "fixed", 1, 4))
    assert sample_cohort(4, 0, "fixed", 0, 1).tolist() == [0, 1, 2, 3]
    assert len(sample_cohort(4, 99, "fixed", 0, 1)) == 4


def test_bernoulli_cohorts_vary_around_their_mean_and_are_never_empty():
    sizes = [len(sample_cohort(20, 2, "bernoulli", 0, r)) for r in range(400)]
    assert min(sizes) == 1 and len(set(sizes)) > 4
    assert 1.8 < np.mean(sizes) < 2.4


def test_stratified_cohorts_have_as_many_of_each_kind():
    """Ten archetypes of three, in two meta-archetypes: 15 of 30 are one of each and a second one of five."""
    archetypes = np.repeat(np.arange(10), 3)
    kinds = np.array([archetypes, archetypes // 5]).T
    cohorts = [sample_cohort(30, 15, "stratified", 0, r, kinds=kinds) for r in range(40)]
    for cohort in cohorts:
        assert cohort.tolist() == sorted(set(cohort.tolist()))
        assert np.bincount(archetypes[cohort], minlength=10).tolist().count(2) == 5
        assert sorted(np.bincount(archetypes[cohort] // 5)) == [7, 8]
    assert set(np.concatenate(cohorts)) == set(range(30)) and len({tuple(cohort) for cohort in cohorts}) > 30
    assert sample_cohort(30, 15, "stratified", 0, 3, kinds=kinds).tolist() == cohorts[3].tolist()
    assert sample_cohort(30, 0, "stratified", 0, 1, kinds=kinds).tolist() == list(range(30))


def test_an_archetype_without_further_clients_leaves_its_slots_to_the_others():
    kinds = np.array([[0, 0], [1, 0], [1, 0], [1, 0], [1, 0]])
    cohorts = [sample_cohort(5, 4, "stratified", 0, r, kinds=kinds).tolist() for r in range(10)]
    assert all(0 in cohort and len(cohort) == 4 for cohort in cohorts)


def test_where_it_may_be_empty_bernoulli_draws_nobody_as_often_as_chance_has_it():
    """Each of four clients by a chance of 1/4: nobody comes with a chance of (3/4)^4 = 0.316, of 2,000 rounds 633."""
    rounds = range(1, 2001)
    drawn = [sample_cohort(4, 1, "bernoulli", 0, round_num, may_be_empty=True) for round_num in rounds]
    assert 560 < sum(not cohort.size for cohort in drawn) < 705  # 3.5 standard deviations
    for round_num, cohort in zip(rounds, drawn, strict=True):
        usual = sample_cohort(4, 1, "bernoulli", 0, round_num)
        assert np.array_equal(usual, cohort) if cohort.size else usual.size == 1
