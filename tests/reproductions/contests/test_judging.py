"""Who is ahead of whom, and which predictions came true, by hand-made results."""

import pytest

from reproductions.contests.judging import BEST, BEST_GROUP, BEST_PLAIN, judge
from reproductions.contests.predictions import (
    EXPECTED,
    HELD,
    OPEN,
    PREDICTIONS,
    REFUTED,
    list_asked,
    tell_outcome,
)
from reproductions.contests.problems import PROBLEMS

NOISE = (0.002, -0.001, 0.001, -0.002, 0.0)
TITLES = {
    "fedavg_fine_tuned": "FedAvg + fine-tuning",
    "amfl_p": "AMFL-P",
    "local_only": "Local training",
    "ditto": "Ditto + fine-tuning",
}


def make(**means):
    """Results on five seeds, each method's with a noise of its own."""
    return {
        name: {seed: mean + NOISE[(seed + shift) % 5] for seed in range(5)}
        for shift, (name, mean) in enumerate(means.items())
    }


def test_one_family_has_one_verdict_a_pair():
    judged = judge(make(fedavg=0.5, ifca=0.7, fedcd=0.7001, oracle=0.9), [("fedavg", "fedcd")])
    assert judged.best == "fedcd" and judged.alike == ("ifca",) and "oracle" not in judged.values
    assert set(judged.pairs) == {("fedcd", "fedavg"), ("fedcd", "ifca")}
    assert judged.find("fedavg", BEST) == judged.find("fedavg", BEST_GROUP) == "behind"
    assert judged.find("fedcd", "fedavg") == "ahead" and judged.find(BEST, "fedcd") == ""


def test_the_best_is_one_of_those_that_have_further_seeds():
    """IFCA was told from the best by the planned seeds; that its five are better than ten says nothing."""
    values = make(fedavg=0.5, fedcd=0.7, cfl=0.69, ifca=0.71)
    for name in ("fedcd", "cfl"):
        values[name] |= {5: 0.6, 6: 0.6}
    assert judge(values).best == "fedcd"
    with pytest.raises(ValueError, match="empty"):
        judge({"oracle": {0: 0.5}})


def test_of_a_method_with_two_seeds_nothing_is_said():
    values = make(fedavg=0.5, ifca=0.7)
    values["fedsikd"] = {0: 0.2, 1: 0.2}
    judged = judge(values)
    assert judged.best == "ifca" and judged.alike == () and judged.has_too_few_seeds("fedsikd", BEST)
    assert not judged.has_too_few_seeds("fedavg", BEST)


def test_a_prediction_of_what_has_no_result_or_too_few_is_open():
    titles = {name: name for name in ("ifca", "fedcd", "fedsikd", "fedavg_fine_tuned", "local_only")}
    without_cfl = judge(make(ifca=0.9, fedcd=0.8, fedsikd=0.7), list_asked("seconds", "rotated"), titles)
    assert tell_outcome("seconds", "rotated", without_cfl, titles) == (OPEN, "no result: cfl")
    values = make(fedavg_fine_tuned=0.9)
    values["local_only"] = {0: 0.9, 1: 0.8}
    judged = judge(values, list_asked("seconds", "har"), titles)
    assert tell_outcome("seconds", "har", judged, titles) == (OPEN, "too few seeds: local_only, fedavg_fine_tuned")


def test_both_looks_have_half_the_error():
    """Of 20 points above 0 by a deviation of 1, p is known: 0.04 with five seeds lies between both rates."""
    by_seed = {seed: 0.01 * (1.09 + offset) for seed, offset in enumerate((-1.0, -0.6, 0.0, 0.4, 1.2))}
    judged = judge({"fedavg": dict.fromkeys(range(5), 0.0), "ifca": by_seed})
    (pair,) = judged.pairs.values()
    assert 0.025 < pair.p_value < 0.05 and judged.alike == ("fedavg",)


def test_the_best_without_steps_at_the_end_is_known_by_its_title():
    judged = judge(make(fedavg=0.5, ditto=0.8, local_only=0.6, fedavg_fine_tuned=0.7), titles=TITLES)
    assert judged.names[BEST_PLAIN] == "local_only" and BEST_GROUP not in judged.names


def test_every_prediction_can_be_put():
    assert {(equal, problem) for equal, by_problem in PREDICTIONS.items() for problem in by_problem} == set(EXPECTED)
    assert {problem for _, problem in EXPECTED} == set(PROBLEMS)
    assert list_asked("seconds", "har") == [("local_only", "fedavg_fine_tuned")]


@pytest.mark.parametrize(
    ("equal", "problem", "means", "outcome"),
    [
        ("seconds", "building_new", {"amfl_p": 0.8, "fedavg_fine_tuned": 0.8, "local_only": 0.7}, (HELD, "")),
        (
            "seconds",
            "building_new",
            {"amfl_p": 0.8, "fedavg_fine_tuned": 0.7, "local_only": 0.7},
            (
                REFUTED,
                "AMFL-P is ahead of FedAvg + fine-tuning; Local training is not told from FedAvg + fine-tuning",
            ),
        ),
        ("seconds", "building_new", {"amfl_p": 0.8, "local_only": 0.7}, (OPEN, "no result: FedAvg + fine-tuning")),
        (
            "seconds",
            "rotated",
            {"ifca": 0.9, "cfl": 0.86, "fedcd": 0.85, "fedsikd": 0.8},
            (HELD, ""),
        ),
        (
            "seconds",
            "rotated",
            {"amfl_p": 0.95, "cfl": 0.84, "fedcd": 0.96, "fedsikd": 0.8},
            (REFUTED, "fedcd leads; cfl has less than 85 %; fedcd is itself the leader, not behind fedcd"),
        ),
        (
            "seconds",
            "har",
            {"fedcd": 0.9, "fedavg_fine_tuned": 0.8, "local_only": 0.7},
            (REFUTED, "fedcd is ahead of all rivals"),
        ),
        (
            "seconds",
            "archetypes20",
            {"ditto": 0.9, "ifca": 0.8, "fedavg": 0.7},
            (REFUTED, "Ditto + fine-tuning is ahead of all methods of groups"),
        ),
        ("seconds", "archetypes20", {"ditto": 0.8, "ifca": 0.8, "fedavg": 0.7}, (HELD, "")),
        ("seconds", "archetypes65", {"ditto": 0.62}, (HELD, "")),
        ("seconds", "archetypes65", {"ditto": 0.64}, (REFUTED, "Ditto + fine-tuning is more than 3 points above it")),
        (
            "seconds",
            "dirichlet",
            {"fedavg_fine_tuned": 0.8, "local_only": 0.9, "fedsikd": 0.6, "random_cluster": 0.6},
            (REFUTED, "Local training is ahead of FedAvg + fine-tuning"),
        ),
        ("bytes", "har", {"partial": 0.7, "fedavg_fine_tuned": 0.7}, (HELD, "")),
        (
            "bytes",
            "slow_mnist",
            {"fedavg": 0.7, "async_periodic": 0.6, "buffered": 0.8},
            (REFUTED, "buffered is ahead of fedavg"),
        ),
    ],
)
def test_what_came_of_a_prediction(equal, problem, means, outcome):
    titles = {name: name for name in (*means, "fedavg")} | TITLES
    judged = judge(make(**means), list_asked(equal, problem), titles, floor=0.6)
    assert tell_outcome(equal, problem, judged, titles) == outcome
