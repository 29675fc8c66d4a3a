"""The points that trials take: different, even, always the same, and the settings as they are first."""

import itertools

import pytest

from launch.contests.search_points import draw_points
from launch.settings.errors import FlagError
from launch.settings.flags import parse_config
from launch.sweeps.tuning.even_points import _compute_share
from launch.sweeps.tuning.own_space import find_nearest_point
from launch.sweeps.tuning.search_space import parse_search

SPACE = parse_search("learning_rate=log(0.001,1);epochs=int(1,4);schedule=together|head_first")


def test_the_points_are_these_on_every_machine():
    assert draw_points(SPACE, 4) == (
        {"learning_rate": "0.0164", "epochs": "2", "schedule": "head_first"},
        {"learning_rate": "0.0653", "epochs": "4", "schedule": "together"},
        {"learning_rate": "0.26", "epochs": "1", "schedule": "head_first"},
        {"learning_rate": "0.00412", "epochs": "3", "schedule": "together"},
    )
    assert draw_points(SPACE, 1, seed=1) != draw_points(SPACE, 1)


def test_a_share_has_the_digits_of_the_index_in_the_other_order_and_exchanged():
    """6 is 110 in the base 2: 0.011 are 3 eighths, and with 0 and 1 exchanged in the first place 0.111 are 7."""
    as_they_are, exchanged = [0, 1], [1, 0]
    assert _compute_share(6, [as_they_are] * 3) == 3 / 8
    assert _compute_share(6, [exchanged, as_they_are, as_they_are]) == 7 / 8
    assert _compute_share(5, [[0, 2, 1]] * 2) == pytest.approx(1 / 3 + 2 / 9), "12 in the base 3: 0.21, and so 0.12"


@pytest.mark.parametrize("seed", range(5))
def test_each_part_of_a_range_has_its_share_of_the_first_points(seed):
    for number in (2, 4, 8, 16):
        points = draw_points(parse_search("a=float(0,1)"), number, seed)
        assert sorted(int(float(point["a"]) * number) for point in points) == list(range(number))
    # Of two choices and the thirds of a range, six points have each pair once; so have the next six.
    points = draw_points(parse_search("a=float(0,3);b=x|y"), 12, seed)
    for six in (points[:6], points[6:]):
        pairs = sorted((int(float(point["a"])), point["b"]) for point in six)
        assert pairs == list(itertools.product(range(3), "xy"))


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
    assert [point["a"] for point in narrow] == ["0.100096", "0.100046", "0.100071", "0.100021"]
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
