"""The draw of a round's clients."""

import numpy as np

from tff_algos.client.cohort_draw import sample_cohort


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


def test_an_archetype_without_further_clients_leaves_its_places_to_the_others():
    kinds = np.array([[0, 0], [1, 0], [1, 0], [1, 0], [1, 0]])
    assert {len({0} & set(sample_cohort(5, 4, "stratified", 0, r, kinds=kinds))) for r in range(10)} == {1}
    assert {len(sample_cohort(5, 4, "stratified", 0, r, kinds=kinds)) for r in range(10)} == {4}


def test_where_it_may_be_empty_bernoulli_draws_nobody_as_often_as_chance_has_it():
    """Each of four clients by a chance of 1/4: nobody comes with a chance of (3/4)^4 = 0.316, of 2,000 rounds 633."""
    rounds = range(1, 2001)
    drawn = [sample_cohort(4, 1, "bernoulli", 0, round_num, may_be_empty=True) for round_num in rounds]
    assert 560 < sum(not cohort.size for cohort in drawn) < 705  # 3.5 standard deviations
    for round_num, cohort in zip(rounds, drawn, strict=True):
        usual = sample_cohort(4, 1, "bernoulli", 0, round_num)
        assert np.array_equal(usual, cohort) if cohort.size else usual.size == 1
