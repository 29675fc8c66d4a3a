"""The network of a live run over a transport in memory, whose time a test sets: presence, tasks, answers, the end."""

import hashlib
import json
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_transport import TICKS, MemoryTransport, ScriptedClient, Silence, open_roster

from launch.live.messages import pack
from launch.live.network import EVALUATE, FINE_TUNE, MOST_FETCHED, LiveNetwork
from launch.live.offers import Offer
from launch.live.referee import Limits
from launch.live.roster import Roster
from launch.live.status import Status
from tff_algos.rounds.network import ANSWERED, JOINED, LEFT, REJECTED, TICK_S, Task
from tff_algos.seeds import derive_seed
from tff_algos.settings.local_training import LocalTrainingConfig

WEIGHTS = [np.full((2, 2), 0.5, np.float32), np.int64(3), np.ones(2, np.float32)]
CONTENT = b"a file"
FILE = types.SimpleNamespace(
    content=CONTENT,
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    names=("weight_0", "weight_2"),
    shapes=((2, 2), (2,)),
    positions=(0, 2),
)
OFFER = Offer(
    "FedAvg, digits", FILE, LocalTrainingConfig(epochs=2, batch_size=4), WEIGHTS, (8, 8, 1), 2, ["a", "b"], 60
)
DEALT = [(10, 2), (6, 1), (3, 0)]
GRACE_S = 10.0


def make_key(index):
    return f"{index:02x}" * 16


class Run:
    """A server and its clients."""

    def __init__(self, folder, num_clients=2, dealt=DEALT, time_s=0.0, **options):
        self.transport = MemoryTransport()
        self.roster = open_roster(self.transport, folder / "roster.json", dealt)
        self.parts = {"load_part": self.load_part}
        self.network = LiveNetwork(self.transport, self.roster, GRACE_S, **self.parts, **options)
        self.clients = [ScriptedClient(self.transport, make_key(index)).join() for index in range(num_clients)]
        self.network.enrol(num_clients)
        self.network.publish(OFFER)
        self.network.start_clock(time_s)

    @staticmethod
    def load_part(client):
        return {"train_x": np.full((2, 3), client, np.float32)}

    def ask(self, client, number=1, version=1):
        seed = derive_seed(0, "training", number, client)
        self.network.ask(Task(client, number, version, tuple(WEIGHTS), seed, np.float32(0.1)))
        return (self.clients[client].list_heard("train") or [None])[-1]

    def take(self, until_s=None):
        happening = self.network.take(until_s)
        return happening and (happening.time_s, happening.client, happening.what, happening.number)

    def count(self, **expected):
        traffic = self.network.take_traffic()._asdict()
        assert {name: traffic[name] for name in expected} == expected


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path)


def test_who_joins_is_welcome_and_gets_what_it_fetches(run):
    [welcome] = run.clients[1].list_heard("welcome")
    assert welcome.header == {
        "type": "welcome",
        "run": run.roster.run,
        "client": 1,
        "file": FILE.sha256,
        "name": "FedAvg, digits",
        "file_bytes": 6,
        "batch_size": 4,
        "input_shape": [8, 8, 1],
        "num_classes": 2,
        "class_names": ["a", "b"],
        "weights": [["weight_0", [2, 2]], ["weight_2", [2]]],
        "deals": True,
        "round": 0,
        "rounds": 60,
    }
    for what in ("file", "part"):
        run.clients[1].say({"type": "fetch", "what": what})
    assert run.take(1.0) is None
    [file], [part] = run.clients[1].list_heard("file"), run.clients[1].list_heard("part")
    assert file.header["sha256"] == FILE.sha256 and file.arrays["content"].tobytes() == CONTENT
    assert part.arrays["train_x"].tolist() == [[1.0] * 3] * 2
    assert run.network.take_traffic().bytes_of_files == len(pack(*file)) + len(pack(*part))
    run.clients[1].say({"type": "fetch", "what": "description"})  # there is none
    run.take(1.0)
    assert run.clients[1].is_closed and "no 'description' to fetch" in run.clients[1].heard[-1].header["reason"]


def test_no_connection_fetches_for_ever(run):
    for _ in range(MOST_FETCHED + 1):
        run.clients[1].say({"type": "fetch", "what": "part"})
    run.take(1.0)
    assert len(run.clients[1].list_heard("part")) == MOST_FETCHED and run.clients[1].is_closed
    again = ScriptedClient(run.transport, make_key(1)).join()
    again.say({"type": "fetch", "what": "part"})
    run.take(2.0)
    assert len(again.list_heard("part")) == 1


