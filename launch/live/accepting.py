"""Takes connections that come, one at a time, so that each is counted before it costs anything.

asyncio's own server takes all that wait at once, says nothing of them until TLS is agreed, and prints a traceback
where the system has no file left for one.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable

from launch.live.guard import NO_FILE, Guard

NO_FILE_S = 0.1  # after which it is tried again when the system had no room for a connection
_NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_BROKEN = {errno.EBADF, errno.EINVAL, errno.ENOTSOCK}  # of the socket that listens; else of the connection


async def accept_all(
    listening: socket.socket,
    guard: Guard,
    make_protocol: Callable[[], asyncio.Protocol],
    tls: ssl.SSLContext | None,
    handshake_s: float,
) -> None:
    """Takes all that come within the bounds of the guard, until it is cancelled; then nobody listens any more.

    Raises:
      OSError: nobody can listen on this socket any more.
    """
    loop = asyncio.get_running_loop()
    listening.setblocking(False)
    with listening:
        while True:
            try:
                connection, address = await loop.sock_accept(listening)
            except OSError as error:
                if error.errno in _BROKEN:
                    raise
                if error.errno in _NO_ROOM:
                    guard.counts[NO_FILE] += 1
                    await asyncio.sleep(NO_FILE_S)
                continue
            if (guarded := guard.let_in(address[0], make_protocol)) is None:
                connection.close()
            else:
                guard.open(guarded, connection, tls, handshake_s)
            await asyncio.sleep(0)  # one that gave way is closed before the next one comes
