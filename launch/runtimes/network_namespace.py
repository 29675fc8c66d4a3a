"""Takes a process into a network of its own. Linux only; needs the standard library alone.

In such a network namespace there is nothing but a loopback device. What listens there can be reached by no other
machine, and on this one by no process outside.
"""

import ctypes
import fcntl
import os
import pathlib
import socket
import struct

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000  # linux/sched.h
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1  # linux/sockios.h, linux/if.h


def enter_network_namespace() -> None:
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