def test_an_answer_that_came_and_was_not_taken_is_late_and_nothing_else(run):
    """As of the slowest of more clients than the cohort has."""
    tasks = [run.ask(client) for client in (0, 1)]
    for client, task in enumerate(tasks):
        run.clients[client].answer(task, after_s=0.5)
    run.network.gather(EVALUATE, {0: ({}, {})}, 0.75)  # meanwhile both come
    assert run.take(1.0) == (0.5, 0, ANSWERED, 1)
    run.network.withdraw(1)
    run.count(num_answered=1, num_late=1, num_rejected=0, num_missing=0)


def test_enrolment_waits_and_a_seat_is_free_again_until_the_run_begins(tmp_path):
    transport, shown = MemoryTransport(), []
    roster = open_roster(transport, tmp_path / "roster.json", most=4, columns="")
    network = LiveNetwork(transport, roster, GRACE_S, description={"kind": "table"})
    examples = [{"num_train": 5 + index, "num_test": 1, "columns": ""} for index in range(4)]
    ann, bob, cid = (ScriptedClient(transport, make_key(i), **examples[i]).join() for i in range(3))
    bob.hang_up()
    with pytest.raises(Silence):
        network.enrol(3, shown.append)
    assert shown[-1] == ["client 00", "client 02"] and not roster.is_fixed
    dan = ScriptedClient(transport, make_key(3), **examples[3]).join()
    network.enrol(3, shown.append)
    assert shown[-1] == ["client 00", "client 03", "client 02"] and roster.is_fixed
    assert [roster.count_examples(client)[0] for client in range(3)] == [5, 8, 7]
    network.publish(OFFER)
    assert [each.list_heard("welcome")[0].header["client"] for each in (ann, dan, cid)] == [0, 1, 2]
    bob.come_back()
    network.start_clock(0.0)
    assert network.take(0.5) is None
    assert bob.is_closed and bob.heard[-1].header["is_final"] and "has begun" in bob.heard[-1].header["reason"]
    ann.say({"type": "fetch", "what": "description"})
    network.take(0.6)
    assert ann.heard[-1].header["description"] == {"kind": "table"}


def test_seats_left_free_lose_their_gaps_where_people_bring_their_own(tmp_path):
    transport = MemoryTransport()
    network = LiveNetwork(transport, open_roster(transport, tmp_path / "roster.json", most=4), GRACE_S)
    own = {"num_train": 5, "columns": ""}
    ann, bob = (ScriptedClient(transport, make_key(i), **own).join() for i in range(2))
    ann.hang_up(after_s=0)
    with pytest.raises(Silence):  # the grace goes by
        network.enrol(2)
    cid = ScriptedClient(transport, make_key(2), **own)
    cid.join()  # takes Ann's place, then Bob goes
    bob.hang_up()
    with pytest.raises(Silence):
        network.enrol(2)
    dan = ScriptedClient(transport, make_key(3), **own).join()
    network.enrol(2)
    network.publish(OFFER)
    assert [each.list_heard("welcome")[0].header["client"] for each in (cid, dan)] == [0, 1]


@pytest.mark.parametrize("deals", [True, False])
def test_before_round_1_a_link_is_its_clients_for_the_grace(tmp_path, deals):
    """Another key is refused that comes by it meanwhile; who comes back has the seat, also if the run begins first."""
    transport, seats = MemoryTransport(), {"dealt": DEALT} if deals else {"most": 3, "columns": ""}
    roster = Roster(tmp_path / "roster.json", **seats)
    tokens = roster.draw_tokens()
    network, own = LiveNetwork(transport, roster, GRACE_S), {} if deals else {"num_train": 5, "columns": ""}
    ann, bob, cid = (ScriptedClient(transport, make_key(i), token=tokens[i], **own) for i in range(3))
    ann.join()
    ann.hang_up()
    thief = ScriptedClient(transport, make_key(7), token=tokens[0], **own).join()
    bob.say(bob.join_header, after_s=GRACE_S / 2)
    cid.say(cid.join_header, after_s=GRACE_S / 2)
    network.enrol(2)
    assert thief.is_closed and "the link is taken" in thief.heard[-1].header["reason"]
    network.publish(OFFER)
    ann.come_back()
    network.start_clock(0.0)
    assert network.take(GRACE_S) is None  # nobody leaves
    assert ann.list_heard("welcome")[0].header["client"] == 0 and network.find_present().tolist() == [0, 1, 2]


def test_who_is_refused_while_clients_are_waited_for_is_told_every_few_seconds(tmp_path):
    transport, told = MemoryTransport(), []
    network = LiveNetwork(transport, open_roster(transport, tmp_path / "roster.json", DEALT))
    for index in range(5):
        ScriptedClient(transport, make_key(index), token=None).join()
    first = ScriptedClient(transport, make_key(8))
    first.say(first.join_header, after_s=10.0)
    network.enrol(1, tell=lambda: told.append((transport.ticks, network.take_notices())))
    line = "a client is refused: the link has no token: take it whole, with # and what follows (5 times)"
    assert [lines for _, lines in told] == [[line], [], []]
    assert [ticks - told[0][0] for ticks, _ in told] == [0, 3 * TICKS, 6 * TICKS]


