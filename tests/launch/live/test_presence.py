"""Who is there in a live run, over a transport in memory: clients join, go, come back, and are refused."""

import numpy as np
import pytest
from live_network import DEALT, GRACE_S, OFFER, WEIGHTS, Run, make_key
from memory_transport import TICKS, MemoryTransport, ScriptedClient, Silence, open_roster

from launch.live.messages import pack
from launch.live.network import EVALUATE, LiveNetwork
from launch.live.roster import Roster
from tff_algos.rounds.network import ANSWERED, JOINED, LEFT, TICK_S, Task
from tff_algos.seeds import derive_seed


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
