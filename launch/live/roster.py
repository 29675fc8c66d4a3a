"""Who has a seat in a live run: its clients, each known by a key of its own, of which only the SHA-256 is kept.

Where the run deals the examples out, its clients are the federation's, and seats are taken in order of joining, also
later. With people's own data the seats are those who joined before round 1. `roster.json` of the run folder keeps them
for a server that is started again; a finished run can be read without it. Imports no TensorFlow.
"""

import hashlib
import hmac
import pathlib
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from launch.console.shown_text import escape_hidden
from launch.live.fields import MOST_COUNT, read_count, read_text
from launch.live.messages import VERSION, MessageError
from launch.runs.run_records import RunRecordError, read_json
from launch.runs.tables import write_json

ROSTER_FILE = "roster.json"
MOST_NAME = 60  # characters
_KEY = re.compile(r"[0-9a-f]{32,128}")
_HASH = re.compile(r"[0-9a-f]{64}")
_RUN = re.compile(r"[0-9a-f]{32}")


class Refusal(Exception):
    """A client that gets no seat; the text is one line for it. `is_final`: it need not come back."""

    def __init__(self, reason: str, is_final: bool = True):
        super().__init__(reason)
        self.reason, self.is_final = reason, is_final


class Join(NamedTuple):
    """What a client says of itself.

    Attributes:
      key_hash: the SHA-256 of its key, in hex digits.
      name: to be shown: it hides and steers nothing.
      kind: of program.
      num_train, num_test: its examples; 0 where it has none of its own.
      columns: the digest of the description that these were checked against; "" without.
      most_examples: on which it trains in a round; 0 for all.
    """

    key_hash: str
    name: str
    kind: str
    num_train: int
    num_test: int
    columns: str
    most_examples: int


class Seat(NamedTuple):
    """Who has a seat: see `Join`."""

    key_hash: str
    name: str
    kind: str
    num_train: int
    num_test: int


def read_join(header: Mapping[str, Any]) -> Join:
    """Reads the header of a `join`. Raises Refusal of another version, MessageError of what cannot be read."""
    if header.get("protocol") != VERSION:
        raise Refusal(f"this server speaks version {VERSION} of the protocol: take its own join.py")
    key = read_text(header, "key")
    if not _KEY.fullmatch(key):
        raise MessageError("key: expected 32 to 128 hex digits")
    columns = header.get("columns")
    most_examples = header.get("round_most_examples")
    return Join(
        hashlib.sha256(key.encode()).hexdigest(),
        escape_hidden(read_text(header, "name", MOST_NAME)),
        escape_hidden(read_text(header, "kind", 20)),
        read_count(header, "num_train"),
        read_count(header, "num_test"),
        "" if columns is None else read_text(header, "columns"),
        0 if most_examples is None else read_count(header, "round_most_examples", 1),
    )


