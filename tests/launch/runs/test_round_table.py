"""The table that grows by a row a round."""

import tracemalloc

import pytest

from launch.runs.errors import RunFolderError
from launch.runs.round_table import RoundTable, read_round_table


def write(path, *rows):
    table = RoundTable(path)
    for row in rows:
        table.append(row)
    return table


@pytest.mark.parametrize("row", [{"round": 2, "loss": 0.5}, {"round": 2, "loss": 0.5, "other": 1}])
def test_a_resumed_run_may_not_lose_a_column(tmp_path, row):
    path = tmp_path / "metrics.csv"
    write(path, {"round": 1, "loss": 0.5, "own": 3})
    with pytest.raises(ValueError, match="gave the columns"):
        RoundTable(path, 1).append(row)


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
    assert list(table.iterate_rows()) == [["1", "1", ""], ["2", "0.5", "2"], ["3", "0.333333", ""]]


def test_a_table_of_another_run_is_read_as_it_is(tmp_path):
    path = tmp_path / "metrics.csv"
    write(path, *list_rows(2))
    with open(path, "a") as file:
        file.write("3,0.")  # it goes on
    whole = path.read_bytes()
    assert read_round_table(path) == (["round", "loss", "own"], [["1", "1", ""], ["2", "0.5", "2"]])
    assert path.read_bytes() == whole
    path.write_text("round,loss\n1,2\n3,1\n")
    with pytest.raises(RunFolderError, match="damaged, expected the rounds 1 to 2"):
        read_round_table(path)


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
