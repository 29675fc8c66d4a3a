"""A program that becomes TFF's worker, in a network of its own with a relay at its side. Standard library alone.

`python -P -m launch.runtimes.tff_worker_main PARENT_PID LISTENER BINARY ARGUMENT...`

The worker's port cannot be reached from outside of its network (Linux calls it a network namespace), in which there is
nothing but a loopback device. LISTENER, the number of an open file, is a Unix socket that listens already: its first
connection is carried to the port. The kernel ends the worker with the process PARENT_PID, and the relay with the
worker. Where no such network can be had, a line of stdout that begins with `NO_NETWORK` says why.
"""

import ctypes
import fcntl
import os
import pathlib
import socket
import struct
import sys
import threading
import time

from launch.runtimes.child_process import die_with, leave_if_orphaned, set_death_signal

PORT = 8000  # in a network of its own any port is free
NO_NETWORK = "no network of its own: "
BUFFER_BYTES = 2**18
POLL_S = 0.01
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000  # linux/sched.h
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1  # linux/sockios.h, linux/if.h


def enter_own_network() -> None:
    """Moves this process, which must have a single thread, into a network of its own, and switches its loopback on.

    Root may do so at once, and keeps root's rights on files. Anybody else must enter a user namespace as well, in which
    the process has its own user and group number.

    Raises:
      OSError: this kernel, a container or a security module forbids it. The process may be half on its way: let it
        end.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        _unshare(CLONE_NEWNET)
    except PermissionError:
        _unshare(CLONE_NEWUSER | CLONE_NEWNET)
        process = pathlib.Path("/proc/self")
        process.joinpath("uid_map").write_text(f"{user} {user} 1")
        process.joinpath("setgroups").write_text("deny")  # or the kernel would refuse the next line
        process.joinpath("gid_map").write_text(f"{group} {group} 1")
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def _unshare(flags: int) -> None:
    """unshare(2), which Python has from 3.12 on."""
    if ctypes.CDLL(None, use_errno=True).unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def become(command: list[str]) -> None:
    """Turns into `command`; exits 127 if it cannot run."""
    try:
        os.execv(command[0], command)
    except OSError as error:
        print(f"cannot run {command[0]}: {error.strerror}", flush=True)
        sys.exit(127)


def relay(listener: socket.socket, port: int) -> None:
    """Joins the first connection to `listener` with one to 127.0.0.1:`port`, and ends this process when either closes.

    The connection waits until something listens at the port.
    """
    client, _ = listener.accept()
    listener.close()
    server = _connect(port)
    threading.Thread(target=_move, args=(server, client), daemon=True).start()
    _move(client, server)


def _connect(port: int) -> socket.socket:
    while True:
        server = socket.socket()
        if server.connect_ex(("127.0.0.1", port)) == 0:
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return server
        server.close()
        time.sleep(POLL_S)  # the worker has yet to listen


def _move(source: socket.socket, target: socket.socket) -> None:
    buffer = memoryview(bytearray(BUFFER_BYTES))
    try:
        while count := source.recv_into(buffer):
            target.sendall(buffer[:count])
    finally:
        os._exit(0)  # with both connections, whatever the other thread waits for


def main(parent_pid: int, listener: socket.socket, command: list[str]) -> None:
    """Enters the network, forks the relay and becomes the worker."""
    try:
        enter_own_network()
    except OSError as error:
        print(f"{NO_NETWORK}{error.strerror or error}", flush=True)
        sys.exit(1)
    worker_pid = os.getpid()
    if os.fork() == 0:
        die_with(worker_pid)
        relay(listener, PORT)
    # The relay has it; a second holder would keep the socket open after the relay's end.
    listener.close()
    if not set_death_signal():  # only now: a change of rights might have cancelled it
        sys.exit("prctl(PR_SET_PDEATHSIG) failed")
    leave_if_orphaned(parent_pid)
    become(command)


if __name__ == "__main__":
    main(int(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])), sys.argv[3:])
