"""Bounds on connections of which nothing is known yet: how many there are, for how long, and what they may send.

A connection is admitted when its client has a seat, or watches by the organiser's token. Before that it has seconds to
send a request and few bytes in all, whatever it sends them as; when too many are open, the one that has said nothing
for the longest goes. So strangers cost a bounded amount of memory, and never a client its connection. All is of the
loop's thread; what is beyond a bound is counted.
"""

import asyncio
import collections
import contextlib
import ipaddress
import resource
import socket
import ssl
from collections.abc import Callable
from typing import Any

HEADER_S = 10.0  # in which a request must be there
ANSWER_S = 120.0  # in which files must be fetched
HEARTBEAT_S = 20.0  # a WebSocket is lost if half of this brings no sign of life
MOST_EARLY_BYTES = 2**16  # of a request, or until there is a seat: that and a first message have a few thousand
# First messages of an address that has neither a seat's key nor a good token: beyond one for each seat, and a second.
SPARE_REFUSED, REFUSED_PER_S = 100, 5.0
SPARE_CONNECTIONS = 256  # beyond two for each seat: pages that are fetched, and strangers
SPARE_OF_ADDRESS = 64  # beyond one for each seat: a class may have one address
MOST_ADDRESSES = 4096  # of which refusals are counted singly
SWEEP_S = 1.0  # after which those are looked for again that need not be counted any more
OTHER_FILES = 256  # that the server has open beside connections
# What is counted.
TOO_MANY, TOO_MANY_OF_ADDRESS, TOO_SLOW, TOO_LARGE, TOO_OFTEN, TOO_TALKATIVE, MALFORMED, NO_TLS, NO_FILE, GONE = (
    *("more connections than there may be at once", "more connections than one address may have"),
    *("connections that took too long to say what they want", "connections that sent much before they had a seat"),
    *("first messages of an address that was refused too often", "clients that sent too many messages"),
    *("requests that are no HTTP", "connections that did not agree on TLS"),
    *("connections for which the system had no open file left", "requests that were gone before the answer"),
)
FAILED = "requests that failed here by {}"  # the name of an error


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
        self._fill(now_s)
        self._left -= (taken := self._left >= 1)
        return taken

    def is_full(self, now_s: float) -> bool:
        self._fill(now_s)
        return self._left >= self._most

    def _fill(self, now_s: float) -> None:
        if self._since_s:
            self._left = min(self._most, self._left + (now_s - self._since_s) * self._per_s)
        self._since_s = now_s


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
        self._refused, self._swept_s = dict[str, Bucket](), 0.0
        self._refused_others = self._make_bucket()  # of addresses beyond those that are counted singly
        self._opening = set[asyncio.Task]()
        self.counts = collections.Counter[str]()

    async def end(self) -> None:
        """Lets go of those with whom TLS is not agreed yet."""
        for each in self._opening:
            each.cancel()
        if self._opening:
            await asyncio.wait(self._opening)

    def let_in(self, host: str, make_protocol: Callable[[], asyncio.Protocol]) -> "_Guarded | None":
        """Counts a connection of this host that is there; another one may have to go for it. None: it must go."""
        address, is_local = name_address(host)
        if self._of_address[address] >= self._most_of_address and not is_local:
            self.counts[TOO_MANY_OF_ADDRESS] += 1
            return None
        if self._num_open >= self._most_open:
            self.counts[TOO_MANY] += 1
            oldest = next(iter(self._silent or self._spoken), None)
            if oldest is None:
                return None
            self.forget(oldest)
            oldest.abort()
        guarded = _Guarded(self, address, make_protocol)
        self._num_open += 1
        self._of_address[address] += 1
        self._silent[guarded] = None
        return guarded

    def open(
        self, guarded: "_Guarded", connection: socket.socket, tls: ssl.SSLContext | None, handshake_s: float
    ) -> None:
        """Has one that is let in speak by this socket, after TLS is agreed within so many seconds, if there is any."""
        opening = asyncio.create_task(guarded.open(connection, tls, handshake_s))
        self._opening.add(opening)
        opening.add_done_callback(lambda _: self._close_unopened(opening, guarded, connection))

    def _close_unopened(self, opening: asyncio.Task, guarded: "_Guarded", connection: socket.socket) -> None:
        self._opening.discard(opening)
        if not guarded.is_open:
            self.forget(guarded)
            connection.close()

    def arrive(self, transport: Any, num_bytes: int) -> None:
        """A request of so many bytes is there, and has its time to be answered; what has come behind it still counts.

        Raises ConnectionError of one that is gone.
        """
        guarded = _find(transport)
        guarded.num_bytes = max(guarded.num_bytes - num_bytes, 0)
        guarded.set_deadline(ANSWER_S)

    def hear(self, transport: Any, is_known: bool) -> bool:
        """The first message is there; whether it may be looked at. Those who are known are always heard.

        Raises ConnectionError of one that is gone.
        """
        guarded = _find(transport)
        now_s = guarded.loop.time()
        if not is_known and not self._find_refused(guarded.address, now_s).take(now_s):
            self.counts[TOO_OFTEN] += 1
            return False
        guarded.set_deadline(None)
        if self._silent.pop(guarded, 0) is None:
            self._spoken[guarded] = None
        return True

    def admit(self, transport: Any) -> None:
        """Whoever is there has a seat, or watches: no bound of the guard is for it any more.

        Raises ConnectionError of one that is gone.
        """
        guarded = _find(transport)
        guarded.is_admitted = True
        guarded.set_deadline(None)
        self._silent.pop(guarded, None)
        self._spoken.pop(guarded, None)

    def _make_bucket(self) -> Bucket:
        return Bucket(self._most_refused, REFUSED_PER_S)

    def _find_refused(self, address: str, now_s: float) -> Bucket:
        """The bucket of an address. None is given up that is not full: many addresses would free each other."""
        if len(self._refused) >= MOST_ADDRESSES and now_s >= self._swept_s + SWEEP_S:
            self._swept_s = now_s
            self._refused = {each: bucket for each, bucket in self._refused.items() if not bucket.is_full(now_s)}
        if address not in self._refused:
            if len(self._refused) >= MOST_ADDRESSES:
                return self._refused_others
            self._refused[address] = self._make_bucket()
        return self._refused[address]

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

    def __init__(self, guard: Guard, address: str, make_inner: Callable[[], asyncio.Protocol]):
        self._guard, self._make_inner, self.address = guard, make_inner, address
        self._socket: socket.socket | None = None
        self._transport: Any = None
        self._inner: Any = None
        self._deadline: asyncio.TimerHandle | None = None
        self.num_bytes, self.is_admitted, self.is_in = 0, False, True
        self.loop = asyncio.get_running_loop()

    async def open(self, connection: socket.socket, tls: ssl.SSLContext | None, handshake_s: float) -> None:
        self._socket = connection
        limit_s = handshake_s if tls else None
        try:
            await self.loop.connect_accepted_socket(*(lambda: self, connection), ssl=tls, ssl_handshake_timeout=limit_s)
        except OSError:  # of TLS, too
            if self.is_in:
                self._guard.counts[NO_TLS] += 1

    @property
    def is_open(self) -> bool:
        """Whether it could speak at some time, so that it is told its end."""
        return self._transport is not None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        if not self.is_in:  # it gave way meanwhile
            self.abort()
            return
        self._inner = self._make_inner()
        self.set_deadline(HEADER_S)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if not self.is_in:
            return
        if not self.is_admitted:
            self.num_bytes += len(data)
            if self.num_bytes > MOST_EARLY_BYTES:
                self._guard.counts[TOO_LARGE] += 1
                self.abort()
                return
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return None if self._inner is None else self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self.set_deadline(None)
        self._guard.forget(self)
        if self._inner is not None:
            self._inner.connection_lost(error)

    def set_deadline(self, seconds: float | None) -> None:
        """It is aborted after so long, unless it is given another time."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._expire)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        elif self._socket is not None:  # whoever is agreeing on TLS reads its end, and closes it
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _expire(self) -> None:
        self._guard.counts[TOO_SLOW] += 1
        self.abort()


def _find(transport: Any) -> _Guarded:
    if transport is None:
        raise ConnectionError("it is gone")
    return transport.get_protocol()


def name_address(host: str) -> tuple[str, bool]:
    """By what an address is counted, and whether it is of this machine: of IPv6 one has a network of 2^64 addresses."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host, False
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        elif not address.is_loopback:
            return str(ipaddress.IPv6Network((address, 64), strict=False)), False
    return str(address), address.is_loopback
