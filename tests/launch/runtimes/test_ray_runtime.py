"""What needs no Ray of its runtime."""

from launch.runtimes.ray_runtime import split_evenly


def test_shares_are_even_in_order_and_never_empty():
    assert split_evenly("abcdefg", 3) == ["ab", "cd", "efg"]
    assert split_evenly("ab", 5) == ["a", "b"]
    assert split_evenly([], 5) == []
