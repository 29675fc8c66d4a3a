"""Where a live run listens. Imports neither TensorFlow nor aiohttp, so that a port that is taken is told at once."""

import errno
import socket

from files.reading import describe
from tff_algos.settings.config_fields import ConfigError

WAITING = 1024  # connections that the system holds until they are taken


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is one that is free.

    Raises:
      ConfigError: of "port", where another program does; of "host", which is no address of this machine.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind)
    except (OSError, UnicodeError) as error:
        raise ConfigError("host", host, f"an address or a name of this machine ({describe(error)})") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server that was killed, started again
        listening.bind(address)
        listening.listen(WAITING)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise ConfigError("host", host, f"an address or a name of this machine ({error.strerror})") from None
        expected = f"one on which no other program listens, or 0 for a free one ({error.strerror})"
        raise ConfigError("port", port, expected) from None
    return listening
