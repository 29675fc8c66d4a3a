"""The network of a live run over a transport in memory: tasks, answers, what is asked beside rounds, the end."""

import hashlib
import json
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live_network import CONTENT, DEALT, FILE, OFFER, WEIGHTS, Run, make_key
from memory_transport import MemoryTransport, ScriptedClient, open_roster

from launch.live.messages import pack
from launch.live.network import EVALUATE, FINE_TUNE, MOST_FETCHED, LiveNetwork
from launch.live.referee import Limits
from launch.live.status import Status
from tff_algos.rounds.network import ANSWERED, JOINED, LEFT, REJECTED, TICK_S

HALF = "\ud800"  # of a surrogate pair: JSON can name it, UTF-8 cannot write it


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
    assert refused.header["is_final"] and "not one of this run's" in refused.header["reason"] and unknown.is_closed


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
        *("the link is not one of this ru", "a message cannot be read: key:"),
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