class Roster:
    """The seats of a run.

    Args:
      path: of `roster.json`; it is written by `keep`, and whenever a seat is taken after that.
      dealt: (train, test) examples of each client of the federation that is dealt out; None: people bring their own.
      most: seats at most, where people bring their own.
      columns: the digest of the description of people's own examples.
      most_examples: that a client may train on, see `count_most_examples`.

    Attributes:
      path: the same.
      run: the run's random name.
      seats: of each client; None for one that is free.
      is_fixed: whether round 1 may begin: no seat is given up or added any more.
    """

    def __init__(
        self,
        path: pathlib.Path,
        dealt: Sequence[tuple[int, int]] | None = None,
        most: int = 0,
        columns: str = "",
        most_examples: int = MOST_COUNT,
    ):
        self.path, self._dealt, self._columns, self._most_examples = path, dealt, columns, most_examples
        self._is_kept = False
        self.run = secrets.token_hex(16)
        self.seats: list[Seat | None] = [None] * (most if dealt is None else len(dealt))
        self.is_fixed = False

    @property
    def deals(self) -> bool:
        return self._dealt is not None

    def count_examples(self, client: int) -> tuple[int, int]:
        """(train, test) examples of a client; of a free seat those that it will be dealt."""
        if self._dealt is not None:
            return self._dealt[client]
        seat = self.seats[client]
        return (seat.num_train, seat.num_test) if seat else (0, 0)

    def name_client(self, client: int) -> str:
        """How a client is called in a line."""
        seat = self.seats[client]
        return f"{seat.name or 'client'} (seat {client})" if seat else f"seat {client}"

    def admit(self, join: Join) -> int:
        """The client that has this key, or else a free seat's, which it takes. Raises Refusal."""
        self._check(join)
        client = self._find(join.key_hash)
        if client is None:
            client = self._take(join)
        elif not self.deals:
            self._check_same(client, join)
        return client

    def release(self, client: int) -> None:
        """Frees a seat while they are not fixed."""
        assert not self.is_fixed
        self.seats[client] = None

    def fix(self) -> list[int]:
        """From now on the seats stay; with people's own data those that are free fall away.

        Returns the former index of each client.
        """
        kept = [client for client, seat in enumerate(self.seats) if seat or self.deals]
        self.seats = [self.seats[client] for client in kept]
        self.is_fixed = True
        return kept

    def keep(self) -> None:
        """Writes the file, since the run begins, and from now on whenever a seat is taken."""
        self._is_kept = True
        self._write()

    def read(self) -> None:
        """Takes the seats, fixed, from the file. Raises RunRecordError of a file that is none of this run's."""
        content = read_json(self.path)
        run, seats = content.get("run"), content.get("seats")
        if not isinstance(run, str) or not _RUN.fullmatch(run) or not isinstance(seats, list) or not seats:
            raise RunRecordError(f"{self.path}: expected a run and its seats")
        if self._dealt is not None and len(seats) != len(self._dealt):
            raise RunRecordError(f"{self.path}: {len(seats)} seats, expected {len(self._dealt)}, one for each client")
        try:
            self.seats = [None if seat is None and self.deals else _read_seat(seat) for seat in seats]
        except MessageError as error:
            raise RunRecordError(f"{self.path}: a seat is damaged ({error})") from None
        self.run, self.is_fixed, self._is_kept = run, True, True

    def _check(self, join: Join) -> None:
        if self.deals:
            if join.most_examples:
                raise Refusal("this run deals out its examples: leave out --most_examples")
            return
        if join.num_train < 1:
            raise Refusal("this run wants your own examples: give --data")
        if join.columns != self._columns:
            raise Refusal("your examples were checked against another description than this run's: join again")
        if join.num_train > self._most_examples:
            raise Refusal(
                f"{join.num_train:,} examples are more than a client of this run can train on in a round; join with "
                f"--most_examples={self._most_examples}"
            )

    def _check_same(self, client: int, join: Join) -> None:
        had, has = self.count_examples(client), (join.num_train, join.num_test)
        if not self.is_fixed:
            self.seats[client] = Seat(*join[: len(Seat._fields)])
        elif had != has:
            raise Refusal(f"{has[0]} examples and {has[1]} to test, expected {had[0]} and {had[1]}, as at joining")

    def _take(self, join: Join) -> int:
        if self.is_fixed and not self.deals:
            raise Refusal("the run has begun, and its clients are those who had joined before")
        if None not in self.seats:
            raise Refusal(f"all {len(self.seats)} seats are taken")
        client = self.seats.index(None)
        self.seats[client] = Seat(*join[: len(Seat._fields)])
        if self._is_kept:
            self._write()
        return client

    def _find(self, key_hash: str) -> int | None:
        """The client with this hash; all are compared, each in constant time, so that no time tells which fit."""
        hashes = [seat.key_hash if seat else "" for seat in self.seats]
        found = [client for client, each in enumerate(hashes) if hmac.compare_digest(each, key_hash)]
        return found[0] if found else None

    def _write(self) -> None:
        write_json(self.path, {"run": self.run, "seats": [seat and seat._asdict() for seat in self.seats]})


def _read_seat(seat: Any) -> Seat:
    if not isinstance(seat, dict):
        raise MessageError("expected an object")
    key_hash = read_text(seat, "key_hash")
    if not _HASH.fullmatch(key_hash):
        raise MessageError("key_hash: expected a SHA-256")
    shown = (escape_hidden(read_text(seat, name, 10 * MOST_NAME)) for name in ("name", "kind"))
    return Seat(key_hash, *shown, *(read_count(seat, name) for name in ("num_train", "num_test")))
