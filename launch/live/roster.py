"""Who has a seat in a live run: its clients, each known by a key of its own, of which only the SHA-256 is kept.

Who has no seat yet takes one by the token of its link, which is for one seat, or, shared, for the next free one. Of
tokens, too, only the SHA-256 is kept. Where the run deals the examples out, its clients are the federation's, and seats
are taken at any time. With people's own data the seats are those who joined before round 1. `roster.json` of the run
folder keeps them for a server that is started again; a finished run can be read without it. Imports no TensorFlow.
"""

import hashlib
import hmac
import pathlib
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from launch.console.shown_text import escape_hidden
from launch.live.fields import MOST_COUNT, MOST_TOKEN, read_count, read_text
from launch.live.messages import VERSION, MessageError
from launch.runs.run_records import RunRecordError, read_json
from launch.runs.tables import write_json

ROSTER_FILE = "roster.json"
MOST_NAME = 60  # characters
TOKEN_BYTES = 16  # of chance
_KEY = re.compile(r"[0-9a-f]{32,128}")
_HASH = re.compile(r"[0-9a-f]{64}")
_RUN = re.compile(r"[0-9a-f]{32}")


class Refusal(Exception):
    """A client that gets no seat; the text is one line for it. `is_final`: it need not come back."""

    def __init__(self, reason: str, is_final: bool = True):
        super().__init__(reason)
        self.reason, self.is_final = reason, is_final


class Caller(NamedTuple):
    """By what a client is known: the SHA-256 of its key, in hex digits, and of its link's token; "" without one."""

    key_hash: str
    token_hash: str


class Join(NamedTuple):
    """What a client says of itself.

    Attributes:
      key_hash, token_hash: see `Caller`.
      name: to be shown: it hides and steers nothing.
      kind: of program.
      num_train, num_test: its examples; 0 where it has none of its own.
      columns: the digest of the description that these were checked against; "" without.
      most_examples: on which it trains in a round; 0 for all.
    """

    key_hash: str
    token_hash: str
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


