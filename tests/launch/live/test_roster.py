"""Seats: who gets one, who is refused in which words, and what a server that is started again knows of them."""

import hashlib
import itertools
import json

import pytest

from launch.live import roster as module
from launch.live.messages import MessageError
from launch.live.roster import Refusal, Roster, read_caller, read_join
from launch.runs.run_records import RunRecordError

KEYS = [f"{index:032x}" for index in range(5)]


def join(index, **changes):
    header = {
        "protocol": 2,
        "key": KEYS[index],
        "token": "token-0",
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


@pytest.fixture(autouse=True)
def _named_tokens(monkeypatch):
    names = map("token-{}".format, itertools.count())
    monkeypatch.setattr(module.secrets, "token_urlsafe", lambda size: next(names))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "roster.json"


def share(*arguments, **options):
    """A roster whose one token is token-0."""
    roster = Roster(*arguments, is_shared=True, **options)
    assert set(roster.draw_tokens().values()) == {"token-0"}
    return roster


@pytest.fixture
def dealt(path):
    return share(path, [(30, 3), (20, 2)])


@pytest.fixture
def own(path):
    return share(path, most=3, columns="of the run")


def test_a_link_is_for_one_seat_and_one_key(path):
    roster = Roster(path, [(30, 3), (20, 2), (10, 1)])
    assert roster.draw_tokens() == {0: "token-0", 1: "token-1", 2: "token-2"}
    assert roster.admit(join(3, token="token-1")) == 1
    assert refuse(roster, 4, token="token-1") == (
        "the link is taken, and each is for one: ask who runs the run for another one"
    )
    for token in ("token-1", None, "token-0", "x"):  # its key has a seat, whatever it says beside it
        assert roster.admit(join(3, token=token)) == 1
    assert refuse(roster, 0, token=None) == "the link has no token: take it whole, with # and what follows"
    for token in ("", "token-3", "token-", "TOKEN-0"):
        assert refuse(roster, 0, token=token) == "the link is not one of this run's: ask who runs it for another"
    roster.release(1)
    assert roster.admit(join(4, token="token-1")) == 1


def test_who_only_looks_needs_a_link_that_is_free_or_a_seat(path):
    roster = Roster(path, most=2)
    roster.draw_tokens()
    assert roster.find_seat(read_caller({"key": KEYS[0], "token": "token-1"})) == 1
    assert roster.seats == [None, None]
    for header in ({"key": KEYS[0], "token": None}, {"key": KEYS[0]}):
        with pytest.raises(Refusal):
            roster.find_seat(read_caller(header))


def test_tokens_are_kept_as_their_hashes_and_of_those_forgotten_there_are_new_ones(path):
    roster = Roster(path, [(30, 3), (20, 2), (10, 1)])
    roster.draw_tokens()
    roster.admit(join(0, token="token-2"))
    roster.fix()
    roster.keep()
    assert "token-" not in path.read_text() and hashlib.sha256(b"token-1").hexdigest() in path.read_text()
    again = Roster(path, [(30, 3), (20, 2), (10, 1)])
    again.read()
    assert again.draw_tokens(["token-0", "token-2", "another run's"]) == {0: "token-0", 1: "token-3", 2: "token-2"}
    last = Roster(path, [(30, 3), (20, 2), (10, 1)])
    last.read()
    assert refuse(last, 1, token="token-1").startswith("the link is not one of this run's")
    assert last.admit(join(1, token="token-3")) == 1
    assert last.draw_tokens() == {0: "token-4"}  # who has a seat needs none


def test_a_shared_link_lets_in_as_many_as_there_are_seats(dealt, path):
    dealt.admit(join(0))
    dealt.keep()
    again = Roster(path, [(30, 3), (20, 2)], is_shared=True)
    again.read()
    assert again.draw_tokens(["token-0"]) == {0: "token-0", 1: "token-0"}
    assert again.admit(join(1)) == 1 and refuse(again, 2) == "all 2 seats are taken"


def test_seats_that_fall_away_take_their_links_with_them(path):
    roster = Roster(path, most=3, columns="of the run")
    roster.draw_tokens()
    for index in (0, 2):
        roster.admit(join(index, token=f"token-{index}"))
    roster.fix()
    roster.keep()
    assert "has begun" in refuse(roster, 1, token="token-1")
    assert roster.draw_tokens(["token-0", "token-1", "token-2"]) == {0: "token-0", 1: "token-2"}


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
    assert "--most_examples" in refuse(dealt, 0, round_most_examples=5)


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
    roster = share(path, most=3, columns="of the run", most_examples=100)
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
        {"token": 7},
        {"token": "x" * 201},
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
    with pytest.raises(Refusal, match="version 2"):
        read_join({"protocol": 1})


def test_a_server_that_is_started_again_has_the_same_seats(dealt, path):
    dealt.admit(join(3))
    dealt.fix()
    dealt.keep()
    again = Roster(path, [(30, 3), (20, 2)], is_shared=True)
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
    path.write_text(json.dumps({"run": run, "seats": seats, "token_hashes": ["0" * 64] * len(seats)}))
    with pytest.raises(RunRecordError) as error:
        own.read()
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)


@pytest.mark.parametrize("tokens", [None, [], ["0" * 63], [7], ["0" * 64] * 2])
def test_a_file_without_the_hashes_of_tokens_is_a_line(own, path, tokens):
    path.parent.mkdir()
    path.write_text(json.dumps({"run": "0" * 32, "seats": [SEAT], "token_hashes": tokens}))
    with pytest.raises(RunRecordError, match="expected the SHA-256 of a token for each seat"):
        own.read()


def test_a_file_of_another_number_of_clients_is_a_line(dealt, path):
    dealt.fix()
    dealt.keep()
    with pytest.raises(RunRecordError, match="2 seats, expected 1"):
        Roster(path, [(1, 0)]).read()
