"""Where a live run listens, by which names one speaks to it, and the address in its links. Imports no aiohttp."""

import contextlib
import ipaddress
import re
import socket
import ssl
from typing import NamedTuple
from urllib.parse import urlsplit

from files.reading import describe, open_regular, read_regular
from tff_algos.settings.config_fields import ConfigError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
EVERYWHERE = ("0.0.0.0", "::")
ELSEWHERE = "192.0.2.1"  # an address of nobody's, to which nothing is sent
DEFAULT_PORTS = {"http": 80, "https": 443}
CERTIFICATE, KEY = b"-----BEGIN CERTIFICATE-----", b"PRIVATE KEY-----"
MOST_PEM = 2**20  # bytes of a file
_PUBLIC = re.compile(r"(https?)://(\[[\da-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?/?", re.ASCII | re.IGNORECASE)


class Door(NamedTuple):
    """See the module.

    Attributes:
      host: the address or name of this machine on which the server listens.
      certificate, key: PEM files, for TLS; "" without, or where the former has both.
      public_url: by which clients reach it, if that is another one, as through a proxy.
    """

    host: str = LOOPBACK[0]
    certificate: str = ""
    key: str = ""
    public_url: str = ""

    @property
    def is_private(self) -> bool:
        """Whether nobody reads on the way what is said, whichever way it comes."""
        return (self.spelled_host in LOOPBACK or bool(self.certificate)) and not self.public_base.startswith("http:")

    @property
    def spelled_host(self) -> str:
        """The host, of which an address is written in full: 0 is 0.0.0.0."""
        with contextlib.suppress(OSError, UnicodeError):
            return socket.inet_ntoa(socket.inet_aton(self.host))
        with contextlib.suppress(ValueError):
            return ipaddress.ip_address(self.host).compressed
        return self.host.lower()

    @property
    def public_base(self) -> str:
        """The public address as browsers name it: in small letters, without the port that its scheme implies."""
        if not (found := _PUBLIC.fullmatch(self.public_url)):
            return ""
        scheme, host, port = found[1].lower(), found[2].lower(), int(found[3] or 0)
        return f"{scheme}://{host}" + (f":{port}" if port and port != DEFAULT_PORTS[scheme] else "")

    def check(self) -> None:
        """Raises ConfigError of a setting that cannot be meant, or files that are of no use."""
        found = _PUBLIC.fullmatch(self.public_url)
        if self.public_url and not (found and 0 < int(found[3] or 1) < 2**16):
            raise ConfigError("public_url", self.public_url, "an address without a path, as https://example.org")
        self.open_tls()
        if self.certificate and self.spelled_host in EVERYWHERE and not self.public_url:
            expected = (
                f"--public_url beside it where --host={self.host}, since a certificate is for a name: "
                "https://<its name>:<the port>"
            )
            raise ConfigError("tls_certificate", self.certificate, expected)

    def open_tls(self) -> ssl.SSLContext | None:
        """What speaks TLS with this certificate; None without. Raises ConfigError of files that are of no use."""
        if not self.certificate:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        for name, path in (("tls_certificate", self.certificate), ("tls_key", self.key)):
            try:
                if path:
                    open_regular(path).close()
            except OSError as error:
                raise ConfigError(name, path, f"a PEM file that can be read ({describe(error)})") from None
        try:
            context.load_cert_chain(self.certificate, self.key or None, password="")
        except (ssl.SSLError, OSError) as error:
            expected = f"{self._find_fault()} ({describe(error)})"
            raise ConfigError("tls_certificate", self.certificate, expected) from None
        return context

    def _find_fault(self) -> str:
        """What was expected in place of files of which no certificate with its key can be loaded."""
        content = read_regular(self.certificate, MOST_PEM)
        of_key = read_regular(self.key, MOST_PEM) if self.key else content
        if CERTIFICATE not in content:
            swapped = "; it seems to be swapped with --tls_key" * (KEY in content and CERTIFICATE in of_key)
            return f"a PEM file of a certificate{swapped}"
        if KEY not in of_key:
            where = f"in --tls_key={self.key}" if self.key else "in the file, too, or by --tls_key=<PEM file>"
            return f"its key {where}"
        return "a certificate and its key, in PEM files that fit together, the key without a password"

    def name_base(self, port: int) -> str:
        """The address of the server, with which its links begin."""
        if self.public_base:
            return self.public_base
        host = _find_own_address() if self.spelled_host in EVERYWHERE else self.spelled_host
        return f"http{'s' if self.certificate else ''}://{f'[{host}]' if ':' in host else host}:{port}"

    def has_name(self, host: str) -> bool:
        """Whether the host that a request names is this server, and no name that somebody else's DNS gave it."""
        if host.lower() in {self.spelled_host, *LOOPBACK, urlsplit(self.public_base).hostname or ""} - {""}:
            return True
        if self.spelled_host in LOOPBACK:
            return False
        own = socket.gethostname().lower()
        return _is_address(host) or host.lower() in (own, f"{own}.local")

    def is_own(self, origin: str, host: str) -> bool:
        """Whether a page of this origin is the server's own, by a request to this host and port."""
        scheme = "https" if self.certificate else "http"
        return bool(origin) and origin.lower() in (f"{scheme}://{host}".lower(), self.public_base)


HERE = Door()  # on this machine alone


def _is_address(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(host))
    return False


def _find_own_address() -> str:
    """This machine's address in its network; that of the loopback if it is in none."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.connect((ELSEWHERE, 9))
        return udp.getsockname()[0]
    return LOOPBACK[0]
