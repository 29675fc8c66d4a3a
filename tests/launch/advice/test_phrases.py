"""What a method does is said in a few words."""

import pytest
from made_contests import METHODS, make_measured

from launch.advice.candidates import CANDIDATES, FEDAVG, ROLES
from launch.advice.phrases import WORDS, explain
from launch.contests.methods import GROUPS
from launch.settings.algorithms import ALGORITHMS

EVEN = (0.0, 0.01)


@pytest.mark.parametrize(
    ("models", "words"),
    [
        ({0: 3, 1: 3}, "three models, and each client uses the one that fits it"),
        ({0: 12}, "12 models, and each client uses the one that fits it"),
        ({0: 2, 1: 3}, "several models, and each client uses the one that fits it"),
        ({}, "several models, and each client uses the one that fits it"),
        ({0: 1, 1: 1}, "one model for all"),
    ],
)
def test_models_are_counted(models, words):
    assert explain(make_measured("ifca", (0.9, 0.9), EVEN, models=models), METHODS["ifca"]) == words


def test_steps_at_the_end_are_said():
    fedavg = make_measured("fedavg", (0.9, 0.9), EVEN, settings={"final_steps": "50"})
    words = "one model for all, fitted at the end to each client's own data"
    assert explain(fedavg, METHODS["fedavg"]) == words
    fixed = METHODS["fedavg"]._replace(fixed=("--final_steps=50",))
    assert explain(fedavg._replace(settings={}), fixed) == words
    assert explain(fedavg._replace(settings={"final_steps": "0"}), METHODS["fedavg"]) == "one model for all"


def test_every_algorithm_that_federates_has_words_and_own_ones_have_none():
    assert set(WORDS) == set(ALGORITHMS) - {"local_only", "pooled"}
    own = METHODS["fedavg"]._replace(algo="mine:ALGORITHM")
    assert explain(make_measured("fedavg", (0.9,), EVEN, settings={"final_steps": "50"}), own) == ""
    assert all(len(words.format(models="three models").split()) <= 16 for words in WORDS.values())


def test_groups_that_share_one_model_are_no_lack_of_groups():
    """FedSiKD ends with one model for all, so that it counts as such."""
    of_groups = {name for name, words in WORDS.items() if "{models}" in words}
    roles = {**ROLES, **{each.algo: each.role for each in CANDIDATES if each.algo != FEDAVG}}
    assert {name for name, role in roles.items() if role == GROUPS} == of_groups
    words = explain(make_measured("fedavg", (0.9,), EVEN), METHODS["fedavg"]._replace(algo="fedsikd"))
    assert words == "one model for all, taught in groups of clients with similar data"