def test_a_full_run_refuses_in_a_line(run):
    third = ScriptedClient(run.transport, make_key(7)).join()
    fourth = ScriptedClient(run.transport, make_key(8)).join()
    assert run.take(5.0) == (0.0, 2, JOINED, 0)
    assert run.take(5.0) is None
    assert third.list_heard("welcome") and fourth.heard[-1].header["reason"] == "all 3 seats are taken"
    assert run.network.find_present().tolist() == [0, 1, 2]
    assert run.network.take_notices() == ["a client is refused: all 3 seats are taken"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"garbage", "cannot be read"),
        (pack({"type": "answer"}), "the first one must be to join"),
        (pack({"type": "join", "protocol": 3}), "version 2"),
        (pack({"type": "join", "protocol": 2, "key": "short"}), "key: expected 32"),
    ],
)
def test_who_does_not_join_as_it_should_is_refused(run, content, reason):
    stranger = ScriptedClient(run.transport, make_key(7))
    stranger.say(content)
    stranger.say(content)  # what it says further is not heard
    assert run.take(1.0) is None
    [refused] = stranger.heard
    assert refused.type == "refused" and reason in refused.header["reason"] and stranger.is_closed


HALF = "\ud800"  # of a surrogate pair: JSON can name it, UTF-8 cannot write it


@pytest.mark.parametrize("field", ["type", "key", "token", "name", "kind", "columns"])
def test_half_a_character_in_a_field_of_who_joins_is_refused(run, field):
    client = ScriptedClient(run.transport, make_key(2)).join(**{field: HALF})
    assert run.take(1.0) is None and client.is_closed
    assert client.heard[-1].type == "refused" and len(run.transport.admitted) == 2
    assert run.roster.seats[2] is None and run.network.take_notices()


@pytest.mark.parametrize(
    "header",
    [
        {"type": HALF},
        {"type": "leave", "reason": HALF},
        {"type": "fetch", "what": HALF},
        {"type": "fetch", "what": "file", "file": HALF},
        {"type": "fetch", "what": "weights", "task": HALF},
        *({"type": kind, "task": HALF} for kind in ("answer", "measured", "tuned")),
    ],
)
def test_half_a_character_in_a_field_of_who_has_joined_ends_its_connection(run, header):
    run.ask(0)
    run.clients[0].say(header)
    assert run.take(1.0) is None and run.clients[0].is_closed and run.clients[0].heard[-1].type == "refused"
    assert run.network.take_notices()


def test_who_has_a_seat_or_a_good_token_is_known(run):
    def is_known(content=None, **header):
        return run.transport.is_known(content or pack(run.clients[0].join_header | header))

    assert is_known() and is_known(token=None) and is_known(type="fetch", what="description")
    assert is_known(key=make_key(7)) and not is_known(key=make_key(7), token=None)
    assert not is_known(key=make_key(7), token="x") and not is_known(key=HALF) and not is_known(b"no message")
    ScriptedClient(run.transport, make_key(2)).join()
    run.take(1.0)
    assert is_known(key=make_key(2)) and not is_known(key=make_key(7))  # for whom no seat is left


def test_a_task_is_sent_and_its_answer_taken_at_its_time(run):
    run.network.round_num = 1
    task = run.ask(1, number=5, version=3)
    assert task.header | {"task": "", "run": ""} == {
        "type": "train",
        "run": "",
        "client": 1,
        "file": FILE.sha256,
        "number": 5,
        "round": 1,  # the run's, whatever the algorithm numbers its models by
        "learning_rate": float(np.float32(0.1)),
        "steps": 4,
        "batch_size": 4,
        "task": "",
    }
    assert task.arrays["weight_0"].tolist() == [[0.5, 0.5]] * 2 and task.arrays["order"].shape == (2, 6)
    run.clients[1].answer(task, value=0.25, after_s=1.5)
    happening = run.network.take(None)
    assert (happening.time_s, happening.client, happening.what, happening.number) == (1.5, 1, ANSWERED, 5)
    assert [delta.sum() for delta in happening.result.weights_delta] == [1.0, 0.5]
    assert happening.result.num_trained == 12 and happening.result.loss_sum == 2.5
    [timing] = run.network.take_timings()
    assert timing[:4] == (1, 12, 0.25, 1.5) and timing.bytes_down == len(pack(*task))
    run.count(num_asked=1, num_answered=1, num_late=0, num_present=2, bytes_of_orders=24)
    assert run.network.take_timings() == [] and run.network.take_traffic().num_asked == 0


