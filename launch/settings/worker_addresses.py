"""How the address of a worker that runs already is written, and whether something listens there."""

import pathlib

UNIX = "unix:"
CONNECT_S = 5.0  # the longest wait for a machine that says neither yes nor no
MAX_SOCKET_PATH_BYTES = 107  # linux/un.h, without the zero at the end


def check_address(address: str) -> str:
    """Returns "host:port" or "unix:/path" without blanks. Raises ValueError with one line for anything else."""
    address = address.strip()
    if address.startswith(UNIX):
        path = address.removeprefix(UNIX)
        if not path.startswith("/") or path.endswith("/") or len(path.encode()) > MAX_SOCKET_PATH_BYTES:
            raise ValueError(
                f"worker address {address!r}: expected unix: and the whole path of a socket, of at most "
                f"{MAX_SOCKET_PATH_BYTES} bytes, for example unix:/run/user/1000/worker.sock"
            )
        return address
    return check_port_address(address)


def check_port_address(address: str) -> str:
    """Returns "host:port". Raises ValueError with one line for anything else."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"worker address {address!r}: expected host:port or unix:/path, for example 192.0.2.7:8000")
    return f"{host}:{port}"


def find_connection_problem(address: str, timeout_s: float = CONNECT_S) -> str:
    """Why nothing can be had from a checked address, with what to do; "" if something listens there.

    gRPC would wait for half a minute, and say no more than that nobody answers.
    """
    import socket  # not needed to read a command line

    path = address.removeprefix(UNIX)
    if path != address:
        return "" if pathlib.Path(path).is_socket() else f"no socket at {path}; is the ssh that makes it running?"
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        socket.getaddrinfo(host, int(port))
    except (OSError, UnicodeError):
        return f"no machine is known as {host}; check the name"
    try:
        socket.create_connection((host, int(port)), timeout_s).close()
    except TimeoutError:
        return f"{address} does not answer within {timeout_s:g} s; check the address, and that no firewall is between"
    except OSError as error:
        reason = (error.strerror or "no connection").lower()
        return f"nothing listens at {address} ({reason}); start the worker there first, see docs/cluster.md"
    return ""
