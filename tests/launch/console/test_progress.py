"""What a person sees of a run."""

import sys
import threading
import time

import pytest

from launch.console import progress


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def test_plain_lines_where_there_is_no_terminal(capsys, clock):
    shown = progress.Progress(rounds=10, done=4)
    clock[0] += 6
    shown.update(5, 0.5)
    clock[0] += 2
    shown.update(6, None)
    shown.update(7, 0.25, of_clients=0.75)
    shown.close()
    assert capsys.readouterr().out.splitlines() == [
        "round 5/10: test accuracy 0.5000, 6.00 s a round, 30 s left",
        "round 6/10: 4.00 s a round, 16 s left",
        "round 7/10: test accuracy 0.2500, clients' own 0.7500, 2.67 s a round, 8 s left",
    ]
    durations = {59.4: "59 s", 59.6: "1 min 0 s", 185: "3 min 5 s", 7440: "2 h 4 min"}
    assert {seconds: progress.format_duration(seconds) for seconds in durations} == durations


def test_one_line_that_moves_on_a_terminal(monkeypatch, capsys, clock):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    shown = progress.Progress(rounds=2)
    clock[0] += 3
    shown.update(1, 0.25)
    shown.update(2, 0.75)
    shown.close()
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert "2/2" in err and "test accuracy 0.7500" in err


def test_one_thread_is_silent_and_others_are_not(monkeypatch, capsys):
    """What the silent one waits for is said by a thread of its own."""
    before = sys.stdout
    with progress.be_silent():
        progress.say("not said")
        with progress.say_while_waiting("not said", first_s=0.001):
            time.sleep(0.05)
        other = threading.Thread(target=progress.say, args=("said by another",))
        other.start()
        other.join()
        print("printed")
        assert sys.stdout is before
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        shown = progress.Progress(rounds=1)
        shown.update(1, 0.5)
        shown.close()
    progress.say("said")
    out, err = capsys.readouterr()
    assert out.splitlines() == ["said by another", "printed", "said"] and err == ""


def test_what_takes_long_is_said_until_it_is_over(capsys):
    with progress.say_while_waiting("the data are read", first_s=0.01):
        seen = ""
        while seen.count("\n") < 2:
            seen += capsys.readouterr().out
    assert set(seen.splitlines()) == {"wait     the data are read, 0 s so far"}
    with progress.say_while_waiting("the data are read", first_s=1000):
        pass
    assert capsys.readouterr().out == ""
