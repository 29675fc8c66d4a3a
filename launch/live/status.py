"""What the organiser of a live run sees: who is there and works, how far the run is, what did not count.

The session and the network tell a `Status` what happens, in the main thread, and it shows that as JSON, at most twice a
second, and in the terminal who came and left. To tell it something costs a look-up; JSON is made of what has changed
since the last time alone, so that a thousand clients cost milliseconds. Imports no TensorFlow.

The JSON, whose times are seconds since 1970:

  name, folder: of the run and of where it lies.
  state: "waiting" for clients, "running", "over".
  round, rounds: that are done, and of the run.
  waits: whether a round waits for the answers of those whom it asked.
  needed: how many clients have to be here before it begins or goes on.
  started, made: when the server began, and when this was made.
  resumed: the last round before this server; 0 in a run that it began.
  here, seats: how many clients are connected; and of each seat `Seat`, with `asked`, when it was asked its task.
  asked, answered: how many were asked since all had answered, and of these are not busy any more.
  history: rows of `Round`; of many rounds every second, fourth, ..., and the last.
  totals: sums over all rounds, `TOTALS`.
  invite: link of the next free seat, its QR code, how many seats are free, and whether it is for all.
  notices: what did not count, and why; the last ones.
  report, commands: when it is over, the run's page, and what to type.
"""

import collections
import json
import math
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from launch.console.shown_text import format_count
from launch.live.record import TICKS_A_SECOND
from launch.live.roster import Roster
from launch.live.traffic import Traffic
from launch.runs import columns
from launch.runs.round_table import read_round_table

EVERY_TICKS = TICKS_A_SECOND // 2  # between two that are shown
MOST_ROUNDS = 500  # rows of the history; a screen has few more columns
MOST_NOTICES = 20
MOST_NAMED = 8  # clients in a line
MOST_SEATS_AT_ONCE = 20  # whose clients are told as they come and leave; of more it is said after each round
WAITING, RUNNING, OVER = "waiting", "running", "over"
FREE, HERE, TRAINING, AWAY = "free", "here", "training", "away"
TOTALS = ("missing", "late", "rejected", "bytes_down", "bytes_up", "seconds")


class Seat(NamedTuple):
    """How it is with a seat.

    Attributes:
      name, kind: of its client, as it says; safe to be shown as text.
      state: FREE, HERE, TRAINING or AWAY.
      examples: to train on.
      answers, rejected, late: answers since the server began: that counted, that must not, that came too late.
      task: what it works on, any name that another task does not have; "" for nothing.
    """

    name: str = ""
    kind: str = ""
    state: str = FREE
    examples: int = 0
    answers: int = 0
    rejected: int = 0
    late: int = 0
    task: str = ""


def describe_seat(roster: Roster, client: int, is_connected: bool, task: str, counts: tuple[int, int, int]) -> Seat:
    """How it is with a client's seat; the counts are of answers that counted, that must not, and that came too late."""
    num_examples, seat = roster.count_examples(client)[0], roster.seats[client]
    if seat is None:
        return Seat(examples=num_examples)
    state = (TRAINING if task else HERE) if is_connected else AWAY
    return Seat(seat.name, seat.kind, state, num_examples, *counts, task)


class Round(NamedTuple):
    """What became of a round.

    Attributes:
      round: its number, from 1.
      accuracy, loss: of the model on test examples; None where it was not tested.
      asked, answered, missing, late, rejected, bytes_down, bytes_up: see `Traffic`.
      seconds: that it took, with its test.
    """

    round: int
    accuracy: float | None
    loss: float | None
    asked: int
    answered: int
    missing: int
    late: int
    rejected: int
    bytes_down: int
    bytes_up: int
    seconds: float


def describe_round(
    round_num: int, tested: tuple[float | None, float | None], traffic: Traffic, seconds: float
) -> Round:
    """A round of what was counted in it; `tested` is the accuracy and the loss."""
    accuracy, loss = (value if value is not None and math.isfinite(value) else None for value in tested)
    answers = traffic.num_asked, traffic.num_answered, traffic.num_missing, traffic.num_late, traffic.num_rejected
    return Round(round_num, accuracy, loss, *answers, traffic.bytes_down, traffic.bytes_up, round(seconds, 3))


