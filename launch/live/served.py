"""What the server of a live run serves beside its connections: whole files, and the headers of all its answers."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from multidict import CIMultiDict

POLICY = "Content-Security-Policy"
# Of every answer: no site shows it in a frame, takes it as a file of its own, guesses its type or learns its address.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Server": "live run",  # and not the versions of its programs
}
NO_FRAMES = "frame-ancestors 'none'"
NOTHING = "default-src 'none'; frame-ancestors 'none'"


class ServedFile(NamedTuple):
    """A file that anybody may fetch who reaches the server.

    Attributes:
      content: its bytes, as they are sent.
      content_type: such as `text/html; charset=utf-8`.
      headers: beside those of every answer; a page gives its Content-Security-Policy, a packed file its
        Content-Encoding.
    """

    content: bytes
    content_type: str
    headers: Mapping[str, str] = MappingProxyType({})


def secure(headers: CIMultiDict[str]) -> None:
    """Adds what every answer has to its headers. A policy that it has already is kept, beside that of frames."""
    headers.add(POLICY, NO_FRAMES if POLICY in headers else NOTHING)
    headers.update(HEADERS)
