"""Connections: bytes that come and go, and when they came. Knows no run, no client and no algorithm.

aiohttp runs in a thread of its own. The rest of the server sends from its main thread, and takes from one queue what
came. It listens on 127.0.0.1 only.
"""

import asyncio
import collections
import contextlib
import itertools
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from aiohttp import WSCloseCode, WSMsgType, web

from launch.live.ports import HOST, listen
from launch.live.served import ServedFile, secure
from launch.live.watching import Watching
from tff_algos.rounds.network import TICK_S

HOST_NAMES = (HOST, "localhost")
PATH, WATCH_PATH = "/ws", "/watch"
HEARTBEAT_S = 20.0  # a connection is lost if half of this brings no sign of life
GREETING_S = 20.0  # in which a connection must say something first
CLOSING_S = 3.0  # in which the last message goes out when all ends
LONGEST_WAIT_S = 3600.0  # at a time; a lock takes no longer ones than some years
MOST_UNSENT, MOST_UNSENT_BYTES = 64, 2**28  # messages; a client that takes none of them is gone
MOST_UNREAD = 8  # messages of a connection that nobody has received yet; then no more of it are read
_TICKS = round(1 / TICK_S)


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

    def close(self, connection: int, content: bytes | None = None) -> None:
        """Closes it after what was sent, and this message, is out. Nothing that comes from it counts any more."""

    def receive(self, until_ticks: int | None) -> Received | None:
        """The next that came; else waits for it until this time, without one for ever. None: nothing has come."""

    def show(self, content: bytes) -> None:
        """Takes the newest status of the run, JSON in UTF-8, for those who watch; older ones are forgotten."""


class _Connection:
    """One that is open; of the loop's thread."""

    def __init__(self, ws: web.WebSocketResponse):
        self.socket = ws
        self.unsent: asyncio.Queue[bytes | None] = asyncio.Queue()  # None ends it
        self.unsent_bytes = 0
        self.unread = asyncio.Semaphore(MOST_UNREAD)


class WebSocketTransport:
    """See `Transport`.

    Args:
      port: where to listen; 0 for one that is free.
      most_bytes: of a message that may come. A frame whose header says more ends its connection, unread.
      most_connections: at once.
      files: what else is served, by path.
      watch_token: by which one may watch, see `show`; "": nobody may.
    """

    def __init__(
        self,
        port: int,
        most_bytes: int,
        most_connections: int,
        files: Mapping[str, ServedFile] | None = None,
        watch_token: str = "",
    ):
        self._asked_port, self._most_bytes, self._most_connections = port, most_bytes, most_connections
        self._files, self._watching = dict(files or {}), Watching(watch_token)
        self._received: queue.SimpleQueue[Received | None] = queue.SimpleQueue()
        self._told, self._is_woken = collections.deque[tuple[Callable[..., None], tuple]](), False
        self._numbers, self._connections = itertools.count(), dict[int, _Connection]()
        self._closed = set[int]()  # by this side; of the loop's thread
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self.port = 0

    def start(self) -> None:
        """Begins to listen, and sets `port`. Raises ConfigError("port") where another program does."""
        listening = listen(HOST, self._asked_port)
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

    def close(self, connection: int, content: bytes | None = None) -> None:
        if content is not None:
            self.send(connection, content)
        self._tell(self._put, connection, None)

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
        app = web.Application(middlewares=[_refuse_other_sites])
        app.on_response_prepare.append(_secure)
        app.router.add_get(PATH, self._handle)
        app.router.add_get(WATCH_PATH, self._watching.handle)
        for path, file in self._files.items():
            app.router.add_get(path, _make_handler(file))
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=CLOSING_S)
        await runner.setup()
        await web.SockSite(runner, listening).start()
        ready.set()
        await self._ending.wait()
        self._watching.end()
        for number in list(self._connections):
            self._put(number, None)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_S):
                while self._connections:
                    await asyncio.sleep(0.01)
        await runner.cleanup()

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

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if len(self._connections) >= self._most_connections or self._ending.is_set():
            return web.Response(status=503, text="too many connections\n")
        # Not compressed: a small message must not become a large one. aiohttp takes less than its limit.
        ws = web.WebSocketResponse(max_msg_size=self._most_bytes + 1, heartbeat=HEARTBEAT_S, compress=False)
        number = next(self._numbers)
        connection = self._connections[number] = _Connection(ws)
        writer = None
        try:
            await ws.prepare(request)
            writer = self._loop.create_task(_write(connection))
            message = await ws.receive(GREETING_S)
            while message.type == WSMsgType.BINARY:
                if number not in self._closed:
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
        return ws


@web.middleware
async def _refuse_other_sites(request: web.Request, handler) -> web.StreamResponse:
    """No page of another site may speak to this server by the browser of who runs it, by whatever name."""
    origin = request.headers.get("Origin")
    is_own = origin is None or origin == f"{request.scheme}://{request.host}"
    if not is_own or request.url.host not in HOST_NAMES:
        return web.Response(status=403, text="this server answers its own pages, and programs on its own machine\n")
    return await handler(request)


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