def test_a_client_that_has_its_task_is_not_asked_again(run):
    run.ask(0)
    run.ask(0)
    run.clients[0].answer(run.clients[0].list_heard("train")[0])
    run.network.gather(EVALUATE, {1: ({}, {})}, 1.0)  # takes the answer in
    run.ask(0)
    assert len(run.clients[0].list_heard("train")) == 1
    assert run.take(3.0)[1:] == (0, ANSWERED, 1)


def test_only_the_pending_task_s_answer_counts_once(run):
    old = run.ask(0, number=1)
    new = run.ask(0, number=2)
    run.clients[0].answer(old)
    for _ in range(3):
        run.clients[0].answer(new)
    run.clients[0].answer(old)
    assert run.take(1.0) == (0.0, 0, ANSWERED, 2)
    assert run.take(1.0) is None
    run.count(num_asked=2, num_answered=1, num_late=4, num_rejected=0)


@pytest.mark.parametrize(
    "changes",
    [
        {"run": "0" * 32},
        {"file": "0" * 64},
        {"client": 1},
        {"number": 8},
        {"num_trained": 7},
        {"loss_sum": float("nan")},
        {"arrays": {}},
        {"value": np.nan},
    ],
)
def test_an_answer_that_must_not_count_is_rejected_and_its_task_over(run, changes):
    task = run.ask(0)
    run.clients[0].answer(task, **changes, after_s=0.5)
    run.clients[0].answer(task, after_s=0.75)
    assert run.take(1.0) == (0.5, 0, REJECTED, 1)
    assert run.take(1.0) is None
    run.count(num_rejected=1, num_answered=0, num_late=1)
    [line] = run.network.take_notices()
    assert line.startswith("client 00 (seat 0): its answer does not count: ") and not run.clients[0].is_closed


def test_an_absurd_update_is_rejected_and_told(run):
    """The model's norm is sqrt(4 / 4 + 2) = 1.73: at most 1732."""
    run.clients[0].answer(run.ask(0), value=1e30)
    run.clients[1].answer(run.ask(1), value=700.0)  # sqrt(6) * 700 = 1715
    assert [run.take(1.0)[1:] for _ in range(2)] == [(0, REJECTED, 1), (1, ANSWERED, 1)]
    [line] = run.network.take_notices()
    assert line == (
        "client 00 (seat 0): its answer does not count: its update has the norm 2.45e+30, of at most 1.73e+03 "
        "(--most_norm)"
    )


def test_who_is_rejected_too_often_leaves_and_does_not_come_back(tmp_path):
    run = Run(tmp_path, limits=Limits(most_rejected=2))
    for number in (1, 2):
        for client, value in ((0, 0.5), (1, np.nan)):
            run.clients[client].answer(run.ask(client, number), value=value)
        assert [run.take(1.0)[1:] for _ in range(2)] == [(0, ANSWERED, number), (1, REJECTED, number)]
    assert run.take(1.0)[1:] == (1, LEFT, 0) and run.network.find_present().tolist() == [0]
    again = run.clients[1].come_back()
    assert run.take(5.0) is None and len(run.transport.admitted) == 2
    assert not run.transport.is_known(pack(again.join_header))
    for told in (run.clients[1].heard[-1], again.heard[-1]):
        assert told.type == "refused" and told.header["is_final"] and "did not count" in told.header["reason"]
    lines = run.network.take_notices()
    assert [line for line in lines if "asked no more" in line] == [
        "client 01 (seat 1) is asked no more: 2 answers in a row did not count, and others' did"
    ]


def test_who_is_needed_by_a_round_is_rejected_and_stays(tmp_path):
    run = Run(tmp_path, limits=Limits(most_rejected=2, least_clients=2))
    for number in range(1, 5):
        for client, value in ((0, 0.5), (1, np.nan)):
            run.clients[client].answer(run.ask(client, number), value=value)
        assert [run.take(1.0)[1:] for _ in range(2)] == [(0, ANSWERED, number), (1, REJECTED, number)]
    assert run.take(1.0) is None and run.network.find_present().tolist() == [0, 1]
    [told] = [line for line in run.network.take_notices() if "is asked further" in line]
    assert told.endswith("a round needs 2 clients (--least_answers), and no more are left")
    # Of one more, a free seat's, nobody is left without.
    third = ScriptedClient(run.transport, make_key(2)).join()
    run.clients[0].answer(run.ask(0, 5), value=0.5)
    run.clients[1].answer(run.ask(1, 5), value=np.nan)
    assert [run.take(2.0)[1:3] for _ in range(4)] == [(2, JOINED), (0, ANSWERED), (1, REJECTED), (1, LEFT)]
    assert not third.is_closed and run.clients[1].is_closed


