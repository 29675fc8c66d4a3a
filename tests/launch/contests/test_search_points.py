"""The points that trials take: different, even, always the same, and the settings as they are first."""

import itertools
from collections import Counter

import pytest
import scipy.stats

from launch.contests.search_points import draw_points
from launch.settings.errors import FlagError
from launch.settings.flags import parse_config
from launch.sweeps.tuning.even_points import _list_columns, _part, _tie
from launch.sweeps.tuning.own_space import find_nearest_point
from launch.sweeps.tuning.search_space import Range, parse_search

SPACE = parse_search("learning_rate=log(0.001,1);epochs=int(1,4);schedule=together|head_first")


def test_the_points_are_these_on_every_machine():
    assert draw_points(SPACE, 4) == (
        {"learning_rate": "0.00365", "epochs": "1", "schedule": "head_first"},
        {"learning_rate": "0.649", "epochs": "4", "schedule": "together"},
        {"learning_rate": "0.115", "epochs": "1", "schedule": "together"},
        {"learning_rate": "0.0205", "epochs": "4", "schedule": "head_first"},
    )
    assert draw_points(SPACE, 1, seed=1) != draw_points(SPACE, 1)


def test_correlation_by_hand():
    """The ranks 0 to 7 and the same with each two neighbours exchanged: 2 r - 7 has the squares 168, products 152."""
    straight, exchanged = list(range(8)), [1, 0, 3, 2, 5, 4, 7, 6]
    ranks = [_list_columns(0, own) for own in (straight, exchanged)]
    assert _tie(*ranks) == pytest.approx((152 / 168) ** 2)
    # Of two choices the first has the lower half: 8 times (1 - 1/2) and so on, with the ranks +-16 of 168 and 8.
    half = _list_columns(2, straight)
    assert len(half) == 1 and _tie(half, ranks[0]) == pytest.approx(32**2 / (8 * 168))
    # Of three choices 3, 3 and 2 points have each: products -120, 24 and 96, squares 120, 120 and 96.
    by_choice = [120**2 / (120 * 168), 24**2 / (120 * 168), 96**2 / (96 * 168)]
    assert _tie(_list_columns(3, straight), ranks[0]) == pytest.approx(sum(by_choice) / 3)


def test_distance_of_maxpro_by_hand():
    assert _part(0, [2, 5], 0, 1) == -3
    assert (_part(2, [2, 5], 0, 1), _part(2, [2, 3], 0, 1)) == (1.5, 0.5)
    assert (_part(4, [2, 3], 0, 1), _part(4, [3, 4], 0, 1)) == (0.25, 1.25)


@pytest.mark.parametrize("seed", range(5))
def test_of_each_eight_points_every_part_of_a_range_has_one_and_every_choice_its_share(seed):
    points = draw_points(parse_search("a=float(0,1);b=x|y;c=int(1,4);d=p|q|r"), 16, seed)
    for eight in (points[:8], points[8:]):
        assert sorted(int(float(point["a"]) * 8) for point in eight) == list(range(8))
        assert Counter(point["b"] for point in eight) == {"x": 4, "y": 4}
        assert set(Counter(point["c"] for point in eight).values()) == {2}
        assert sorted(Counter(point["d"] for point in eight).values()) == [2, 3, 3]


@pytest.mark.parametrize("seed", range(5))
def test_no_settings_go_together(seed):
    """What a method of the league has: where all points with steps at the end had large rates, none told them apart."""
    space = parse_search("rate=log(0.005,1);steps=0|50;teacher=leader|cluster;momentum=float(0,0.9);weight=float(0,1)")
    points = draw_points(space, 8, seed)
    numbers = {
        name: [float(point[name]) if isinstance(each, Range) else each.index(point[name]) for point in points]
        for name, each in space.items()
    }
    for first, second in itertools.combinations(numbers.values(), 2):
        assert abs(scipy.stats.spearmanr(first, second).correlation) < 0.3
    with_steps = sorted(point["rate"] for point in points if point["steps"] == "50")
    ranks = sorted(float(point["rate"]) for point in points)
    halves = [ranks.index(float(rate)) // 4 for rate in with_steps]
    assert sorted(halves) == [0, 0, 1, 1]


def test_the_first_points_are_the_same_for_any_larger_number_and_all_differ():
    points = draw_points(SPACE, 40)
    assert len({tuple(point.values()) for point in points}) == 40
    for number in (1, 6, 39):
        assert draw_points(SPACE, number) == points[:number]
    for point in points:
        assert 0.001 <= float(point["learning_rate"]) <= 1 and 1 <= int(point["epochs"]) <= 4


def test_where_there_are_no_more_points_it_ends():
    space = parse_search("a=1|2|3;b=int(1,3);c=x|y|z")
    points = draw_points(space, 1000)
    assert {tuple(point.values()) for point in points} == set(itertools.product("123", "123", "xyz"))
    assert len(points) == 27
    assert draw_points({}, 6) == ({},) and draw_points(parse_search("a=1"), 6) == ({"a": "1"},)
    # Numbers that three digits do not tell apart, and that six do not.
    narrow = draw_points(parse_search("a=float(0.1,0.1001)"), 4)
    assert [point["a"] for point in narrow] == ["0.100006", "0.100094", "0.100044", "0.100069"]
    assert draw_points(parse_search("a=float(0.1,0.1000001)"), 3) == ({"a": "0.1"},)


def test_the_given_point_is_first_and_comes_once():
    grid = parse_search("a=1|2;b=true|false")
    for a, b in itertools.product("12", ("true", "false")):
        points = draw_points(grid, 4, first={"a": a, "b": b})
        assert points[0] == {"a": a, "b": b} and len({tuple(point.values()) for point in points}) == 4
    others = draw_points(SPACE, 5)
    first = {"learning_rate": "0.05", "epochs": "2", "schedule": "together"}
    assert draw_points(SPACE, 6, first=first) == (first, *others)


def test_the_nearest_point_has_the_settings_of_a_run_where_the_space_does():

    def resolve(more):
        return parse_config(["--algo=fedcd", "--learning_rate=0.5", "--late_score=0.1", "--rounds=10", *more])

    space = parse_search("learning_rate=log(0.001,0.1);milestones=2|2,5;late_round=int(5,20);late_score=float(0,0.5)")
    # The rate is above the range, and the default milestones are none of the choices and none of these rounds.
    assert find_nearest_point(space, resolve) == {
        "learning_rate": "0.01",
        "milestones": "2",
        "late_round": "20",
        "late_score": "0.1",
    }
    late = parse_search("fedcd_late_round=int(30,41);milestones=2,5")
    assert find_nearest_point(late, resolve) == {"fedcd_late_round": "35", "milestones": "2,5"}
    with pytest.raises(FlagError, match="--milestones=5,15,25,30: expected rounds up to the last one"):
        find_nearest_point(parse_search("late_round=int(30,41)"), resolve)


def test_points_that_are_the_same_without_what_does_nothing_are_one_trial():
    """Without steps their rate does nothing: of all points without steps one is left."""
    space = parse_search("steps=0|50;rate=log(0.01,0.1)")

    def simplify(point):
        return {"steps": "0"} if point["steps"] == "0" else point

    points = draw_points(space, 6, first={"steps": "0", "rate": "0.05"}, simplify=simplify)
    assert points[0] == {"steps": "0"} and len(points) == 6
    assert all(point["steps"] == "50" for point in points[1:]) and len({point["rate"] for point in points[1:]}) == 5
