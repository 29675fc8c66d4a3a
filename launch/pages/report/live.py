"""What the page of a live run, and of one that repeats it, says of clients that answered over the network."""

import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from files.reading import describe
from launch.console.shown_text import escape_hidden
from launch.pages.comparison.compared_run import ComparedRun
from launch.pages.report.parts import MOST_ROWS, Table
from launch.pages.report.words import count, show_bytes, show_cell
from launch.runs.column_titles import title_column
from launch.runs.columns import (
    BYTES_DOWN,
    BYTES_UP,
    NUM_ANSWERED,
    NUM_ASKED,
    NUM_LATE,
    NUM_MISSING,
    NUM_REJECTED,
    NUM_RETURNS,
    ROUND,
    TRAFFIC_FILE,
)
from launch.runs.run_records import read_columns
from launch.settings.run_titles import TWIN
from launch.settings.serving import LIVE, OWN_DATA, SEATS

# Of each round, and in all.
COUNTS = (NUM_ASKED, NUM_ANSWERED, NUM_LATE, NUM_MISSING, NUM_REJECTED, NUM_RETURNS)


class LivePart(NamedTuple):
    """What the page says.

    Attributes:
      sentence: what the run was.
      facts: (name, text).
      rounds: the counts by round; None where the run kept none.
    """

    sentence: str
    facts: list[tuple[str, str]]
    rounds: Table | None


def describe_live(run: ComparedRun, config: Mapping[str, Any], run_dir: pathlib.Path) -> LivePart | None:
    """What is said of a live run or of its twin; None of all others.

    Args:
      run: the run.
      config: its `config.json`, which may be anybody's.
      run_dir: its folder; a live run's `traffic.csv` is read, if it is there, and no list of who had which seat.
    """
    if run.devices.startswith(TWIN):
        whose = run.devices.removeprefix(TWIN)
        sentence = f"A simulation that repeats the live run {whose}: who took part, and when, is from its record."
        return LivePart(sentence, [], None)
    live = config.get(LIVE)
    if not isinstance(live, Mapping):
        return None
    data = "brought their own data" if live.get(OWN_DATA) is True else "got their parts of the data from the server"
    sentence = f"A live run: its clients answered over the network, and {data}."
    seats = live.get(SEATS)
    facts = [("Seats", f"{seats:,}")] if type(seats) is int and seats > 0 else []
    try:
        traffic = read_columns(run_dir / TRAFFIC_FILE) if (run_dir / TRAFFIC_FILE).exists() else {}
    except (OSError, ValueError) as error:
        why = escape_hidden(describe(error))
        return LivePart(f"{sentence} Its {TRAFFIC_FILE} cannot be read ({why}).", facts, None)
    counted = {column: np.nansum(traffic[column]) for column in COUNTS if column in traffic}
    facts += [(title_column(column), f"{total:,.0f} in all rounds") for column, total in counted.items()]
    for column, name in ((BYTES_DOWN, "Sent to clients, on the wire"), (BYTES_UP, "Sent by clients, on the wire")):
        if column in traffic:
            facts.append((name, show_bytes(float(np.nansum(traffic[column])))))
    return LivePart(sentence, facts, _tabulate(traffic))


def _tabulate(traffic: Mapping[str, np.ndarray]) -> Table | None:
    """`traffic.csv` for the page; of a long run the rounds in which an answer was late, missing or left out first."""
    if ROUND not in traffic or not len(traffic[ROUND]):
        return None
    number = len(traffic[ROUND])
    trouble = sum(
        (np.nan_to_num(traffic[name]) for name in (NUM_LATE, NUM_MISSING, NUM_REJECTED) if name in traffic),
        np.zeros(number),
    )
    shown = np.sort(np.argsort(-trouble, kind="stable")[:MOST_ROWS])
    rows = [[show_cell(float(values[i])) for values in traffic.values()] for i in shown]
    note = f"The {count(MOST_ROWS, 'round')} with most trouble; {TRAFFIC_FILE} has all." if number > MOST_ROWS else ""
    return Table([title_column(name) for name in traffic], rows, note)
