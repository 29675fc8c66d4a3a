"""The tables that grow at their end, by a row a round or more: kills, full disks, links and other programs."""

import contextlib
import errno
import os
import resource
import tracemalloc
import types

import pytest

from launch.api import Run
from launch.runs.errors import RunFolderError
from launch.runs.round_table import EventLog, GrowingTable, RoundTable, read_round_table
from launch.runs.run_archive import _read_archived_columns, _read_archived_metrics
from launch.runs.run_records import read_columns, read_rounds, read_rows
from launch.runs.trackers.sender import read_table

COLUMNS = ["round", "client_loss", "=own"]
ROWS = [["1", "0.5", ""], ["2", "0.25", "7"], ["3", "", "nan"], ["4", "1e-05", "12345"]]


def write_growing(path, rows=ROWS):
    table = GrowingTable(path)
    for row in rows:
        table.append(COLUMNS, [row])
    return table


@contextlib.contextmanager
def limit_file_size(num_bytes):
    """No file can become larger than this: a write then stores what fits, and the next one fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_rows_are_added_to_the_file_which_is_written_anew_only_where_it_holds_something_else(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("round\n1\n2\n")
    table = write_growing(path, ROWS[:1])
    file = path.stat().st_ino
    table.append(COLUMNS, ROWS[1:3])
    table.append(COLUMNS, ROWS[3:])
    whole = b"round,client_loss,'=own\n1,0.5,\n2,0.25,7\n3,,nan\n4,1e-05,12345\n"
    GrowingTable(path).keep(COLUMNS, ROWS)
    assert (path.stat().st_ino, path.read_bytes()) == (file, whole)
    table = GrowingTable(path)
    table.keep(COLUMNS, ROWS[:2])
    table.append(COLUMNS, ROWS[2:])
    assert path.read_bytes() == whole and path.stat().st_ino != file


@pytest.mark.parametrize("again", [ROWS[3], ["4", "", ""]])
@pytest.mark.parametrize("num_stored", range(len("4,1e-05,12345\n")))
def test_after_a_full_disk_the_next_row_begins_on_a_line_of_its_own(tmp_path, num_stored, again):
    path = tmp_path / "metrics.csv"
    table = write_growing(path, ROWS[:3])
    size_bytes = path.stat().st_size
    with limit_file_size(size_bytes + num_stored), pytest.raises(OSError) as raised:
        table.append(COLUMNS, ROWS[3:])
    assert raised.value.errno == errno.EFBIG and raised.value.filename == str(path)
    assert path.stat().st_size == size_bytes + num_stored, "the disk took a part"
    table.append(COLUMNS, [again])
    assert path.read_bytes() == write_growing(tmp_path / "straight.csv", [*ROWS[:3], again]).path.read_bytes()


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: os.truncate(path, 30)])
def test_a_file_that_another_program_has_cut_gets_no_gap(tmp_path, damage):
    path = tmp_path / "metrics.csv"
    table = write_growing(path, ROWS[:3])
    damage(path)
    left = path.read_bytes() if path.exists() else None
    with pytest.raises(OSError, match=r"No such file|another program has cut it while the run went on") as raised:
        table.append(COLUMNS, ROWS[3:])
    assert raised.value.filename == str(path)
    assert (path.read_bytes() if path.exists() else None) == left


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_or_a_copy_made_of_links_is_not_written_through(tmp_path, link):
    precious, path = tmp_path / "precious", tmp_path / "metrics.csv"
    write_growing(precious, ROWS[:3])
    before = precious.read_bytes()
    link(precious, path)
    table = GrowingTable(path)
    table.keep(COLUMNS, ROWS[:3])
    table.append(COLUMNS, ROWS[3:])
    assert precious.read_bytes() == before
    assert path.read_bytes() == write_growing(tmp_path / "straight.csv").path.read_bytes()


def list_rounds(text):
    return [line.split(",")[0] for line in text.decode().splitlines()[1:]]


READERS = {
    "rows": lambda path: [row["round"] for row in read_rows(path)],
    "columns": lambda path: [f"{number:.0f}" for number in read_columns(path)["round"]],
    "rounds": lambda path: list(map(str, read_rounds(path))),
    "archive": lambda path: list_rounds(_read_archived_metrics(path, ".*")),
    "archived columns": lambda path: list_rounds(_read_archived_columns(path, ("round", "client_loss", "=own"))),
    "round table": lambda path: [row[0] for row in read_round_table(path)[1]],
    "sender": lambda path: list(map(str, read_table(path))),
    "api": lambda path: list(
        map(str, Run._read_table(types.SimpleNamespace(path=path.parent), path.name, "round").index)
    ),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_whoever_reads_while_a_line_is_being_written_leaves_it_out(tmp_path, read):
    path = tmp_path / "metrics.csv"
    whole = write_growing(tmp_path / "straight.csv").path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for size_bytes in range(len(b"".join(lines[:3])), len(whole) + 1):
        path.write_bytes(whole[:size_bytes])
        assert read(path) == ["1", "2", "3", "4"][: whole[:size_bytes].count(b"\n") - 1]


def write(path, *rows):
    table = RoundTable(path)
    for row in rows:
        table.append(row)
    return table


@pytest.mark.parametrize("columns", [["round", "loss"], ["round", "loss", "other"], ["loss", "round", "own"]])
def test_a_run_may_not_change_its_columns_nor_does_a_resumed_one(tmp_path, columns):
    path = tmp_path / "metrics.csv"
    for table in (write(path, {"round": 1, "loss": 0.5, "own": 3}), RoundTable(path, 1)):
        with pytest.raises(ValueError, match=r"gave the columns .*, expected"):
            table.append(dict.fromkeys(columns, 2))


@pytest.mark.parametrize(
    "content", [None, "", "round,loss\n", "round,loss\n1,2\n", "round,loss\n1,2\n2\n", "a\nb\nc\n"]
)
def test_a_damaged_table_is_one_line(tmp_path, content):
    path = tmp_path / "metrics.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(RunFolderError, match=r"metrics\.csv: damaged, expected the rounds 1 to 2"):
        RoundTable(path, last_round=2)
    path.write_text("round,loss\n1,2\n3,1\n")
    with pytest.raises(RunFolderError, match=r"metrics\.csv: damaged, expected the rounds 1 to 2"):
        read_round_table(path)


def list_rows(last_round):
    return [{"round": n, "loss": 1 / n, "own": None if n % 2 else n} for n in range(1, last_round + 1)]


@pytest.mark.parametrize("kept", [3, 4, 5])
def test_a_kill_at_any_byte_of_the_last_lines_leaves_what_a_resumed_run_needs(tmp_path, kept):
    """The checkpoint is of a round from 3 to 5 of 5: what follows that row may be cut anywhere, and is made anew."""
    rows = list_rows(5)
    straight = write(tmp_path / "straight.csv", *rows)
    whole = straight.path.read_bytes()
    needed = sum(map(len, whole.splitlines(keepends=True)[: kept + 1]))
    path = tmp_path / "metrics.csv"
    for size_bytes in range(needed, len(whole) + 1):
        path.write_bytes(whole[:size_bytes])
        resumed = RoundTable(path, kept)
        for row in rows[kept:]:
            resumed.append(row)
        assert path.read_bytes() == whole
        assert resumed.digest() == straight.digest()
        assert (resumed.num_rounds, resumed.last_row) == (5, straight.last_row)
    path.write_bytes(whole[: needed - 1])
    with pytest.raises(RunFolderError, match=f"damaged, expected the rounds 1 to {kept}"):
        RoundTable(path, kept)


def test_what_a_column_holds_and_ends_with(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("round,loss\n1,2\n")  # of a run that was killed before its first checkpoint
    table = RoundTable(path)
    assert list(table.iterate_rows()) == []
    for row in list_rows(3):
        table.append(row)
    assert table.column("own") == [None, 2.0, None] and table.last("own") is None
    assert table.last("loss") == table.column("loss")[-1] == 0.333333
    rows = [["1", "1", ""], ["2", "0.5", "2"], ["3", "0.333333", ""]]
    assert list(table.iterate_rows()) == rows and read_round_table(path) == (["round", "loss", "own"], rows)


def test_rows_do_not_stay_in_memory(tmp_path):
    """500 rows of 40 cells take more than a megabyte as lists of strings."""
    table = RoundTable(tmp_path / "metrics.csv")
    row = {f"column_{index}": 1 / 3 + index for index in range(40)}
    table.append({"round": 1, **row})
    tracemalloc.start()
    before_bytes = tracemalloc.get_traced_memory()[0]
    for round_num in range(2, 502):
        table.append({"round": round_num, **row})
    grown_bytes = tracemalloc.get_traced_memory()[0] - before_bytes
    tracemalloc.stop()
    assert grown_bytes < 50_000


ROUNDS = {1: [(0.0, 0, "start", 1), (0.25, 0, "ready", 1)], 2: [], 3: [(1.5, 1, "dropped", 2)]}


def write_events(path, rounds, last_round=0):
    log = EventLog(path, last_round)
    for round_num in rounds:
        log.append(round_num, ROUNDS[round_num])


def test_a_kill_at_any_byte_of_events_leaves_what_a_resumed_run_needs(tmp_path):
    straight, broken = tmp_path / "straight.csv", tmp_path / "broken.csv"
    write_events(straight, [2])
    assert not straight.exists(), "without events there is no file"
    write_events(straight, [1])
    needed = straight.stat().st_size
    write_events(straight, [3], last_round=2)
    whole = straight.read_bytes()
    assert whole == b"round,time_s,client,what,model\n1,0,0,start,1\n1,0.25,0,ready,1\n3,1.5,1,dropped,2\n"
    for size_bytes in range(needed, len(whole) + 1):
        broken.write_bytes(whole[:size_bytes])
        log = EventLog(broken, 2)
        log.append(3, ROUNDS[3])
        assert broken.read_bytes() == whole and log.digest() == EventLog(straight, 3).digest()
    broken.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RunFolderError, match="damaged; start a new run"):
        EventLog(broken, 1)
    EventLog(broken)
    assert not broken.exists(), "a new run starts anew"
