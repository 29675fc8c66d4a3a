"""Runs are sent once or until they end, without doubled rounds, whatever is interrupted; the tracker is a stand-in."""

import os
import resource
import shutil
import threading
import time

import pytest

from launch.runs.errors import RunFolderError
from launch.trackers import follow
from launch.trackers.follow import Order, send_runs
from launch.trackers.run_link import RunLink
from launch.trackers.sender_process import TrackerError, find_python


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for name, seconds in (("POLL_S", 0.05), ("RETRY_S", 0.05), ("LINGER_S", 0.0)):
        monkeypatch.setattr(follow, name, seconds)


@pytest.fixture
def send(stand_in):
    def call(*run_dirs, **wishes):
        send_runs(Order("mlflow", find_python("--to=mlflow"), **wishes), lambda: run_dirs)

    return call


@pytest.fixture
def follow_run(send):
    """A function (run) that starts to follow it in the background; the test waits for the thread at its end."""
    threads = []

    def start(*run_dirs, **wishes):
        threads.append(threading.Thread(target=send, args=run_dirs, kwargs={"follows": True, **wishes}))
        threads[-1].start()
        return threads[-1]

    yield start
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def wait_until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_finished_run_is_sent_whole(start_run, stand_in, send, capsys):
    run = start_run("fedavg_digits/seed_3", seed=3)
    run.add_rounds(3)
    run.end()
    send(run.run_dir, project="mine")
    opened, rounds, closed = stand_in.requests
    assert (opened["project"], opened["name"], opened["witness"]) == ("mine", "fedavg_digits/seed_3", "virtual_time_s")
    assert opened["params"]["seed"] == 3 and opened["tags"]["algo"] == "fedavg"
    assert [(number, values["test_accuracy"]) for number, _, values in rounds["rounds"]] == [
        (1, 0.01),
        (2, 0.02),
        (3, 0.03),
    ]
    assert (closed["status"], closed["last_round"]) == ("finished", 3)
    assert closed["summary"]["final.test_accuracy"] == 0.5
    assert {"config.json", "clients.csv", "plots/by_round.png", "models/global/model.keras"} <= closed["files"].keys()
    assert closed["end_ms"] == rounds["rounds"][-1][1] > opened["start_ms"]
    assert "sent     fedavg_digits/seed_3: 3 rounds, finished; look: http://there/run_0" in capsys.readouterr().out


def test_again_is_the_same_run_and_sends_no_round_twice(start_run, stand_in, send):
    run = start_run()
    run.add_rounds(2)
    run.end(is_finished=False)
    send(run.run_dir)
    run.add_rounds(3)
    run.end()
    send(run.run_dir)
    send(run.run_dir)
    assert stand_in.list_rounds() == [1, 2, 3, 4, 5]
    assert [request["known"] for request in stand_in.find("open")] == [{}, {"here": "run_0"}, {"here": "run_0"}]
    assert [request["status"] for request in stand_in.find("close")] == ["stopped", "finished", "finished"]


def test_a_run_that_goes_on_is_sent_as_it_is(start_run, stand_in, send, capsys):
    run = start_run()
    run.add_rounds(1)
    send(run.run_dir)
    assert stand_in.find("close")[0]["status"] == "going_on"
    assert stand_in.find("close")[0]["summary"] == {}
    assert "--follow would send the rest" in capsys.readouterr().out


def test_a_run_is_followed_until_it_ends(start_run, stand_in, follow_run):
    run = start_run()
    follow_run(run.run_dir)
    wait_until(lambda: stand_in.find("open"))  # before the first round
    for number in (1, 2, 3):
        run.add_rounds(1)
        wait_until(lambda number=number: number in stand_in.list_rounds())
        assert not stand_in.find("close")
    run.end()
    wait_until(lambda: stand_in.find("close"))
    assert stand_in.list_rounds() == [1, 2, 3]
    assert stand_in.find("close")[0]["status"] == "finished"


def test_a_killed_run_is_stopped_there(start_run, stand_in, follow_run):
    run = start_run()
    run.add_rounds(1)
    follow_run(run.run_dir)
    wait_until(lambda: 1 in stand_in.list_rounds())
    run.end(is_finished=False)
    wait_until(lambda: stand_in.find("close"))
    assert stand_in.find("close")[0]["status"] == "stopped"


