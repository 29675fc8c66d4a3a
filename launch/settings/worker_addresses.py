"""How the address of a worker on another machine is written."""


def check_address(address: str) -> str:
    """Returns "host:port" without blanks. Raises ValueError with one line for anything else."""
    host, _, port = address.strip().rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"worker address {address!r}: expected host:port, for example 192.0.2.7:8000")
    return f"{host}:{port}"