def read_rounds(folder: pathlib.Path, last_round: int) -> list[Round]:
    """The rounds of a run that goes on, from its tables. Raises RunFolderError for one that is damaged."""
    metrics, traffic, timing = (
        _read_columns(folder / name, last_round)
        for name in (columns.METRICS_FILE, columns.TRAFFIC_FILE, columns.TIMING_FILE)
    )
    nothing = [""] * last_round
    tested = zip(metrics.get(columns.TEST_ACCURACY, nothing), metrics.get(columns.TEST_LOSS, nothing), strict=True)
    rows = zip(*(traffic[name] for name in Traffic._fields), strict=True)
    took = zip(timing[columns.ROUND_S], timing[columns.EVALUATION_S], strict=True)
    return [
        describe_round(
            number,
            tuple(float(cell) if cell else None for cell in values),
            Traffic(*map(int, row)),
            sum(map(float, parts)),
        )
        for number, (values, row, parts) in enumerate(zip(tested, rows, took, strict=True), start=1)
    ]


def _read_columns(path: pathlib.Path, last_round: int) -> dict[str, list[str]]:
    names, rows = read_round_table(path, last_round)
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def name_some(names: Sequence[str]) -> str:
    """Names in a line; of many the first ones, and how many more there are."""
    more = len(names) - MOST_NAMED
    if more > 0:
        return f"{', '.join(names[:MOST_NAMED])} and {more:,} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def draw_code(link: str) -> dict[str, Any]:
    """A link's QR code as a path of SVG: `size`, modules to a side, its quiet zone among them; `path`, what is dark."""
    import segno

    rows = [list(row) for row in segno.make(link, micro=False, error="m").matrix_iter(border=4)]
    parts = []
    for y, row in enumerate(rows):
        x = 0
        while x < len(row):
            end = x
            while end < len(row) and row[end]:
                end += 1
            if end > x:
                parts.append(f"M{x} {y}h{end - x}v1h{x - end}z")
            x = end + 1
    return {"size": len(rows), "path": "".join(parts)}