@pytest.mark.parametrize("failure", ["down", "dies"])
def test_a_tracker_that_fails_for_a_while_gets_each_round_once(failure, start_run, stand_in, follow_run, capsys):
    run = start_run()
    run.add_rounds(1)
    follow_run(run.run_dir)
    wait_until(lambda: 1 in stand_in.list_rounds())
    getattr(stand_in, failure).touch()
    run.add_rounds(2)
    warned = []
    wait_until(lambda: warned.append(capsys.readouterr().out) or "warning  mlflow: " in "".join(warned))
    time.sleep(0.3)  # several tries
    getattr(stand_in, failure).unlink()
    wait_until(lambda: 3 in stand_in.list_rounds())
    run.end()
    wait_until(lambda: stand_in.find("close"))
    assert stand_in.list_rounds() == [1, 2, 3]
    assert "".join(warned).count("warning") == 1


def test_a_tracker_that_never_answers_is_given_up_when_the_run_has_ended(start_run, stand_in, send):
    run = start_run()
    run.add_rounds(1)
    run.end()
    stand_in.down.touch()
    with pytest.raises(TrackerError, match="ConnectionError: refused"):
        send(run.run_dir, follows=True)
    with pytest.raises(TrackerError, match="ConnectionError: refused"):
        send(run.run_dir)


def test_two_processes_send_a_run_one_after_the_other(start_run, stand_in, follow_run, capsys):
    run = start_run()
    run.add_rounds(2)
    run.end()
    other = RunLink(run.run_dir, "mlflow")
    assert other.acquire()
    follow_run(run.run_dir)
    said = []
    wait_until(lambda: said.append(capsys.readouterr().out) or "another process sends it" in "".join(said))
    assert not stand_in.requests
    other.close()
    wait_until(lambda: stand_in.find("close"))


def test_another_tracker_is_no_other_process(start_run, send):
    run = start_run()
    run.end()
    other = RunLink(run.run_dir, "wandb")
    assert other.acquire()
    send(run.run_dir)


def test_a_run_that_replaces_the_followed_one_is_another(start_run, stand_in, follow_run, send):
    run = start_run()
    run.add_rounds(1)
    follower = follow_run(run.run_dir)
    wait_until(lambda: 1 in stand_in.list_rounds())
    shutil.rmtree(run.run_dir / "tracking")  # as --overwrite does
    follower.join(20)
    run.end()
    send(run.run_dir)
    assert [request["known"] for request in stand_in.find("open")] == [{}, {}]


def test_runs_of_a_sweep_that_begin_later_are_found(start_run, stand_in, send, monkeypatch):
    monkeypatch.setattr(follow, "LINGER_S", 1.0)
    earlier = start_run("sweep/seed_0")
    earlier.end()
    run_dirs = [earlier.run_dir]

    def begin():
        wait_until(lambda: stand_in.find("close"))
        later = start_run("sweep/seed_1")
        later.add_rounds(1)
        run_dirs.append(later.run_dir)
        wait_until(lambda: len(stand_in.find("open")) == 2)
        later.end()

    thread = threading.Thread(target=begin)
    thread.start()
    send_runs(Order("mlflow", find_python(""), follows=True, lingers=True), lambda: list(run_dirs))
    thread.join(20)
    assert [request["key"].rpartition("/")[2] for request in stand_in.find("close")] == ["seed_0", "seed_1"]


def test_a_file_that_has_changed_since_the_run_ended_is_refused(start_run, send):
    run = start_run()
    run.add_rounds(1)
    run.end()
    names = ("config.json", "metrics.csv", "timing.csv", "clients.csv", "summary.json")
    (run.run_dir / "checksums.sha256").write_text("".join(f"{'0' * 64}  {name}\n" for name in names))
    with pytest.raises(RunFolderError, match="has changed since the run ended"):
        send(run.run_dir)


def test_more_runs_are_sent_than_files_can_be_open(start_run, stand_in, send):
    for i in range(40):
        start_run(f"sweep/run_{i:02d}").end(is_finished=False)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    run_dirs = sorted((stand_in.down.parent / "sweep").iterdir())
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 20, before[1]))
        send(*run_dirs)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(stand_in.find("close")) == 40


def test_a_tracker_that_fails_is_tried_less_and_less_often(monkeypatch):
    clock, tries = [0.0], []
    monkeypatch.setattr(follow.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(follow.time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    monkeypatch.setattr(follow, "RETRY_S", 5.0)
    monkeypatch.setattr(follow, "POLL_S", 1.0)
    patience = follow._Patience(Order("mlflow", "python", follows=True))
    for _ in range(8):
        before = clock[0]
        patience.bear(TrackerError("refused"), lambda: True)
        tries.append(clock[0] - before)
    assert tries == [5, 10, 20, 40, 80, 160, 300, 300]
    before, going_on = clock[0], iter([True, True, True, False])
    patience.bear(TrackerError("refused"), lambda: next(going_on))
    assert clock[0] - before == 2  # the run has ended
    patience.is_over(are_done=False)
    before = clock[0]
    patience.bear(TrackerError("refused"), lambda: True)
    assert clock[0] - before == 5  # it had answered
