"""Search spaces are read, and held to the flags' own ranges."""

import pytest

from launch.settings.flags import FlagError
from launch.sweeps.tuning.search_space import Range, check_space, find_start, format_search, parse_search


def test_choices_and_ranges_are_read_and_written_back():
    text = "a=1|2;b=int(2,8);c=float(0.0,0.5);d=log(0.0001,0.1)"
    space = parse_search(f" {text.replace(';', ' ; --')} ;")
    assert space == {
        "a": ("1", "2"),
        "b": Range("int", 2, 8),
        "c": Range("float", 0.0, 0.5),
        "d": Range("log", 0.0001, 0.1),
    }
    assert format_search(space) == text and parse_search(format_search(space)) == space


def test_the_start_is_the_point_of_the_space_with_the_flags_own_values():
    flags = {"a": 0.001, "b": 3, "c": True, "d": "adam", "e": 0.05, "f": 32}
    space = parse_search("a=0.1|1e-3;b=int(2,8);c=true|false;d=sgd|adam;e=log(0.01,1);f=16|32")
    start = {"a": "1e-3", "b": "3", "c": "true", "d": "adam", "e": "0.05", "f": "32"}
    assert find_start(space, flags) == start
    for name, outside in {"a": 0.01, "b": 9, "c": False, "d": "rmsprop", "e": 0.001, "f": 64}.items():
        expected = {**start, "c": "false"} if name == "c" else None
        assert find_start(space, {**flags, name: outside}) == expected


def test_numbers_are_typed_short_but_never_leave_the_range():
    assert Range("int", 2, 8).format_value(3) == "3"
    assert Range("log", 1e-4, 1e-1).format_value(0.0123456789) == "0.0123457"
    assert Range("float", 0.12345678, 0.5).format_value(0.12345679) == "0.123457"
    assert Range("float", 0.12345612, 0.5).format_value(0.12345613) == "0.12345613"  # 0.123456 in 6 digits
    assert Range("float", 0.0, 0.98765432).format_value(0.98765432) == "0.987654"
    assert Range("float", 0.0, 0.98765477).format_value(0.98765477) == "0.98765477"  # 0.987655 in 6 digits
    for value in (0.12345678, 0.3, 0.98765432):
        shortened = Range("float", 0.12345678, 0.98765432).format_value(value)
        assert Range("float", 0.12345678, 0.98765432).format_value(float(shortened)) == shortened


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("learning_rate=log(0.1,1000)", ""),
        ("learning_rate=float(0,1)", "--search: --learning_rate=0: expected a number above 0"),
        ("epochs=int(0,3)", "--search: --epochs=0: expected an integer at least 1"),
        ("epochs=float(1,3)", "--search: epochs=float(1.0,3.0): takes whole numbers; expected int"),
        ("epochs=log(1,8)", "takes whole numbers; expected int"),
        ("learning_rate=int(1,2)", ""),
        ("validation_fraction=float(0.1,0.5)", "--search: --validation_fraction=0.5: expected a number at least 0 and"),
        ("optimizer=int(1,2)", "--search: --optimizer=1: expected one of"),
        ("model=int(1,2)", "--search: model=int(1,2): takes no single number; expected choices"),
        ("epochs=1|x", "--search: --epochs=x: expected an integer"),
        ("fedavg_eposch=int(1,2)", "--search: --fedavg_eposch: unknown flag; did you mean --epochs"),
        ("temperature=float(1,2)", "--search: --temperature: belongs to --algo=fedsikd and 2 more, expected settings"),
    ],
)
def test_a_range_that_leaves_that_of_the_flag_is_refused(search, message):
    space = parse_search(search)
    if not message:
        check_space(space, "fedavg")
        return
    with pytest.raises(FlagError) as refused:
        check_space(space, "fedavg")
    assert str(refused.value).startswith(message) or message in str(refused.value)
    assert "\n" not in str(refused.value)
