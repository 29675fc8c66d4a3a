"""Connections: bytes that come and go, and when they came. Knows no run, no client and no algorithm.

aiohttp runs in a thread of its own. The rest of the server sends from its main thread, and takes from one queue what
came. What may be said to it before a client has a seat is bounded by `launch.live.guard`.
"""

import asyncio
import collections
import contextlib
import itertools
import logging
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.http_exceptions import HttpProcessingError

from launch.live.accepting import accept_all
from launch.live.door import HERE, Door
from launch.live.guard import FAILED, GONE, HEARTBEAT_S, MALFORMED, TOO_TALKATIVE, Bucket, Guard, raise_open_files
from launch.live.ports import listen
from launch.live.served import ServedFile, secure
from launch.live.watching import Watching
from tff_algos.rounds.network import TICK_S

PATH, WATCH_PATH = "/ws", "/watch"
GREETING_S = 20.0  # in which a connection must say something first
CLOSING_S = 3.0  # in which the last message goes out when all ends
TLS_S = 10.0  # in which two sides must have agreed on how to encrypt
IDLE_S = 10.0  # after which a connection by which nothing more is fetched is closed
MOST_HEADERS = 64
LONGEST_WAIT_S = 3600.0  # at a time; a lock takes no longer ones than some years
MOST_UNSENT, MOST_UNSENT_BYTES = 64, 2**28  # messages; a client that takes none of them is gone
# Messages of a connection that nobody has received yet; then no more of it are read.
MOST_UNREAD, MOST_UNREAD_BYTES = 8, 2**24
MOST_MESSAGES, MESSAGES_PER_S = 200, 100.0  # of a client; who sends more is closed
_TICKS = round(1 / TICK_S)
_LOGGER = logging.getLogger(__name__)


class Received(NamedTuple):
    """What came.

    Attributes:
      connection: its number; every connection has another one.
      ticks: when, by `Transport.now_ticks`.
      content: a message; None: the connection is gone.
    """

    connection: int
    ticks: int
    content: bytes | None


class Transport(Protocol):
    """Carries messages. Ticks are whole numbers of `TICK_S` since some moment, and never go back."""

    def start(self) -> None:
        """Begins to listen."""

    def stop(self) -> None:
        """Closes all that is open, after what was sent is out; nobody is heard any more."""

    def now_ticks(self) -> int:
        """The time."""

    def send(self, connection: int, content: bytes) -> None:
        """Sends soon; does not wait. To one that is gone, nothing."""

    def know(self, is_known: Callable[[bytes], bool]) -> None:
        """Says of whom the first message is heard even where too many of the same address were refused.

        Args:
          is_known: whether this message is of somebody with the key of a seat or a good token. It is called from
            another thread, of which it may change nothing.
        """

    def admit(self, connection: int) -> None:
        """Its client has a seat: it may send more than a few bytes, and gives way to no other connection."""

    def close(self, connection: int, content: bytes | None = None) -> None:
        """Closes it after what was sent, and this message, is out. Nothing that comes from it counts any more."""

    def receive(self, until_ticks: int | None) -> Received | None:
        """The next that came; else waits for it until this time, without one for ever. None: nothing has come."""

    def take_refused(self) -> Mapping[str, int]:
        """How many were refused since the last call, and why, in words for who runs the server."""

    def show(self, content: bytes) -> None:
        """Takes the newest status of the run, JSON in UTF-8, for those who watch; older ones are forgotten."""


class _Connection:
    """One that is open; of the loop's thread."""

    def __init__(self, ws: web.WebSocketResponse, request: web.Request, most_unread: int):
        self.socket, self.request = ws, request
        self.unsent: asyncio.Queue[bytes | None] = asyncio.Queue()  # None ends it
        self.unsent_bytes = 0
        self.unread = asyncio.Semaphore(most_unread)
        self.rate = Bucket(MOST_MESSAGES, MESSAGES_PER_S)


