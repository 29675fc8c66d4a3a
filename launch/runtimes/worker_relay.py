"""Carries bytes between a Unix socket and a port of this process's network. Needs the standard library alone.

Each connection has two threads, one for each direction, so that neither direction waits for the other.
"""

import contextlib
import os
import signal
import socket
import threading
import time

BUFFER_BYTES = 2**18
POLL_S = 0.01


def relay(listener: socket.socket, port: int, path: str, folder: str) -> None:
    """Joins each connection to `listener` with one to 127.0.0.1:`port`, until SIGTERM; then removes the Unix socket.

    A connection waits until something listens at the port.
    """
    # SIGTERM is taken by `sigwait`, not by a handler: Python runs handlers between bytecodes, so that one which comes
    # just before `accept` sleeps would wait for the next connection, and after the worker's end there is none.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    threading.Thread(target=_accept, args=(listener, port), daemon=True).start()
    signal.sigwait({signal.SIGTERM})
    remove_socket(path, folder)
    os._exit(0)  # not by an exception: other threads may wait for ever


def _accept(listener: socket.socket, port: int) -> None:
    try:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_join, args=(client, port), daemon=True).start()
    finally:
        os.kill(os.getpid(), signal.SIGTERM)  # a relay that accepts nobody would let its clients wait for ever


def remove_socket(path: str, folder: str) -> None:
    """Removes the file of a Unix socket, if it is there, and the `folder` that was made for it, unless that is ""."""
    with contextlib.suppress(OSError):
        os.unlink(path)
    if folder:
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _join(client: socket.socket, port: int) -> None:
    with client, _connect(port) as server:
        answers = threading.Thread(target=_move, args=(server, client), daemon=True)
        answers.start()
        _move(client, server)
        answers.join()


def _connect(port: int) -> socket.socket:
    while True:
        server = socket.socket()
        try:
            server.connect(("127.0.0.1", port))
        except ConnectionRefusedError:
            server.close()
            time.sleep(POLL_S)  # the worker has yet to listen
        else:
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return server


def _move(source: socket.socket, target: socket.socket) -> None:
    """Moves bytes until either side closes; then closes both directions of both."""
    buffer = memoryview(bytearray(BUFFER_BYTES))
    with contextlib.suppress(OSError):
        while count := source.recv_into(buffer):
            target.sendall(buffer[:count])
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
