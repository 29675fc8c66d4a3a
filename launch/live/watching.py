"""Who watches a live run without taking part: WebSockets to which the newest status is sent. Of the loop's thread."""

import asyncio
import contextlib
import hmac
from collections.abc import Callable

from aiohttp import WSCloseCode, WSMsgType, web

from launch.live.fields import MOST_TOKEN
from launch.live.guard import HEARTBEAT_S

TOKEN_S = 10.0  # in which one must say its token
PAUSE_S = 0.5  # between two messages to one
SENDING_S = 10.0  # in which one must take a status
MOST_WATCHERS = 16


class Watching:
    """Those who watch.

    Args:
      token: which one must say in its first message, of text; "": nobody watches.
      refuse, admit: what becomes of the connection of a request whose first message had not the token, or had it.

    Attributes:
      watchers: who is there.
    """

    def __init__(self, token: str, refuse: Callable[[web.Request], None], admit: Callable[[web.Request], None]):
        self._token, self._refuse, self._admit = token.encode(), refuse, admit
        self._newest, self._has_ended = "", False
        self._changed = asyncio.Event()  # another one with every change
        self.watchers = set[web.WebSocketResponse]()

    def show(self, content: str) -> None:
        """From now on this is the newest status."""
        self._newest = content
        self._wake()

    def end(self) -> None:
        """Nothing more comes: who has not had the newest status gets it, and all are closed."""
        self._has_ended = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        # aiohttp takes less than its limit.
        ws = web.WebSocketResponse(max_msg_size=MOST_TOKEN + 1, heartbeat=HEARTBEAT_S, compress=False)
        answer: web.StreamResponse = web.Response(status=400)  # to one that is gone already
        with contextlib.suppress(TimeoutError, ConnectionError):
            await ws.prepare(request)
            answer = ws
            first = await ws.receive(TOKEN_S)
            is_token = first.type == WSMsgType.TEXT and hmac.compare_digest(first.data.encode(), self._token)
            if not (self._token and is_token):
                self._refuse(request)
                await ws.close(code=WSCloseCode.POLICY_VIOLATION, message=b"not the organiser's link")
            elif len(self.watchers) >= MOST_WATCHERS:
                await ws.close(code=WSCloseCode.TRY_AGAIN_LATER, message=b"too many watch already")
            else:
                self._admit(request)
                await self._attend(ws)
        return answer

    async def _attend(self, ws: web.WebSocketResponse) -> None:
        self.watchers.add(ws)
        sending = asyncio.create_task(self._send(ws))
        try:
            await ws.receive()  # its end, since it has nothing more to say
        finally:
            self.watchers.discard(ws)
            sending.cancel()
            await ws.close()

    async def _send(self, ws: web.WebSocketResponse) -> None:
        sent = ""
        with contextlib.suppress(TimeoutError, ConnectionError):
            while True:
                changed, newest, is_last = self._changed, self._newest, self._has_ended
                if newest != sent:
                    async with asyncio.timeout(SENDING_S):
                        await ws.send_str(newest)
                    sent = newest
                if is_last:
                    break
                await asyncio.sleep(PAUSE_S)
                await changed.wait()
        await ws.close()
