"""Seats: who gets one, who is refused in which words, and what a server that is started again knows of them."""

import hashlib
import json

import pytest

from launch.live.messages import MessageError
from launch.live.roster import Refusal, Roster, read_join
from launch.runs.run_records import RunRecordError

KEYS = [f"{index:032x}" for index in range(5)]


def join(index, **changes):
    header = {
        "protocol": 1,
        "key": KEYS[index],
        "name": "Ann",
        "kind": "python",
        "num_train": 10 + index,
        "num_test": 2,
    }
    return read_join(header | {"columns": "of the run"} | changes)


def refuse(roster, *arguments, **changes):
    with pytest.raises(Refusal) as refusal:
        roster.admit(join(*arguments, **changes))
    assert "\n" not in refusal.value.reason
    return refusal.value.reason


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "roster.json"


@pytest.fixture
def dealt(path):
    return Roster(path, [(30, 3), (20, 2)])


@pytest.fixture
def own(path):
    return Roster(path, most=3, columns="of the run")


def test_a_key_is_kept_as_its_hash_and_a_name_hides_nothing(dealt, path):
    dealt.admit(join(1, name="A\x1b[2J\u202enn"))
    dealt.fix()
    assert not path.exists()  # nothing is left of a run that has not begun, and one that it replaces keeps its own
    dealt.keep()
    text = path.read_text()
    assert KEYS[1] not in text and hashlib.sha256(KEYS[1].encode()).hexdigest() in text
    assert dealt.name_client(0) == "A\\u001b[2J\\u202enn (seat 0)" and dealt.name_client(1) == "seat 1"


def test_dealt_seats_are_taken_in_order_also_later_until_all_are(dealt, path):
    assert [dealt.admit(join(index)) for index in (2, 2)] == [0, 0]
    dealt.fix()
    dealt.keep()
    assert len(json.loads(path.read_text())["seats"]) == 2
    assert dealt.admit(join(0)) == 1 and dealt.admit(join(2, num_train=0)) == 0
    assert refuse(dealt, 1) == "all 2 seats are taken"
    assert dealt.count_examples(0) == (30, 3)
    assert "--most_examples" in refuse(dealt, 1, round_most_examples=5)


def test_people_with_own_examples_have_seats_if_they_came_before_round_1(own):
    assert [own.admit(join(index)) for index in (0, 1, 2)] == [0, 1, 2]
    assert refuse(own, 3) == "all 3 seats are taken"
    own.release(1)
    own.admit(join(0, num_train=11))  # as long as it has not begun
    assert own.fix() == [0, 2]
    assert [own.count_examples(client) for client in (0, 1)] == [(11, 2), (12, 2)]
    assert "has begun" in refuse(own, 1)
    assert own.admit(join(2)) == 1
    assert refuse(own, 2, num_train=5) == "5 examples and 2 to test, expected 12 and 2, as at joining"


def test_nobody_says_that_it_has_more_examples_than_a_round_can_order(path):
    roster = Roster(path, most=3, columns="of the run", most_examples=100)
    assert roster.admit(join(0, num_train=100)) == 0
    refused = refuse(roster, 1, num_train=2**31 - 1)
    assert refused.startswith("2,147,483,647 examples are more than") and refused.endswith("--most_examples=100")


def test_own_examples_are_of_the_run_s_description(own):
    assert "--data" in refuse(own, 0, num_train=0)
    assert "another description" in refuse(own, 0, columns="other")
    assert "another description" in refuse(own, 0, columns=None)


@pytest.mark.parametrize(
    "changes",
    [
        {"key": "ab" * 15},
        {"key": "G" * 32},
        {"key": None},
        {"name": "x" * 61},
        {"name": 3},
        {"num_train": -1},
        {"num_train": True},
        {"num_test": 1.5},
        {"num_test": 2**31},
        {"round_most_examples": 0},
        {"columns": 7},
    ],
)
def test_what_cannot_be_read_is_no_join(changes):
    with pytest.raises(MessageError) as error:
        join(0, **changes)
    assert str(error.value).startswith(next(iter(changes)))


def test_another_version_is_refused():
    with pytest.raises(Refusal, match="version 1"):
        read_join({"protocol": 2})


def test_a_server_that_is_started_again_has_the_same_seats(dealt, path):
    dealt.admit(join(3))
    dealt.fix()
    dealt.keep()
    again = Roster(path, [(30, 3), (20, 2)])
    assert again.run != dealt.run
    again.read()
    assert (again.run, again.seats, again.is_fixed) == (dealt.run, dealt.seats, True)
    assert again.admit(join(3)) == 0 and again.admit(join(1)) == 1
    assert again.admit(join(1)) == 1


SEAT = {"key_hash": "0" * 64, "name": "a", "kind": "python", "num_train": 1, "num_test": 0}


@pytest.mark.parametrize(
    ("run", "seats"),
    [
        (7, [SEAT]),
        ("0" * 32, {}),
        ("0" * 32, []),
        ("0" * 32, [None]),
        ("0" * 32, [SEAT | {"key_hash": "x"}]),
        ("0" * 32, [SEAT | {"num_train": "3"}]),
        ("0" * 32, ["seat"]),
    ],
)
def test_a_damaged_file_is_a_line(own, path, run, seats):
    path.parent.mkdir()
    path.write_text(json.dumps({"run": run, "seats": seats}))
    with pytest.raises(RunRecordError) as error:
        own.read()
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)


def test_a_file_of_another_number_of_clients_is_a_line(dealt, path):
    dealt.fix()
    dealt.keep()
    with pytest.raises(RunRecordError, match="2 seats, expected 1"):
        Roster(path, [(1, 0)]).read()