class WebSocketTransport:
    """See `Transport`.

    Args:
      port: where to listen; 0 for one that is free.
      most_bytes: of a message that may come. A frame whose header says more ends its connection, unread.
      most_connections: at once.
      files: what else is served, by path.
      watch_token: by which one may watch, see `show`; "": nobody may.
      door: on which address, and by which names.
      num_seats: of the run, by which connections of one address are bounded.

    Attributes:
      port: on which it listens.
      most_connections: at once, as far as the system lets it.
    """

    def __init__(
        self,
        port: int,
        most_bytes: int,
        most_connections: int,
        files: Mapping[str, ServedFile] | None = None,
        watch_token: str = "",
        door: Door = HERE,
        num_seats: int = 0,
    ):
        self._asked_port, self._most_bytes, self._door = port, most_bytes, door
        self.most_connections = raise_open_files(most_connections)
        self._guard = guard = Guard(num_seats or most_connections, self.most_connections)
        self._most_unread = max(1, min(MOST_UNREAD, MOST_UNREAD_BYTES // most_bytes))
        self._is_known: Callable[[bytes], bool] = lambda _: False
        self._watching = Watching(
            *(watch_token, lambda request: guard.hear(request.transport, False)),
            lambda request: guard.admit(request.transport),
        )
        self._files = dict(files or {})
        self._received: queue.SimpleQueue[Received | None] = queue.SimpleQueue()
        self._told, self._is_woken = collections.deque[tuple[Callable[..., None], tuple]](), False
        self._numbers, self._connections = itertools.count(), dict[int, _Connection]()
        self._closed = set[int]()  # by this side; of the loop's thread
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self.port = 0

    def start(self) -> None:
        """Begins to listen, and sets `port`. Raises ConfigError, see `listen` and `Door.open_tls`."""
        self._tls = self._door.open_tls()
        listening = listen(self._door.host, self._asked_port)
        self.port = listening.getsockname()[1]
        self._loop, self._ending, ready = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(listening, ready), name="live", daemon=True)
        self._thread.start()
        ready.wait()
        self._check()

    def stop(self) -> None:
        if self._thread is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(2 * CLOSING_S)
        self._thread = None

    def now_ticks(self) -> int:
        return time.monotonic_ns() * _TICKS // 10**9

    def send(self, connection: int, content: bytes) -> None:
        self._tell(self._put, connection, content)

    def admit(self, connection: int) -> None:
        self._tell(self._admit, connection)

    def know(self, is_known: Callable[[bytes], bool]) -> None:
        self._is_known = is_known

    def close(self, connection: int, content: bytes | None = None) -> None:
        if content is not None:
            self.send(connection, content)
        self._tell(self._put, connection, None)

    def take_refused(self) -> Mapping[str, int]:
        taken, self._guard.counts = self._guard.counts, collections.Counter()
        return taken

    def show(self, content: bytes) -> None:
        self._tell(self._watching.show, content.decode())

    def receive(self, until_ticks: int | None) -> Received | None:
        while True:
            self._check()
            left_s = LONGEST_WAIT_S if until_ticks is None else max(until_ticks - self.now_ticks(), 0) * TICK_S
            try:
                received = self._received.get(timeout=min(left_s, LONGEST_WAIT_S))
            except queue.Empty:  # perhaps a moment before its time
                if until_ticks is not None and self.now_ticks() >= until_ticks:
                    return None
                continue
            if received is not None:
                self._tell(self._make_room, received.connection)
                return received

    def _tell(self, act: Callable[..., None], *arguments: Any) -> None:
        """Has the loop's thread do this soon, in order. It is woken once for all that it has not begun with."""
        self._told.append((act, arguments))
        if not self._is_woken:
            self._is_woken = True
            with contextlib.suppress(RuntimeError):  # the loop is closed already
                self._loop.call_soon_threadsafe(self._act)

    def _check(self) -> None:
        if self._failure is not None:
            raise RuntimeError("the connections of the run have failed") from self._failure

    # --- In the loop's thread ---

    def _act(self) -> None:
        self._is_woken = False  # first, so that what is told meanwhile is done now or wakes it again
        while self._told:
            act, arguments = self._told.popleft()
            act(*arguments)

    def _run(self, listening: socket.socket, ready: threading.Event) -> None:
        try:
            self._loop.run_until_complete(self._serve(listening, ready))
        except BaseException as error:
            self._failure = error
            self._received.put(None)  # wakes who waits
        finally:
            ready.set()
            self._loop.close()

    async def _serve(self, listening: socket.socket, ready: threading.Event) -> None:
        app = web.Application(middlewares=[self._refuse_other_sites])
        app.on_response_prepare.append(_secure)
        app.router.add_get(PATH, self._handle)
        app.router.add_get(WATCH_PATH, self._watching.handle)
        for path, file in self._files.items():
            app.router.add_get(path, _make_handler(file))
        runner = web.AppRunner(
            *(app,), access_log=None, handle_signals=False, shutdown_timeout=CLOSING_S, keepalive_timeout=IDLE_S,
            lingering_time=0.0, max_headers=MOST_HEADERS,
        )  # fmt: skip
        await runner.setup()
        logger, counting = logging.getLogger("aiohttp.server"), _Counting(self._guard)
        logger.addFilter(counting)
        accepting = self._loop.create_task(accept_all(listening, self._guard, runner.server, self._tls, TLS_S))
        ending = self._loop.create_task(self._ending.wait())
        ready.set()
        await asyncio.wait((accepting, ending), return_when=asyncio.FIRST_COMPLETED)
        if accepting.done():
            accepting.result()  # raises why nobody can come any more
        self._watching.end()
        for number in list(self._connections):
            self._put(number, None)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_S):
                while self._connections:
                    await asyncio.sleep(0.01)
        accepting.cancel()
        await asyncio.wait((accepting,))
        await self._guard.end()
        await runner.cleanup()
        logger.removeFilter(counting)

    def _put(self, number: int, content: bytes | None) -> None:
        if (connection := self._connections.get(number)) is None or number in self._closed:
            return
        if content is None:
            self._closed.add(number)
        queued, size = connection.unsent.qsize(), len(content or b"")
        if queued >= MOST_UNSENT or (queued and connection.unsent_bytes + size > MOST_UNSENT_BYTES):
            self._loop.create_task(_end(connection.socket, WSCloseCode.TRY_AGAIN_LATER))
            return
        connection.unsent_bytes += size
        connection.unsent.put_nowait(content)

    def _make_room(self, number: int) -> None:
        if (connection := self._connections.get(number)) is not None:
            connection.unread.release()

    def _admit(self, number: int) -> None:
        if (connection := self._connections.get(number)) is not None:
            with contextlib.suppress(ConnectionError):
                self._guard.admit(connection.request.transport)

    @web.middleware
    async def _refuse_other_sites(self, request: web.Request, handler) -> web.StreamResponse:
        """No page of another site may speak to this server by somebody's browser, by whatever name."""
        try:
            self._guard.arrive(request.transport, _measure(request))
            host = request.url.host or ""
        except ConnectionError:  # it is gone, and hears no answer
            return web.Response(status=400)
        except ValueError:
            self._guard.counts[MALFORMED] += 1
            return web.Response(status=400, text="the address asked for is none\n")
        origin = request.headers.get("Origin")
        if not self._door.has_name(host) or (origin is not None and not self._door.is_own(origin, request.host)):
            return web.Response(status=403, text="this server answers by its own names, and its own pages\n")
        return await handler(request)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if self._ending.is_set():
            return web.Response(status=503, text="the run is over\n")
        # Not compressed: a small message must not become a large one. aiohttp takes less than its limit.
        ws = web.WebSocketResponse(max_msg_size=self._most_bytes + 1, heartbeat=HEARTBEAT_S, compress=False)
        number = next(self._numbers)
        connection = self._connections[number] = _Connection(ws, request, self._most_unread)
        answer: web.StreamResponse = web.Response(status=400)  # to one that is gone already
        writer = None
        try:
            await ws.prepare(request)
            answer = ws
            writer = self._loop.create_task(_write(connection))
            message = await ws.receive(GREETING_S)
            if message.type == WSMsgType.BINARY and not self._guard.hear(
                request.transport, self._is_known(message.data)
            ):
                await _end(ws, WSCloseCode.TRY_AGAIN_LATER)
            while message.type == WSMsgType.BINARY and not ws.closed:
                if not connection.rate.take(self._loop.time()):
                    self._guard.counts[TOO_TALKATIVE] += 1
                    await _end(ws, WSCloseCode.POLICY_VIOLATION)
                elif number not in self._closed:
                    await connection.unread.acquire()
                    self._received.put(Received(number, self.now_ticks(), message.data))
                message = await ws.receive()
        except (TimeoutError, ConnectionError):
            pass
        finally:
            self._received.put(Received(number, self.now_ticks(), None))
            self._put(number, None)
            if writer is not None:
                with contextlib.suppress(TimeoutError):  # which ends it
                    async with asyncio.timeout(2 * CLOSING_S):
                        await writer
            del self._connections[number]
            self._closed.discard(number)
        return answer


