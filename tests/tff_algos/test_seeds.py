"""Seeds are functions of what they are for."""

import numpy as np

from tff_algos.seeds import derive_generator, derive_seed


def test_same_arguments_give_the_same_seed_and_each_argument_matters():
    base = {"seed": 1, "purpose": "training", "round_num": 2, "client": 3, "slot": 4}
    expected = derive_seed(**base)
    assert expected.shape == (2,) and expected.dtype == np.int32
    np.testing.assert_array_equal(derive_seed(**base), expected)
    for change in ({"seed": 2}, {"purpose": "noise"}, {"round_num": 3}, {"client": 4}, {"slot": 5}):
        assert not np.array_equal(derive_seed(**{**base, **change}), expected), change


def test_seeds_of_many_clients_and_rounds_do_not_collide():
    seeds = {tuple(derive_seed(0, "training", r, c)) for r in range(30) for c in range(30)}
    assert len(seeds) == 900


def test_the_global_generator_plays_no_part():
    drawn = []
    for round_num in (1, 1, 2):
        # Another state of the global generator before each draw.
        np.random.seed(len(drawn))
        drawn.append(derive_generator(5, "cohort", round_num).random())
    assert drawn[0] == drawn[1] != drawn[2]