def hash_text(text: str) -> str:
    """The SHA-256 of a key or a token, which are too long to be guessed from it."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_caller(header: Mapping[str, Any]) -> Caller:
    """Reads who sent the first message of a connection. Raises MessageError of what cannot be read."""
    key, token = read_text(header, "key"), header.get("token")
    if not _KEY.fullmatch(key):
        raise MessageError("key: expected 32 to 128 hex digits")
    return Caller(hash_text(key), "" if token is None else hash_text(read_text(header, "token", MOST_TOKEN)))


def read_join(header: Mapping[str, Any]) -> Join:
    """Reads the header of a `join`. Raises Refusal of another version, MessageError of what cannot be read."""
    if header.get("protocol") != VERSION:
        raise Refusal(f"this server speaks version {VERSION} of the protocol: take its own join.py")
    columns = header.get("columns")
    most_examples = header.get("round_most_examples")
    return Join(
        *read_caller(header),
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
      is_shared: whether one token is for all seats.

    Attributes:
      path, is_shared: the same.
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
        is_shared: bool = False,
    ):
        self.path, self._dealt, self._columns, self._most_examples = path, dealt, columns, most_examples
        self._is_kept = False
        self.run = secrets.token_hex(16)
        self.seats: list[Seat | None] = [None] * (most if dealt is None else len(dealt))
        self._token_hashes = [""] * len(self.seats)
        self.is_fixed, self.is_shared = False, is_shared

    @property
    def deals(self) -> bool:
        return self._dealt is not None

    @property
    def num_seated(self) -> int:
        """How many clients have a seat."""
        return sum(seat is not None for seat in self.seats)

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

    def draw_tokens(self, known: Iterable[str] = ()) -> dict[int, str]:
        """The tokens of clients: those known, and new ones for free seats of which none is known.

        Args:
          known: tokens that were drawn before; those that are none of this run's are left out.
        """
        by_hash = {hash_text(token): token for token in known}
        free = [client for client, seat in enumerate(self.seats) if seat is None]
        unknown = [client for client in free if self._token_hashes[client] not in by_hash]
        if self.is_shared and unknown:
            unknown = list(range(len(self.seats)))  # which have one together
        shared = secrets.token_urlsafe(TOKEN_BYTES) if self.is_shared and unknown else ""
        for client in unknown:
            token = shared or secrets.token_urlsafe(TOKEN_BYTES)
            by_hash[hash_text(token)] = token
            self._token_hashes[client] = hash_text(token)
        if self._is_kept and unknown:
            self._write()
        return {client: by_hash[each] for client, each in enumerate(self._token_hashes) if each in by_hash}

    def find_seat(self, caller: Caller) -> int:
        """The client that has this key, or else the free seat that its token is for. Raises Refusal."""
        by_key = _find([seat.key_hash if seat else "" for seat in self.seats], caller.key_hash)
        if by_key:
            return by_key[0]
        if self.is_fixed and not self.deals:
            raise Refusal("the run has begun, and its clients are those who had joined before")
        if not caller.token_hash:
            raise Refusal("the link has no token: take it whole, with # and what follows")
        by_token = _find(self._token_hashes, caller.token_hash)
        if not by_token:
            raise Refusal("the link is not one of this run's: ask who runs it for another")
        free = [client for client in by_token if self.seats[client] is None]
        if not free and self.is_shared:
            raise Refusal(f"all {len(self.seats)} seats are taken")
        if not free:
            raise Refusal("the link is taken, and each is for one: ask who runs the run for another one")
        return free[0]

    def admit(self, join: Join) -> int:
        """The client that has this key, or else the free seat of its token, which it takes. Raises Refusal."""
        client = self.find_seat(Caller(join.key_hash, join.token_hash))
        self._check(join)
        if self.seats[client] is None:
            self._put(client, join)
            if self._is_kept:
                self._write()
        elif not self.deals:
            self._check_same(client, join)
        return client

    def release(self, client: int) -> None:
        """Frees a seat while they are not fixed."""
        assert not self.is_fixed
        self.seats[client] = None

    def free(self, client: int) -> None:
        """Frees a dealt seat whose client has lost its key. `draw_tokens` draws another token for it."""
        assert self.deals
        self.seats[client] = None
        if not self.is_shared:
            self._token_hashes[client] = ""

    def fix(self) -> list[int]:
        """From now on the seats stay; with people's own data those that are free fall away.

        Returns the former index of each client.
        """
        kept = [client for client, seat in enumerate(self.seats) if seat or self.deals]
        self.seats = [self.seats[client] for client in kept]
        self._token_hashes = [self._token_hashes[client] for client in kept]
        self.is_fixed = True
        return kept

    def keep(self) -> None:
        """Writes the file, since the run begins, and from now on whenever a seat is taken."""
        self._is_kept = True
        self._write()

    def read(self) -> None:
        """Takes the seats, fixed, from the file. Raises RunRecordError of a file that is none of this run's."""
        content = read_json(self.path)
        run, seats, tokens = content.get("run"), content.get("seats"), content.get("token_hashes")
        if not isinstance(run, str) or not _RUN.fullmatch(run) or not isinstance(seats, list) or not seats:
            raise RunRecordError(f"{self.path}: expected a run and its seats")
        if not isinstance(tokens, list) or len(tokens) != len(seats) or not all(map(_is_hash, tokens)):
            raise RunRecordError(f"{self.path}: expected the SHA-256 of a token for each seat")
        if self._dealt is not None and len(seats) != len(self._dealt):
            raise RunRecordError(f"{self.path}: {len(seats)} seats, expected {len(self._dealt)}, one for each client")
        try:
            self.seats = [None if seat is None and self.deals else _read_seat(seat) for seat in seats]
        except MessageError as error:
            raise RunRecordError(f"{self.path}: a seat is damaged ({error})") from None
        self.run, self.is_fixed, self._is_kept, self._token_hashes = run, True, True, tokens

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
            self._put(client, join)
        elif had != has:
            raise Refusal(f"{has[0]} examples and {has[1]} to test, expected {had[0]} and {had[1]}, as at joining")

    def _put(self, client: int, join: Join) -> None:
        self.seats[client] = Seat(**{name: getattr(join, name) for name in Seat._fields})

    def _write(self) -> None:
        seats = [seat and seat._asdict() for seat in self.seats]
        write_json(self.path, {"run": self.run, "seats": seats, "token_hashes": self._token_hashes})


def _find(hashes: Sequence[str], wanted: str) -> list[int]:
    """Where a hash stands; all are compared, each in constant time, so that no time tells which fit."""
    return [place for place, each in enumerate(hashes) if hmac.compare_digest(each, wanted)]


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def _read_seat(seat: Any) -> Seat:
    if not isinstance(seat, dict):
        raise MessageError("expected an object")
    key_hash = read_text(seat, "key_hash")
    if not _is_hash(key_hash):
        raise MessageError("key_hash: expected a SHA-256")
    shown = (escape_hidden(read_text(seat, name, 10 * MOST_NAME)) for name in ("name", "kind"))
    return Seat(key_hash, *shown, *(read_count(seat, name) for name in ("num_train", "num_test")))