class _Counting(logging.Filter):
    """Counts requests that failed, of which else a traceback would be said whenever a stranger likes."""

    def __init__(self, guard: Guard):
        super().__init__()
        self._guard = guard

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.exc_info or record.levelno < logging.ERROR:
            return True
        error = record.exc_info[1]
        what = MALFORMED if isinstance(error, HttpProcessingError) else FAILED.format(type(error).__name__)
        self._guard.counts[GONE if isinstance(error, ConnectionError) else what] += 1
        if what != MALFORMED:
            _LOGGER.debug("a request failed", exc_info=error)
        return False


def _measure(request: web.Request) -> int:
    """Bytes of a request without a body, as they are usually written."""
    line = len(request.method) + len(request.raw_path) + len("  HTTP/1.1\r\n\r\n")
    return line + sum(len(name) + len(value) + len(": \r\n") for name, value in request.raw_headers)


async def _secure(_: web.Request, response: web.StreamResponse) -> None:
    secure(response.headers)


def _make_handler(file: ServedFile):
    async def handle(_: web.Request) -> web.Response:
        return web.Response(body=file.content, headers={**file.headers, "Content-Type": file.content_type})

    return handle


async def _write(connection: _Connection) -> None:
    """Sends what is put into the queue, one after the other, until None."""
    with contextlib.suppress(ConnectionError, RuntimeError):
        while (content := await connection.unsent.get()) is not None:
            await connection.socket.send_bytes(content)
            connection.unsent_bytes -= len(content)
    await _end(connection.socket, WSCloseCode.OK)


async def _end(ws: web.WebSocketResponse, code: int) -> None:
    with contextlib.suppress(TimeoutError, ConnectionError, RuntimeError):
        async with asyncio.timeout(CLOSING_S):
            await ws.close(code=code)
