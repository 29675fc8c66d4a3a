"""A script that becomes a TFF worker in a network of its own, with a relay to it at its side.

`python -I -S closed_launcher.py PARENT_PID STATUS LISTENER PORT SOCKET FOLDER BINARY ARGUMENT...`

STATUS is a pipe that gets the reason if there can be no such network; it is closed without a word when the worker
starts. LISTENER is a Unix socket that listens already. Both are numbers of open files. SOCKET is
its path and FOLDER the folder that was made for it, or ""; the relay removes them at the end.

This process becomes the worker, so that its end is the worker's. The relay is its child, and ends with it.
"""

import os
import pathlib
import signal
import socket
import sys

# With -I this folder is not searched. It comes last, so that no module here can stand in for one of Python's.
sys.path.append(str(pathlib.Path(__file__).parent))

from network_namespace import enter_network_namespace
from worker_launcher import become, die_with
from worker_relay import relay


def main(parent_pid: int, status: int, listener: socket.socket, port: int, places: list[str], command: list[str]):
    """Enters the network, forks the relay and becomes the worker; exits 1 if the network cannot be had."""
    for descriptor in (status, listener.fileno()):
        os.set_inheritable(descriptor, False)
    try:
        enter_network_namespace()
    except OSError as error:
        os.write(status, (error.strerror or str(error)).encode())
        sys.exit(1)
    worker_pid = os.getpid()
    if os.fork() == 0:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # one that comes now waits for the relay
        os.close(status)
        die_with(worker_pid, signal.SIGTERM)
        relay(listener, port, *places)
    die_with(parent_pid)  # only now: a change of rights might have cancelled it
    become(command)


if __name__ == "__main__":
    parent, status_file, listening_file, worker_port = map(int, sys.argv[1:5])
    main(parent, status_file, socket.socket(fileno=listening_file), worker_port, sys.argv[5:7], sys.argv[7:])
