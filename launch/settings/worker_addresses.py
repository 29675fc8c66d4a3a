"""How the address of a worker that runs already is written."""

UNIX = "unix:"
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
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"worker address {address!r}: expected host:port or unix:/path, for example 192.0.2.7:8000")
    return f"{host}:{port}"
