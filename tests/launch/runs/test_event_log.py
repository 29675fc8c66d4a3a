"""events.csv: appended a round at a time, cut back on resume."""

import pytest

from launch.runs.errors import RunFolderError
from launch.runs.event_log import EventLog

ROUNDS = {1: [(0.0, 0, "start", 1), (0.25, 0, "ready", 1)], 2: [], 3: [(1.5, 1, "dropped", 2)]}


def write(path, rounds, last_round=0):
    log = EventLog(path, last_round)
    for round_num in rounds:
        log.append(round_num, ROUNDS[round_num])


def test_rows_are_those_of_the_rounds(tmp_path):
    path = tmp_path / "events.csv"
    write(path, [1, 2, 3])
    assert path.read_text().splitlines() == [
        "round,time_s,client,what,model",
        "1,0,0,start,1",
        "1,0.25,0,ready,1",
        "3,1.5,1,dropped,2",
    ]


def test_without_events_there_is_no_file(tmp_path):
    write(tmp_path / "events.csv", [2])
    assert not (tmp_path / "events.csv").exists()


@pytest.mark.parametrize("tail", ["", "3,1.", "\n"])
def test_a_resumed_run_has_the_bytes_of_a_straight_one(tmp_path, tail):
    straight, broken = tmp_path / "straight.csv", tmp_path / "broken.csv"
    write(straight, [1, 2, 3])
    write(broken, [1, 2, 3])
    with open(broken, "a") as file:
        file.write(tail)
    write(broken, [3], last_round=2)
    assert broken.read_bytes() == straight.read_bytes()


def test_a_kill_at_any_byte_of_the_last_lines_leaves_what_a_resumed_run_needs(tmp_path):
    straight, broken = tmp_path / "straight.csv", tmp_path / "broken.csv"
    write(straight, [1])
    needed = straight.stat().st_size
    write(straight, [3], last_round=2)
    whole = straight.read_bytes()
    for size_bytes in range(needed, len(whole) + 1):
        broken.write_bytes(whole[:size_bytes])
        log = EventLog(broken, 2)
        log.append(3, ROUNDS[3])
        assert broken.read_bytes() == whole and log.digest() == EventLog(straight, 3).digest()


def test_a_new_run_starts_anew(tmp_path):
    write(tmp_path / "events.csv", [1])
    EventLog(tmp_path / "events.csv")
    assert not (tmp_path / "events.csv").exists()


def test_a_damaged_file_is_one_line(tmp_path):
    (tmp_path / "events.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RunFolderError, match="damaged; start a new run"):
        EventLog(tmp_path / "events.csv", 1)
