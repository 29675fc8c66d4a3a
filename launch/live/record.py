"""`record.csv`: who did what when in a live run, from which a simulation repeats it. Imports no TensorFlow.

The rows are those of `events.csv`, whose times are rounded to be read. Here a time is a whole number of ticks of
2^-20 s, so that a repeated run gets the very same numbers.
"""

import pathlib
from collections.abc import Iterator

from launch.console.shown_text import escape_hidden
from launch.runs.columns import RECORD_COLUMNS
from launch.runs.errors import RunFolderError
from launch.runs.round_table import EventLog
from launch.runs.tables import iterate_rows, open_text
from tff_algos.simulation.event_clock import WHATS, LogRow

TICKS_A_SECOND = 2**20
MOST_TICKS = 2**52  # 136 years: up to here, sums and differences of times in seconds are exact in float64
MOST_ROUND = 10**6  # as `--rounds` takes them
MOST_VERSION = 2**53

Record = dict[int, list[LogRow]]


class RecordLog(EventLog):
    """The file, which grows by the events of a round, as `events.csv` does. Arguments and errors are those there."""

    columns = RECORD_COLUMNS

    def format_event(self, event: tuple[float, int, str, int]) -> list[str]:
        """The cells of an event, without the round.

        Raises:
          ValueError: its time is no whole number of ticks.
        """
        time_s, client, what, version = event
        return [str(count_ticks(time_s)), str(int(client)), what, str(int(version))]


def count_ticks(time_s: float) -> int:
    """A time as a whole number of ticks. Raises ValueError if it is none, or is none that float64 holds exactly."""
    ticks = float(time_s) * TICKS_A_SECOND
    if not (0 <= ticks < MOST_TICKS and ticks.is_integer()):
        raise ValueError(f"a time of {time_s!r} s; expected a whole number of ticks of 2^-20 s")
    return int(ticks)


def read_record(path: pathlib.Path, num_clients: int, num_rounds: int = 0) -> Record:
    """The events of a live run by round: {round: rows}, each round from 1 on there, and in the order of time.

    Args:
      path: the file.
      num_clients: that the run had; rows name clients below it.
      num_rounds: that the run did; later rows, of a round that was not ended, are left out, and the rounds in which
        nothing happened are empty. 0: as many as the file has.

    Raises:
      RunFolderError: the file is not there, or is not as such a run writes it; one line.
    """
    record: Record = {}
    try:
        with open_text(path) as file:
            for round_num, row in _iterate_events(iterate_rows(file), num_clients):
                record.setdefault(round_num, []).append(row)
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be read ({error.strerror or error})") from None
    except ValueError as error:
        raise RunFolderError(f"{path}: damaged or edited: {error}; restore the file") from None
    if not record:
        raise RunFolderError(f"{path}: damaged or edited: it has no row; restore the file")
    return {number: record.get(number, []) for number in range(1, (num_rounds or max(record)) + 1)}


def _iterate_events(rows: Iterator[list[str]], num_clients: int) -> Iterator[tuple[int, LogRow]]:
    """(round, row) of each line. Raises ValueError for one that no run writes."""
    if next(rows, []) != list(RECORD_COLUMNS):
        raise ValueError(f"expected the columns {', '.join(RECORD_COLUMNS)}")
    limits = (MOST_ROUND, MOST_TICKS - 1, num_clients - 1, None, MOST_VERSION)  # None: a word
    last_round, last_ticks = 1, 0
    for line, cells in enumerate(rows, start=2):
        if len(cells) != len(RECORD_COLUMNS):
            raise ValueError(f"line {line} has {len(cells)} cells, expected {len(RECORD_COLUMNS)}")
        for name, cell, most in zip(RECORD_COLUMNS, cells, limits, strict=True):
            if most is None:
                is_right, expected = cell in WHATS, f"one of {', '.join(WHATS)}"
            else:
                is_number = cell.isascii() and cell.isdecimal() and len(cell) < 20
                is_right, expected = is_number and int(cell) <= most, f"a whole number of at most {most}"
            if not is_right:
                raise ValueError(f"line {line}, {name}={escape_hidden(cell):.40}: expected {expected}")
        round_num, ticks, client, version = (int(cells[i]) for i in (0, 1, 2, 4))
        if round_num < last_round:
            raise ValueError(f"line {line}: the round {round_num} stands after the round {last_round}")
        if ticks < last_ticks:
            raise ValueError(f"line {line}: its time of {ticks} ticks lies before that of the line above")
        last_round, last_ticks = round_num, ticks
        yield round_num, LogRow(ticks / TICKS_A_SECOND, client, cells[3], version)
