"""The record of a live run: exact times back, a line for whatever somebody has done to the file."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launch.live.record import MOST_TICKS, TICKS_A_SECOND, RecordLog, count_ticks, read_record
from launch.runs.errors import RunFolderError
from tff_algos.simulation.event_clock import WHATS, LogRow

TICK = 1 / TICKS_A_SECOND
ROUNDS = {
    1: [LogRow(0.0, 0, "start", 1), LogRow(0.0, 2, "start", 1), LogRow(0.1 - 0.1 % TICK, 2, "ready", 1)],
    2: [],
    3: [LogRow(4000.0 + TICK, 1, "dropped", 3), LogRow(4000.0 + TICK, 0, "missing", 3)],
}
HEAD = "round,tick,client,what,version\n"


def write(path, rounds, last_round=0):
    log = RecordLog(path, last_round)
    for round_num, rows in rounds.items():
        log.append(round_num, rows)
    return log


def test_rows_come_back_exactly_and_rounds_without_any_are_empty(tmp_path):
    path = tmp_path / "record.csv"
    write(path, ROUNDS)
    assert path.read_text().splitlines()[:3] == ["round,tick,client,what,version", "1,0,0,start,1", "1,0,2,start,1"]
    assert "3,4194304001,1,dropped,3" in path.read_text().splitlines()
    assert read_record(path, 3) == ROUNDS
    assert read_record(path, 3, num_rounds=5) == {**ROUNDS, 4: [], 5: []}
    assert read_record(path, 3, num_rounds=2) == {1: ROUNDS[1], 2: []}


def test_a_resumed_run_drops_later_rows_and_half_a_row_and_knows_its_digest(tmp_path):
    path, straight = tmp_path / "record.csv", tmp_path / "straight.csv"
    digest = write(path, {1: ROUNDS[1]}).digest()
    write(path, {3: ROUNDS[3]}, last_round=1)
    path.write_text(path.read_text() + "4,7")
    assert RecordLog(path, 1).digest() == digest
    write(straight, {1: ROUNDS[1]})
    assert path.read_bytes() == straight.read_bytes()
    RecordLog(path)
    assert not path.exists(), "a new run begins without the record of another"


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, MOST_TICKS - 1), st.integers(0, 9), st.sampled_from(WHATS), st.integers(0, 10**6)),
        min_size=1,
    )
)
def test_every_tick_comes_back(tmp_path_factory, drawn):
    path = tmp_path_factory.mktemp("record") / "record.csv"
    rows = [LogRow(ticks * TICK, client, what, version) for ticks, client, what, version in sorted(drawn)]
    write(path, {1: rows})
    assert read_record(path, 10) == {1: rows}
    assert [count_ticks(row.time_s) for row in rows] == [ticks for ticks, *_ in sorted(drawn)]


@pytest.mark.parametrize("time_s", [0.1, -TICK, float("inf"), float("nan"), TICK / 2, 2.0**32])
def test_other_times_are_refused(time_s):
    with pytest.raises(ValueError, match="expected a whole number of ticks"):
        count_ticks(time_s)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "expected the columns round, tick, client, what, version"),
        ("round,time_s,client,what,model\n1,0,0,start,1\n", "expected the columns round, tick"),
        (HEAD, "it has no row"),
        (HEAD + "1,0,0,start,1", "it has no row"),
        (HEAD + "1,0,0,start\n", "line 2 has 4 cells, expected 5"),
        (HEAD + "1,0,0,begin,1\n", "line 2, what=begin: expected one of ready, dropped, back, start"),
        (HEAD + "1,0,3,start,1\n", "line 2, client=3: expected a whole number of at most 2"),
        (HEAD + "1,-1,0,start,1\n", "line 2, tick=-1: expected a whole number"),
        (HEAD + "1,0.5,0,start,1\n", "line 2, tick=0.5: expected a whole number"),
        (HEAD + f"1,{'9' * 5000},0,start,1\n", f"line 2, tick={'9' * 40}: expected a whole number"),
        (HEAD + "0,0,0,start,1\n", "line 2: the round 0 stands after the round 1"),
        (HEAD + "2,0,0,start,1\n1,5,0,ready,1\n", "line 3: the round 1 stands after the round 2"),
        (HEAD + "1,9,0,start,1\n1,8,0,ready,1\n", "line 3: its time of 8 ticks lies before that of the line above"),
        (HEAD + '1,9,0,"sta\nrt",1\n', "line 2, what=sta"),
        ("\0", "expected the columns"),
    ],
)
def test_what_no_run_writes_is_said_in_a_line(tmp_path, content, expected):
    path = tmp_path / "record.csv"
    path.write_text(content)
    with pytest.raises(RunFolderError) as raised:
        read_record(path, 3)
    assert str(raised.value).startswith(f"{path}: damaged or edited: {expected}") and "\n" not in str(raised.value)


def test_a_file_that_is_gone_is_said_in_a_line(tmp_path):
    with pytest.raises(RunFolderError, match=r"record.csv: cannot be read \(No such file or directory\)"):
        read_record(tmp_path / "record.csv", 3)