def test_a_withdrawn_task_is_forgotten(run):
    task = run.ask(0)
    run.network.withdraw(0)
    run.network.withdraw(1)  # has none
    [withdrawn] = run.clients[0].list_heard("withdrawn")
    assert withdrawn.header["task"] == task.header["task"] and not run.clients[1].list_heard("withdrawn")
    run.clients[0].answer(task)
    assert run.take(1.0) is None
    run.count(num_missing=1, num_late=1, num_answered=0)


def test_an_answer_after_the_time_waits_and_is_late_if_its_task_is_withdrawn(run):
    task, other = run.ask(0), run.ask(1)
    run.clients[0].answer(task, after_s=2.5)
    run.clients[1].answer(other, after_s=2.75)
    run.transport.ticks += 2**22  # the server was busy: both have come
    assert run.take(2.0) is None
    run.network.withdraw(0)
    assert run.take(None) == (2.75, 1, ANSWERED, 1)
    run.count(num_late=1, num_missing=1)


def test_times_do_not_go_back_and_what_comes_after_a_wait_is_later_than_it(run):
    run.clients[0].answer(run.ask(0), after_s=1.0)
    run.clients[1].answer(run.ask(1), after_s=2.0)
    run.transport.ticks += 3 * 2**20
    assert run.network.now_s() == 3.0
    assert run.take(2.9) is None
    assert run.take(None) == (3.0, 0, ANSWERED, 1)
    assert run.take(3.5) == (3.0, 1, ANSWERED, 1)
    run.transport.ticks -= 2**20
    assert run.take(4.0) is None
    assert run.network.now_s() >= 4.0
    ScriptedClient(run.transport, make_key(9)).join()
    assert run.take(None) == (4.0 + TICK_S, 2, JOINED, 0)


def test_the_clock_starts_once_at_a_multiple_of_a_tick(tmp_path):
    run = Run(tmp_path, time_s=2.1)
    now = run.network.now_s()
    assert 2.1 <= now < 2.1 + 2 * TICK_S and now / TICK_S % 1 == 0
    run.network.start_clock(50.0)
    assert run.network.now_s() == now


def test_a_short_loss_is_not_seen_and_the_task_sent_again(run):
    task = run.ask(0)
    run.clients[0].hang_up(after_s=1)
    assert run.take(5.0) is None and run.network.find_present().tolist() == [0, 1]
    run.clients[0].come_back()
    assert run.take(6.0) is None
    [again] = run.clients[0].list_heard("train")
    assert again.header == task.header
    run.clients[0].answer(again)
    assert run.take(None)[1:] == (0, ANSWERED, 1)
    run.count(num_returns=1, num_asked=1)
    assert run.take(100.0) is None


def test_who_does_not_come_back_has_left_when_the_grace_is_over(run):
    task = run.ask(0)
    run.clients[0].hang_up(after_s=1)
    run.clients[1].answer(run.ask(1), after_s=50)
    assert run.take(10.5) is None
    assert run.network.find_present().tolist() == [0, 1]
    assert run.take(None) == (1 + GRACE_S, 0, LEFT, 0)
    assert run.network.find_present().tolist() == [1]
    run.clients[0].connect()
    run.clients[0].say(run.clients[0].join_header, after_s=2)
    assert run.take(None) == (13.0, 0, JOINED, 0)
    assert not run.clients[0].list_heard("train")  # it was counted out
    run.clients[0].answer(task)
    assert run.take(40.0) is None
    run.count(num_late=1, num_returns=1, num_present=2)
    run.ask(0, number=2)
    assert len(run.clients[0].list_heard("train")) == 1
    assert run.take(None) == (50.0, 1, ANSWERED, 1)


def test_what_was_asked_of_one_that_had_left_is_counted_out_with_it(run):
    run.clients[0].hang_up()
    run.transport.ticks += 20 * 2**20
    run.network.gather(EVALUATE, {}, 0.0)
    run.network.gather(EVALUATE, {1: ({}, {})}, 1.0)  # takes in that it left
    run.network.ask(Task(0, 1, 1, tuple(WEIGHTS), derive_seed(0, "training"), np.float32(0.1)))
    assert run.take(None)[1:3] == (0, LEFT)
    run.clients[0].come_back()
    assert run.take(None)[1:3] == (0, JOINED) and not run.clients[0].list_heard("train")


