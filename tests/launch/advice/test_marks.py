"""Runs and settings that a reader should be told of."""

import pytest
from made_contests import METHODS, make_measured, make_outcome

from launch.advice.marks import list_marks, list_rising
from launch.advice.measures import BYTES, TIME, Cost
from launch.contests.contest import TrialResult
from launch.sweeps.tuning.search_space import Range

MEANS, OFFSETS = (0.8, 0.81, 0.82), (0.0, 0.01)


def mark(method, fedavg=None, space=None):
    outcome = make_outcome(["fedavg", "ifca", "ditto", "local_only"])
    changed = [
        each._replace(method=each.method._replace(space=space or {})) if each.method.name == method.name else each
        for each in outcome.entered
    ]
    return list_marks([each for each in (method, fedavg) if each], outcome._replace(entered=tuple(changed)))


def test_a_method_of_groups_that_made_none():
    ifca = make_measured("ifca", MEANS, OFFSETS)
    assert mark(ifca._replace(models={0: 1, 1: 1, 2: 1})) == {
        "ifca": ["all clients ended with one model: it made no groups"]
    }
    assert mark(ifca._replace(models={0: 2, 1: 1, 2: 1})) == {"ifca": ["with 2 seeds of 3 it made no groups"]}
    assert mark(ifca._replace(models={0: 2, 1: 2, 2: 3})) == {}
    assert mark(make_measured("fedavg", MEANS, OFFSETS, models={0: 1})) == {}, "which has one model by nature"


def test_a_run_of_three_rounds_and_why():
    ditto = make_measured("ditto", MEANS, OFFSETS)
    for limit, why in ((BYTES, ", since its bytes were used up"), (TIME, ", since its time was used up")):
        assert mark(ditto._replace(cost=Cost(1.0, 1.0, 0.0, 3.0, limit))) == {"ditto": [f"it had 3 rounds{why}"]}
    assert mark(ditto._replace(cost=Cost(1.0, 1.0, 0.0, 4.0))) == {}
    assert mark(make_measured("local_only", MEANS, OFFSETS, cost=Cost(0.0, 1.0, 0.0, 1.0))) == {}


def test_a_method_that_is_fedavg_to_the_bit():
    fedavg = make_measured("fedavg", MEANS, OFFSETS)
    same = make_measured("ditto", MEANS, OFFSETS)
    (found,) = mark(same, fedavg)["ditto"]
    assert found.startswith("every result is exactly FedAvg's")
    assert mark(make_measured("ditto", MEANS, (0.0, 0.0100001)), fedavg) == {}
    assert mark(same._replace(validations={**same.validations, 0: 0.1}), fedavg) == {}


LENGTHS = ("1", "5")
RATES = Range("log", 0.001, 1.0)


@pytest.mark.parametrize(
    ("scores", "settings", "space", "is_rising"),
    [
        (({100: 0.7}, {100: 0.72, 101: 0.7}), {}, {}, True),  # 2 points more than in the short run
        (({100: 0.7}, {100: 0.705, 101: 0.9}), {}, {}, False),  # of the same seed half a point
        (({100: 0.7}, {100: 0.7}), {"learning_rate": "0.9"}, {"learning_rate": RATES}, True),
        (({100: 0.7}, {100: 0.7}), {"learning_rate": "0.1"}, {"learning_rate": RATES}, False),
        (({100: 0.7}, {100: 0.7}), {"epochs": "5"}, {"epochs": LENGTHS}, False),  # nothing came of the longer run
        (({}, {100: 0.7}), {"epochs": "5"}, {"epochs": LENGTHS}, True),
        (({}, {100: 0.7}), {"epochs": "1"}, {"epochs": LENGTHS}, False),
        (({}, {100: 0.7}), {"learning_rate": "0.1", "epochs": "3"}, {"learning_rate": RATES}, False),
        (({}, {100: 0.7}), {"learning_rate": "0.1", "epochs": "5"}, {"learning_rate": RATES, "epochs": LENGTHS}, True),
    ],
)
def test_training_alone_that_might_be_better_for_longer(scores, settings, space, is_rising):
    outcome = make_outcome(["fedavg", "local_only"])
    method = METHODS["local_only"]._replace(space=space)
    trials = (TrialResult(0, settings, scores), TrialResult(1, {"epochs": "3"}))
    entered = (outcome.entered[0], outcome.entered[1]._replace(method=method, trials=trials, chosen=settings))
    found = list_rising(outcome._replace(entered=entered), 0.01)
    assert found == (("local_only",) if is_rising else ())
    measured = [make_measured("local_only", MEANS, OFFSETS)]
    marks = list_marks(measured, outcome, found)
    assert any("still improving" in mark for mark in marks.get("local_only", [])) == is_rising


@pytest.mark.parametrize(
    ("values", "chosen", "end"),
    [
        (Range("log", 0.001, 1.0), "0.9", "upper"),  # 0.985 of the way
        (Range("log", 0.001, 1.0), "0.0013", "lower"),  # 0.04
        (Range("log", 0.001, 1.0), "0.5", ""),
        (Range("float", 0.0, 0.95), "0", ""),  # below which nothing is
        (Range("int", 2, 6), "6", "upper"),
        (("0.1", "0.01", "1"), "1", "upper"),
        (("0.1", "0.01", "1"), "0.1", ""),
        (("0", "50"), "50", ""),  # two say nothing of a range
        (("per_client", "global", "none"), "none", ""),
    ],
)
def test_the_best_at_the_end_of_what_was_tried(values, chosen, end):
    ditto = make_measured("ditto", MEANS, OFFSETS, settings={"pull": chosen})
    expected = {"ditto": [f"the best pull is at the {end} end of what was tried ({chosen})"]} if end else {}
    assert mark(ditto, space={"pull": values}) == expected and METHODS["ditto"].space == {}
