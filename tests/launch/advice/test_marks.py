"""Runs and settings that a reader should be told of."""

import pytest
from made_contests import METHODS, make_measured, make_outcome

from launch.advice.marks import list_marks
from launch.advice.measures import BYTES, TIME, Cost
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