def test_a_client_that_says_so_leaves_at_once(run):
    run.clients[0].say({"type": "leave", "reason": "Ctrl-C"}, after_s=1)
    assert run.take(None) == (1.0, 0, LEFT, 0) and run.clients[0].is_closed
    run.clients[0].come_back()
    assert run.take(None)[1:3] == (0, JOINED)
    run.count(num_returns=1)


def test_a_second_connection_of_a_key_takes_the_seat(run):
    task = run.ask(0)
    older = run.clients[0]
    older.answer(task, after_s=2.0)
    second = ScriptedClient(run.transport, make_key(0))
    second.say(second.join_header, after_s=1.0)
    assert run.take(3.0) is None  # what the older one says is not heard any more
    assert older.is_closed and older.heard[-1].header["is_final"]
    second.answer(*second.list_heard("train"))
    assert run.take(20.0)[1:] == (0, ANSWERED, 1)
    assert run.take(40.0) is None and run.network.find_present().tolist() == [0, 1]


def test_a_joined_client_that_says_what_it_must_not_loses_its_connection(run):
    run.clients[0].say({"type": "join"}, after_s=1)
    run.clients[1].say(b"\0" * 8, after_s=1)
    assert [run.take(None) for _ in range(2)] == [(11.0, 0, LEFT, 0), (11.0, 1, LEFT, 0)]
    assert run.clients[0].is_closed and run.clients[1].is_closed


def test_a_run_that_goes_on_waits_for_who_comes_back_before_its_time_goes_on(tmp_path):
    Run(tmp_path).roster.keep()
    transport, roster = MemoryTransport(ticks=7), Roster(tmp_path / "roster.json", DEALT)
    roster.read()
    network, shown = LiveNetwork(transport, roster, GRACE_S), []
    network.enrol(3)
    network.publish(OFFER)
    client = ScriptedClient(transport, make_key(1))
    client.say(client.join_header, after_s=4000.0)
    network.await_return(1, 0.0, shown.append)
    assert shown == [[], ["client 01"]]
    network.start_clock(100.0)
    assert network.now_s() == 100.0 and network.find_present().tolist() == [0, 1]


@pytest.mark.parametrize(("comes_after_s", "is_there"), [(49.0, True), (51.0, False)])
def test_a_run_that_goes_on_waits_for_the_others_for_a_while(tmp_path, comes_after_s, is_there):
    """From when as many are back as a round needs; seats that nobody took are not waited for."""
    Run(tmp_path).roster.keep()
    transport, roster = MemoryTransport(ticks=7), Roster(tmp_path / "roster.json", DEALT)
    roster.read()
    network, shown = LiveNetwork(transport, roster, GRACE_S), []
    network.publish(OFFER)
    first, second = (ScriptedClient(transport, make_key(index)) for index in range(2))
    first.say(first.join_header, after_s=100.0)
    second.say(second.join_header, after_s=100.0 + comes_after_s)
    network.await_return(1, 50.0, shown.append)
    assert shown == [[], ["client 00"], *[["client 00", "client 01"]] * is_there]
    assert transport.ticks == 7 + (100 + min(comes_after_s, 50)) * TICKS


def test_a_run_that_goes_on_has_its_seats_present_for_the_grace(tmp_path):
    Run(tmp_path).roster.keep()
    transport, roster = MemoryTransport(ticks=7), Roster(tmp_path / "roster.json", DEALT)
    roster.read()
    network = LiveNetwork(transport, roster, GRACE_S)
    network.enrol(3)  # waits for nobody
    network.publish(OFFER)
    client = ScriptedClient(transport, make_key(1))
    client.say(client.join_header, after_s=4.0)
    shown = []
    network.await_return(0, 0.0, shown.append)  # as many as are there
    assert shown == [[]]
    network.start_clock(100.0)
    assert network.find_present().tolist() == [0, 1]
    for index in (0, 1):
        network.ask(Task(index, 9, 9, tuple(WEIGHTS), derive_seed(0, "training"), np.float32(0.1)))
    happening = network.take(None)
    assert (happening.time_s, happening.client, happening.what) == (110.0, 0, LEFT)
    [welcome], [task] = client.list_heard("welcome"), client.list_heard("train")
    assert welcome.header["run"] == roster.run and task.header["number"] == 9
    assert network.find_present().tolist() == [1]


