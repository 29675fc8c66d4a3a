"""Bounds on connections of which nothing is known yet: how many there are, for how long, and what they may send.

A connection is admitted when its client has a seat, or watches by the organiser's token. Before that it has seconds to
send a request and few bytes in all, whatever it sends them as; when too many are open, the one that has said nothing
for the longest goes. So strangers cost a bounded amount of memory, and never a client its connection. All is of the
loop's thread; what is beyond a bound is counted.
"""

import asyncio
import collections
import ipaddress
import resource
from collections.abc import Callable
from typing import Any

HEADER_S = 10.0  # in which a request must be there
ANSWER_S = 120.0  # in which files must be fetched
MOST_EARLY_BYTES = 2**16  # of one that is not admitted: requests and a first message have a few thousand
# First messages of an address that were of no use, or wait to be looked at: beyond one for each seat, and a second.
SPARE_REFUSED, REFUSED_PER_S = 100, 5.0
SPARE_CONNECTIONS = 256  # beyond two for each seat: pages that are fetched, and strangers
SPARE_OF_ADDRESS = 64  # beyond one for each seat: a class may have one address
MOST_ADDRESSES = 4096  # of which refusals are counted
OTHER_FILES = 256  # that the server has open beside connections
# What is counted.
TOO_MANY, TOO_MANY_OF_ADDRESS, TOO_SLOW, TOO_LARGE, TOO_OFTEN, TOO_TALKATIVE, MALFORMED = (
    *("more connections than there may be at once", "more connections than one address may have"),
    *("connections that took too long to say what they want", "connections that sent much before they had a seat"),
    *("first messages of an address that was refused too often", "clients that sent too many messages"),
    "requests that are no HTTP",
)


def raise_open_files(wanted: int) -> int:
    """Has the system let this program open so many connections beside its files; how many of them it does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = hard if hard != resource.RLIM_INFINITY else wanted + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < min(most, wanted + OTHER_FILES):
        soft = min(most, wanted + OTHER_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else min(wanted, soft - OTHER_FILES)


class Bucket:
    """Lets through `most` at once, and then `per_s` a second."""

    def __init__(self, most: float, per_s: float):
        self._most, self._per_s, self._left, self._since_s = most, per_s, most, 0.0

    def take(self, now_s: float) -> bool:
        """Takes one; whether there was one."""
        if self._since_s:
            self._left = min(self._most, self._left + (now_s - self._since_s) * self._per_s)
        self._since_s = now_s
        self._left -= (taken := self._left >= 1)
        return taken

    def give_back(self) -> None:
        """One that was taken is not counted."""
        self._left += 1


class Guard:
    """See the module.

    Args:
      num_seats: of the run.
      most_open: connections at once.
    """

    def __init__(self, num_seats: int, most_open: int):
        self._most_open, self._most_of_address = most_open, num_seats + SPARE_OF_ADDRESS
        self._most_refused = num_seats + SPARE_REFUSED
        self._silent, self._spoken = dict[_Guarded, None](), dict[_Guarded, None]()  # not admitted, oldest first
        self._num_open, self._of_address = 0, collections.Counter[str]()
        self._refused = dict[str, Bucket]()
        self.counts = collections.Counter[str]()

    def wrap(self, make_protocol: Callable[[], Any]) -> Callable[[], asyncio.Protocol]:
        """A factory of protocols that keep to the bounds, and else do what those of the other one do."""
        return lambda: _Guarded(self, make_protocol())

    def arrive(self, transport: Any) -> None:
        """A request is there, and has its time to be answered."""
        _find(transport).set_deadline(ANSWER_S)

    def hear(self, transport: Any) -> bool:
        """The first message is there; whether it may be looked at."""
        guarded = _find(transport)
        bucket = self._refused.setdefault(guarded.address, Bucket(self._most_refused, REFUSED_PER_S))
        if len(self._refused) > MOST_ADDRESSES:
            del self._refused[next(iter(self._refused))]
        if not bucket.take(guarded.loop.time()):
            self.counts[TOO_OFTEN] += 1
            return False
        guarded.set_deadline(None)
        if self._silent.pop(guarded, 0) is None:
            self._spoken[guarded] = None
        return True

    def admit(self, transport: Any) -> None:
        """Whoever is there has a seat, or watches: no bound of the guard is for it any more."""
        guarded = _find(transport)
        guarded.is_admitted = True
        guarded.set_deadline(None)
        self._silent.pop(guarded, None)
        self._spoken.pop(guarded, None)
        if bucket := self._refused.get(guarded.address):
            bucket.give_back()

    def let_in(self, guarded: "_Guarded") -> bool:
        if self._of_address[guarded.address] >= self._most_of_address and not _is_loopback(guarded.address):
            self.counts[TOO_MANY_OF_ADDRESS] += 1
            return False
        if self._num_open >= self._most_open:
            self.counts[TOO_MANY] += 1
            oldest = next(iter(self._silent or self._spoken), None)
            if oldest is None:
                return False
            oldest.abort()
            self.forget(oldest)
        self._num_open += 1
        self._of_address[guarded.address] += 1
        self._silent[guarded] = None
        return True

    def forget(self, guarded: "_Guarded") -> None:
        """It is gone; again does nothing."""
        if not guarded.is_in:
            return
        guarded.is_in = False
        self._num_open -= 1
        self._of_address[guarded.address] -= 1
        if not self._of_address[guarded.address]:
            del self._of_address[guarded.address]
        self._silent.pop(guarded, None)
        self._spoken.pop(guarded, None)


class _Guarded(asyncio.Protocol):
    """A connection; what is within the bounds goes on to the protocol of the HTTP server."""

    def __init__(self, guard: Guard, inner: asyncio.Protocol):
        self._guard, self._inner = guard, inner
        self._num_bytes, self._deadline = 0, None
        self.is_admitted = self.is_in = self._has_inner = False
        self.address, self.loop = "", asyncio.get_running_loop()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.address = (transport.get_extra_info("peername") or ("",))[0]
        if not self._guard.let_in(self):
            self.abort()
            return
        self.is_in = self._has_inner = True
        self.set_deadline(HEADER_S)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if not self.is_in:
            return
        if not self.is_admitted:
            self._num_bytes += len(data)
            if self._num_bytes > MOST_EARLY_BYTES:
                self._guard.counts[TOO_LARGE] += 1
                self.abort()
                return
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._has_inner else None

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self.set_deadline(None)
        self._guard.forget(self)
        if self._has_inner:
            self._inner.connection_lost(error)

    def set_deadline(self, seconds: float | None) -> None:
        """It is aborted after so long, unless it is given another time."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._expire)

    def abort(self) -> None:
        self._transport.abort()

    def _expire(self) -> None:
        self._guard.counts[TOO_SLOW] += 1
        self.abort()


def _find(transport: Any) -> _Guarded:
    if transport is None:
        raise ConnectionError("it is gone")
    return transport.get_protocol()


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False
