"""Plans by hand: what fits into a time, and what is left out where little does."""

import pytest

from launch.contests.methods import ALONE, Method
from launch.contests.plan import Pace, Plan, describe_plan, estimate_makespan, estimate_stages, make_plan

SPACE = {"learning_rate": ("0.1", "0.2", "0.3")}
METHODS = [Method(name, name.upper(), name, space=SPACE) for name in ("local_only", "fedavg", "ifca", "cfl")]
ALWAYS = ("local_only",)
PACE = Pace(2.0, 0.1, 1)


def test_seconds_of_a_plan_by_hand():
    plan = Plan(20, 2, 0.5, 1, (100, 101), 1, (0, 1, 2), 5)
    methods = [METHODS[1], METHODS[2]._replace(cost=3.0), METHODS[3]._replace(space={})]
    # Short runs: twice 2 + 10 x 0.1, twice 2 + 3 x 10 x 0.1, and one of the method that has nothing to try.
    first = 2 * 3 + 2 * 5 + 3
    # The other half with one seed, the whole with the other: 3 + 4, 5 + 8, 3 + 4.
    second = 7 + 13 + 7
    # FedAvg and one of two others, on the average: 4 and 2 + 2 x 20 x 0.1, on three seeds.
    fresh = 3 * (4 + 6)
    assert estimate_stages(plan, methods, {"fedavg"}, PACE) == pytest.approx((first, second, fresh))
    assert estimate_makespan([3, 3, 2], 2) == 4 + 1.5
    assert estimate_makespan([], 2) == 0


def test_the_shares_of_a_run_are_whole_rounds_and_three_at_least():
    plan = Plan(20, 2, 0.33, 1, (100,), 1, (0,), 5)
    assert [plan.count_rounds(share) for share in (0.33, 0.1, 1.0)] == [7, 3, 20]
    assert plan._replace(rounds=2).count_rounds(0.33) == 2


@pytest.mark.parametrize(
    ("seconds", "rounds", "trials", "num_seeds", "left_out"),
    [
        (12, 5, 1, 3, {"ifca", "cfl"}),
        (30, 10, 1, 3, {"ifca", "cfl"}),
        (100, 10, 2, 5, set()),
        (300, 30, 4, 5, set()),
        (1000, 100, 12, 5, set()),
    ],
)
def test_the_largest_plan_that_fits(seconds, rounds, trials, num_seeds, left_out):
    planned = make_plan(METHODS, ALWAYS, seconds, PACE)
    plan = planned.plan
    assert (plan.rounds, plan.trials, len(plan.seeds), set(planned.left_out)) == (rounds, trials, num_seeds, left_out)
    assert sum(planned.stages_s) <= 0.8 * seconds or seconds == 12
    assert not set(plan.seeds) & set(plan.trial_seeds)


def test_more_time_never_makes_a_smaller_plan():
    plans = [make_plan(METHODS, ALWAYS, seconds, PACE) for seconds in range(20, 3000, 20)]
    sizes = [(-len(each.left_out), each.plan.rounds, each.plan.trials) for each in plans]
    assert sizes == sorted(sizes)


def test_what_comes_last_is_left_out_first_with_the_minutes_that_it_needs():
    dear = [*METHODS[:3], METHODS[3]._replace(cost=200.0)]
    planned = make_plan(dear, ALWAYS, 200, PACE)
    assert planned.names == ("local_only", "fedavg", "ifca")
    assert planned.left_out["cfl"].startswith("no time for it: it would take about 4 min")
    # Those that always run are never left out, wherever they stand.
    assert make_plan(METHODS, ("ifca", "cfl"), 1, PACE).names == ("fedavg", "ifca", "cfl")


def test_the_last_few_are_tried_with_their_defaults_before_they_are_left_out():
    many = [*METHODS, *(Method(f"m_{i}", f"M{i}", "fedavg", space=SPACE) for i in range(6))]
    planned = make_plan(many, ALWAYS, 60, PACE)
    assert planned.names == ("local_only", "fedavg", "ifca", "cfl", "m_0") and planned.plan.trials == 1
    assert list(planned.left_out) == ["m_5", "m_4", "m_3", "m_2", "m_1"]


def test_rounds_that_are_asked_for_stay():
    assert {make_plan(METHODS, ALWAYS, seconds, PACE, rounds=7).plan.rounds for seconds in (10, 100, 1000)} == {7}


def test_a_plan_in_lines():
    alone = METHODS[0]._replace(role=ALONE)
    planned = make_plan([alone, *METHODS[1:3], METHODS[3]._replace(cost=200.0)], ALWAYS, 200, PACE)
    assert describe_plan(planned, [alone, *METHODS[1:]], ALWAYS) == [
        "methods  LOCAL_ONLY, FEDAVG, IFCA",
        "length   30 rounds of FEDAVG; every federated method may use as much device time",
        "         LOCAL_ONLY: 90 rounds",
        "trials   4 settings of each method at most, runs of 10 rounds: about 27 s",
        "         the best 2 of these of each method, 30 rounds, 2 seeds: about 54 s",
        "results  the best and LOCAL_ONLY, FEDAVG, each on 5 fresh seeds, up to 10 where time is left:",
        "         about 1 min 15 s",
        f"left out CFL: {planned.left_out['cfl']}",
    ]
    of_two = planned._replace(plan=planned.plan._replace(most_seeds=3), pace=PACE._replace(slots=2))
    lines = describe_plan(of_two, [alone, *METHODS[1:]], ALWAYS, 62.0, 240.0)
    assert lines[1].endswith("as much device time; two runs at a time") and lines[-1] == (
        "time     in all about 3 min 38 s of 4 min"
    )
    assert "results  the best and LOCAL_ONLY, FEDAVG, each on 5 fresh seeds: about 1 min 15 s" in lines