def test_clients_measure_and_fine_tune_while_tasks_go_on(run):
    task = run.ask(0)
    ann, bob = run.clients
    ann.answer(task, after_s=1)
    bob.hang_up(after_s=1)

    def hear(client, message):
        names = {name: message.header[name] for name in ("run", "client", "file", "task")}
        sums = {"num": DEALT[client][1], "correct": 1, "loss_sum": 0.5}
        if message.type == "evaluate":
            run.clients[client].say({"type": "measured", **names, **sums}, after_s=2)
        if message.type == "fine_tune":
            run.clients[client].say({"type": "tuned", **names, "before": sums, "after": sums}, after_s=2)

    ann.react = lambda message: hear(0, message)
    found = run.network.gather(EVALUATE, {0: ({"round": 3}, {"weight_0": WEIGHTS[0]}), 2: ({}, {})}, 5.0)
    assert found == {0: ((2, 1, 0.5),)}  # client 2 never came
    assert run.take(None) == (1.0, 0, ANSWERED, 1)
    [(before, after)] = run.network.gather(FINE_TUNE, {0: ({"is_last": True}, {})}, 5.0).values()
    assert before == after == (2, 1, 0.5)
    assert run.take(None) == (11.0, 1, LEFT, 0)


def test_who_does_not_measure_in_time_or_wrongly_is_left_out(run):
    network, ann, bob = run.network, *run.clients
    assert network.gather(EVALUATE, {0: ({}, {}), 1: ({}, {})}, 2.0) == {}
    [request], [_] = ann.list_heard("evaluate"), bob.list_heard("evaluate")
    assert [each.header["task"] for each in ann.list_heard("withdrawn")] == [request.header["task"]]
    late = {name: request.header[name] for name in ("run", "client", "file", "task")}
    ann.say({"type": "measured", **late, "num": 2, "correct": 1, "loss_sum": 0.0})
    assert network.gather(EVALUATE, {}, 1.0) == {}
    run.take(10.0)
    run.count(num_late=1)
    ann.say({"type": "measured", **late, "num": 2, "correct": 1, "loss_sum": 0.0}, after_s=0.5)
    run.count(num_late=0)


def test_weights_of_a_digest_go_to_whom_has_them_not(run):
    ann, bob = run.clients
    request = {"digest": "d"}, {"weight_0": WEIGHTS[0]}

    def fetch(message):
        if message.type == "evaluate" and not message.arrays:
            ann.say({"type": "fetch", "what": "weights", "task": message.header["task"]})

    ann.react = fetch
    run.network.gather(EVALUATE, {0: request, 1: request}, 1.0)
    assert [list(each.arrays) for each in ann.list_heard("evaluate")] == [[], ["weight_0"]]
    assert [list(each.arrays) for each in bob.list_heard("evaluate")] == [[]]
    ann.say({"type": "fetch", "what": "weights", "task": "older"})
    assert run.take(2.0) is None and not ann.is_closed


def test_a_former_file_can_be_fetched(run):
    other = types.SimpleNamespace(**{**vars(FILE), "content": b"other", "sha256": hashlib.sha256(b"other").hexdigest()})
    run.network.publish(OFFER._replace(file=other))
    ann, bob = run.clients
    assert [each.header["file"] for each in ann.list_heard("welcome")] == [FILE.sha256, other.sha256]
    for sha256 in (FILE.sha256, other.sha256):
        ann.say({"type": "fetch", "what": "file", "file": sha256})
    bob.say({"type": "fetch", "what": "file", "file": "0" * 64})
    assert run.take(1.0) is None
    assert [each.arrays["content"].tobytes() for each in ann.list_heard("file")] == [CONTENT, b"other"]
    assert bob.is_closed and not ann.is_closed


def test_who_knocks_takes_no_seat(run):
    known, unknown = (ScriptedClient(run.transport, make_key(index)) for index in (8, 9))
    known.say({"type": "knock", "key": make_key(8), "token": run.transport.token})
    unknown.say({"type": "knock", "key": make_key(9), "token": "wrong"})
    run.take(1.0)
    assert [each.type for each in known.heard] == ["known"] and not known.is_closed
    [refused] = unknown.heard
    assert refused.header["is_final"] and "none of this run's" in refused.header["reason"] and unknown.is_closed


def test_a_description_is_there_for_whom_has_not_joined(tmp_path, run):
    stranger = ScriptedClient(run.transport, make_key(8))
    stranger.say({"type": "fetch", "what": "description", "key": make_key(8), "token": run.transport.token})
    run.take(1.0)
    assert "leave out --data" in stranger.heard[-1].header["reason"]
    transport = MemoryTransport()
    roster = open_roster(transport, tmp_path / "own" / "roster.json", most=1)
    network = LiveNetwork(transport, roster, description={"kind": "table"})
    fetch = {"type": "fetch", "what": "description"}
    ann = ScriptedClient(transport, make_key(0), num_train=3, columns="")
    ann.say({**fetch, "key": make_key(0), "token": transport.token})
    ann.join()
    bob, cid, dan = (ScriptedClient(transport, make_key(i)) for i in (1, 2, 3))
    bob.say({"type": "leave", "reason": ""})
    cid.say({**fetch, "key": make_key(2), "token": "guessed"})
    dan.say(fetch)
    network.enrol(1)
    network.publish(OFFER)
    assert [each.type for each in ann.heard] == ["description", "welcome"]
    assert bob.is_closed and not bob.heard
    assert [each.heard[0].header["reason"][:30] for each in (cid, dan)] == [
        *("the link is none of this run's", "a message cannot be read: key:"),
    ]