class Status:
    """See the module.

    Args:
      show: takes the JSON, in UTF-8, as `Transport.show` does.
      say: takes a line for the terminal.
      name, folder: of the run.
      rounds: of the run.
      waits: whether its rounds wait for answers.
      find_link: the link of the next free seat; None if there is none.
      is_shared: whether that link is for all.
      clock: seconds since 1970.
    """

    def __init__(
        self,
        show: Callable[[bytes], None],
        say: Callable[[str], None],
        name: str,
        folder: str,
        rounds: int,
        waits: bool = True,
        find_link: Callable[[], str | None] = lambda: None,
        is_shared: bool = False,
        clock: Callable[[], float] = time.time,
    ):
        self._show, self._say, self._find_link, self._clock = show, say, find_link, clock
        self._facts: dict[str, Any] = {"name": name, "folder": folder, "state": WAITING, "round": 0, "rounds": rounds}
        self._is_shared = is_shared
        self._facts |= {"waits": waits, "needed": 1, "started": round(clock(), 3), "resumed": 0}
        self._seats: list[Seat] = []
        self._asked: list[float | None] = []  # when each was asked what it works on
        self._texts: list[str] = []  # of the seats, as JSON
        self._stale = set[int]()  # seats whose text is out of date
        self._states = collections.Counter[str]()
        self._told = set[int]()  # who was here when this was last said
        self._rounds: list[tuple[int, str]] = []  # number and JSON
        self._stride = 1
        self._totals: dict[str, float] = dict.fromkeys(TOTALS, 0)
        self._num_asked, self._num_busy = 0, 0  # since nobody was busy; with what they have not answered
        self._notices = collections.deque[str](maxlen=MOST_NOTICES)
        self._repeats = 1  # of the last notice
        self._code: tuple[str, dict[str, Any]] | None = None  # the link that was drawn last
        self._shown_ticks: int | None = None
        self._has_changed = True

    # --- What happens ---

    def see(self, index: int, seat: Seat) -> None:
        """A seat is like this now; those up to it are there, too."""
        while len(self._seats) <= index:
            self._stale.add(len(self._seats))
            self._seats.append(Seat())
            self._asked.append(None)
            self._texts.append("")
            self._states[FREE] += 1
        before = self._seats[index]
        if seat == before:
            return
        if seat.task != before.task:
            self._asked[index] = round(self._clock(), 3) if seat.task else None
            if seat.task:
                self._num_asked = self._num_asked + 1 if self._num_busy else 1
            self._num_busy += bool(seat.task) - bool(before.task)
        self._states[before.state] -= 1
        self._states[seat.state] += 1
        self._seats[index] = seat
        self._stale.add(index)
        self._has_changed = True

    def forget_seats(self) -> None:
        """All seats are told anew, since they have other numbers now."""
        self._seats, self._asked, self._texts = [], [], []
        self._stale.clear()
        self._states.clear()
        self._num_asked, self._num_busy = 0, 0
        self._has_changed = True

    def wait_for(self, needed: int) -> None:
        """The run waits for so many clients."""
        self._change(state=WAITING, needed=needed)

    def go_on(self, needed: int) -> None:
        """It runs; a round needs so many."""
        self._change(state=RUNNING, needed=needed)
        self._told = self._list_here()

    def add_past(self, rows: Sequence[Round]) -> None:
        """These rounds were done before this server."""
        for row in rows:
            self.add_round(row)
            self._change(resumed=row.round)

    def add_round(self, row: Round) -> None:
        """A round is done."""
        if self._rounds and self._rounds[-1][0] % self._stride:
            self._rounds.pop()  # was there as the last one alone
        self._rounds.append((row.round, json.dumps(row._asdict())))
        if len(self._rounds) > MOST_ROUNDS:
            self._stride *= 2
            kept = [each for each in self._rounds[:-1] if each[0] % self._stride == 0]
            self._rounds = [*kept, self._rounds[-1]]
        for name in TOTALS:
            self._totals[name] += getattr(row, name)
        self._change(round=row.round)
        if len(self._seats) > MOST_SEATS_AT_ONCE:
            self._tell_who_moved()

    def note(self, line: str) -> None:
        """Something did not count."""
        last = self._notices[-1] if self._notices else None
        if last is not None and line == last.removesuffix(f" (x{self._repeats})"):
            self._repeats += 1
            self._notices[-1] = f"{line} (x{self._repeats})"
        else:
            self._repeats = 1
            self._notices.append(line)
        self._has_changed = True

    def end(self, report: str | None, commands: Sequence[str] = ()) -> None:
        """The run is over; shows that, with where its page will lie, if it has one, and what to type.

        Where rounds wait for nobody, clients may still be busy: their answers are of no use any more.
        """
        for index, seat in enumerate(self._seats):
            if seat.task:
                self.see(index, seat._replace(task="", state=HERE if seat.state == TRAINING else seat.state))
        self._change(state=OVER, report=report, commands=list(commands))
        self._show(self.format())

    # --- What is shown ---

    def show_if_due(self, now_ticks: int) -> int | None:
        """Shows how it is, if it is time to; else returns when that will be, None while nothing has changed.

        Ticks are those of the transport.
        """
        if not self._has_changed:
            return None
        if self._shown_ticks is not None and now_ticks < self._shown_ticks + EVERY_TICKS:
            return self._shown_ticks + EVERY_TICKS
        self._shown_ticks = now_ticks
        self._show(self.format())
        if self._facts["state"] == RUNNING and len(self._seats) <= MOST_SEATS_AT_ONCE:
            self._tell_who_moved()
        return None

    def format(self) -> bytes:
        """The JSON of how it is, in UTF-8."""
        for index in self._stale:
            seat = self._seats[index]._asdict()
            del seat["task"]
            self._texts[index] = json.dumps({"seat": index, **seat, "asked": self._asked[index]})
        self._stale.clear()
        self._has_changed = False
        facts = {**self._facts, "asked": self._num_asked, "answered": self._num_asked - self._num_busy}
        facts |= {
            "made": round(self._clock(), 3),
            "here": self._count_here(),
            "totals": self._totals,
            "invite": self._invite(),
            "notices": list(self._notices),
        }
        history = ",".join(text for _, text in self._rounds)
        lists = f'"seats": [{",".join(self._texts)}], "history": [{history}]'
        return f"{json.dumps(facts)[:-1]}, {lists}}}".encode()

    def _change(self, **facts: Any) -> None:
        self._facts |= facts
        self._has_changed = True

    def _count_here(self) -> int:
        return self._states[HERE] + self._states[TRAINING]

    def _list_here(self) -> set[int]:
        return {index for index, seat in enumerate(self._seats) if seat.state in (HERE, TRAINING)}

    def _invite(self) -> dict[str, Any]:
        link = self._find_link()
        if link is None:
            return {"link": None, "qr": None, "free": 0, "shared": self._is_shared}
        if self._code is None or self._code[0] != link:
            self._code = link, draw_code(link)
        return {"link": link, "qr": self._code[1], "free": self._states[FREE], "shared": self._is_shared}

    def _tell_who_moved(self) -> None:
        """Says who came and left since this was last said; of many how many."""
        here = self._list_here()
        moved = [(self._describe(here - self._told), "came"), (self._describe(self._told - here), "left")]
        self._told = here
        if parts := [f"{who} {what}" for who, what in moved if who]:
            self._say(f"here     {', '.join(parts)}; {len(here)} of {format_count(len(self._seats), 'client')} here")

    def _describe(self, seats: Sequence[int] | set[int]) -> str:
        if len(seats) > MOST_NAMED:
            return f"{len(seats):,}"
        return name_some([f"{self._seats[seat].name or 'client'} (seat {seat})" for seat in sorted(seats)])
