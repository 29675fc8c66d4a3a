"""Windows of time series, by hand, and what holds for any rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from datasets.tables.source import GAP, cut_windows

LEFT_OUT = 3


def cut(clients, times=None, splits=None, length=2, step=1):
    clients = np.array(clients)
    splits = np.zeros(len(clients), np.uint8) if splits is None else np.array(splits, np.uint8)
    found = cut_windows(clients, splits, None if times is None else np.array(times, float), length, step, LEFT_OUT)
    return [found.order[start : start + length].tolist() for start in found.starts], found


def test_rows_of_one_client_in_the_order_of_the_file():
    assert cut([0, 1, 0, 0, 1])[0] == [[0, 2], [2, 3], [1, 4]]


def test_a_step_leaves_starts_out_and_the_last_rows_that_fill_no_window():
    assert cut([0] * 7, length=3, step=2)[0] == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    assert cut([0] * 6, length=3, step=3)[0] == [[0, 1, 2], [3, 4, 5]]
    assert cut([0] * 2, length=3)[0] == []


def test_times_order_the_rows():
    assert cut([0, 0, 0], [3, 1, 2])[0] == [[1, 2], [2, 0]]


def test_a_gap_is_longer_than_three_usual_steps_of_the_client_itself():
    # Client 0 has steps of 1 and one of 3, which is none, and one of 3.5, which is; client 1 has steps of 10.
    windows, found = cut([0] * 6 + [1] * 3, [0, 1, 2, 5, 8.5, 9.5, 0, 10, 20])
    assert windows == [[0, 1], [1, 2], [2, 3], [4, 5], [6, 7], [7, 8]]
    assert (GAP, found.num_gaps) == (3.0, 1)


def test_rows_of_one_time_are_no_step():
    assert cut([0] * 4, [1, 1, 1, 2])[0] == [[0, 1], [1, 2], [2, 3]]


def test_parts_and_rows_left_out_break_a_stretch():
    windows, found = cut([0] * 7, splits=[0, 0, 2, 2, 0, 0, LEFT_OUT])
    assert windows == [[0, 1], [4, 5], [2, 3]] and found.splits.tolist() == [0, 0, 2]
    assert cut([0] * 3, splits=[0, LEFT_OUT, 0])[0] == []


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 30)), max_size=40),
    length=st.integers(1, 5),
    step=st.integers(1, 4),
)
def test_every_window_is_of_one_client_and_part_in_order_of_time(rows, length, step):
    clients, splits, times = (np.array([row[place] for row in rows], int) for place in range(3))
    windows, found = cut(clients, times, splits, length, step)
    for window, client, split in zip(windows, found.clients, found.splits, strict=True):
        assert len(window) == length
        assert set(clients[window]) == {client} and set(splits[window]) == {split}
        assert (np.diff(times[window]) >= 0).all()
    starts = {window[0] for window in windows}
    assert len(starts) == len(windows)
    if step >= length:  # no row is in two
        assert sum(map(len, windows)) == len({row for window in windows for row in window})