def test_the_end_is_told_to_all(run):
    run.network.finish("thank you")
    for client in run.clients:
        assert client.heard[-1].header == {"type": "done", "text": "thank you"} and client.is_closed
    assert not run.transport.is_open


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["ask", "withdraw", "answer", "lie", "repeat", "go", "come", "leave", "take", "busy", "gather"]
        ),
        st.integers(0, 2),
        st.sampled_from([0.0, 0.5, 3.0, 12.0]),
    ),
    max_size=40,
)


@settings(max_examples=60)
@given(STEPS)
def test_whatever_clients_do_an_algorithm_sees_a_story_that_holds(tmp_path_factory, steps):
    """Times do not go back, who leaves was there, and a task is answered once, while it is wanted, by who is there."""
    run = Run(tmp_path_factory.mktemp("run"), num_clients=3)
    present, wanted, time_s, number = {0, 1, 2}, {}, 0.0, 0

    def take(until_s):
        nonlocal time_s
        happening = run.network.take(until_s)
        if happening is None:
            time_s = max(time_s, until_s)
            return False
        assert time_s <= happening.time_s <= until_s and happening.time_s / TICK_S % 1 == 0
        time_s, client = happening.time_s, happening.client
        if happening.what == JOINED:
            assert client not in present
            present.add(client)
        elif happening.what == LEFT:
            present.remove(client)
            wanted.pop(client, None)
        else:
            assert wanted.pop(client) == happening.number and client in present
            assert (happening.result is None) == (happening.what == REJECTED)
        assert run.network.find_present().tolist() == sorted(present)
        return True

    for what, index, seconds in steps:
        client = run.clients[index]
        tasks = [] if client.is_closed else client.list_heard("train")
        if what == "ask" and index in present:
            number += 1
            wanted[index] = number
            run.ask(index, number)
        elif what == "withdraw":
            wanted.pop(index, None)
            run.network.withdraw(index)
        elif what in ("answer", "lie", "repeat") and tasks:
            task = tasks[0] if what == "repeat" else tasks[-1]
            client.answer(task, value=np.nan if what == "lie" else 1.0, after_s=seconds)
        elif what == "go":
            client.hang_up(after_s=seconds)
        elif what == "come":
            client.come_back()
        elif what == "leave" and not client.is_closed:
            client.say({"type": "leave", "reason": ""}, after_s=seconds)
        elif what == "take":
            take(time_s + seconds)
        elif what == "busy":
            run.transport.ticks += round(seconds / TICK_S)
        elif what == "gather":
            run.network.gather(EVALUATE, {index: ({}, {})}, seconds)
    while take(time_s + 1000.0):
        pass
    assert present == {i for i, each in enumerate(run.network._clients) if each.is_here}


def test_who_watches_sees_who_is_here_and_works_and_what_of_them_did_not_count(tmp_path):
    shown = []
    run = Run(tmp_path, status=Status(shown.append, lambda line: None, "", "", 60))

    def look(until_s):
        run.take(until_s)
        seats = json.loads(shown[-1])["seats"]
        return [(seat["state"], seat["answers"], seat["rejected"], seat["late"]) for seat in seats]

    assert look(1.0) == [("here", 0, 0, 0), ("here", 0, 0, 0), ("free", 0, 0, 0)]
    tasks = [run.ask(client) for client in (0, 1)]
    assert look(2.0) == [("training", 0, 0, 0), ("training", 0, 0, 0), ("free", 0, 0, 0)]
    run.clients[0].answer(tasks[0], after_s=0.0)
    run.clients[0].answer(tasks[0], after_s=0.0)
    run.clients[1].answer(tasks[1], value=np.nan, after_s=0.25)
    run.clients[1].hang_up(after_s=0.5)
    look(3.0)
    look(4.0)
    assert look(5.0) == [("here", 1, 0, 1), ("away", 0, 1, 0), ("free", 0, 0, 0)]
    [notice] = json.loads(shown[-1])["notices"]
    assert notice.startswith("client 01 (seat 1): its answer does not count")
    run.network.gather(EVALUATE, {0: ({}, {})}, 2.0)
    assert json.loads(shown[-1])["seats"][0]["state"] == "training"
    num_shown = len(shown)
    look(100.0)  # it is let go for good: nothing that one would see, and nothing is shown for hours
    assert len(shown) <= num_shown + 2
