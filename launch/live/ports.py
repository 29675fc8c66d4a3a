"""Where a live run listens. Imports neither TensorFlow nor aiohttp, so that a port that is taken is told at once."""

import socket

from tff_algos.settings.config_fields import ConfigError

HOST = "127.0.0.1"
WAITING = 128  # connections that the system holds until they are taken


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is one that is free. Raises ConfigError("port") where another program does."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server that was killed, started again
        listening.bind((host, port))
        listening.listen(WAITING)
    except OSError as error:
        listening.close()
        expected = f"one on which no other program listens, or 0 for a free one ({error.strerror})"
        raise ConfigError("port", port, expected) from None
    return listening
