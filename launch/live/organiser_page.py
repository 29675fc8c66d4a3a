"""The organiser's page of a live run, as its server serves it: see `web/organiser.html`. Imports no TensorFlow."""

import pathlib

from launch.live.served import POLICY, ServedFile

SOURCES = pathlib.Path(__file__).with_name("web")
SCRIPTS = ("organiser.js", "organiser_clients.js", "organiser_curve.js", "organiser_words.js")
# Of the page: nothing but its own script and style, and a connection to its own server. It has no picture but its
# icon, which is empty, since browsers would ask for one.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)


def pack_organiser_page() -> dict[str, ServedFile]:
    """The page and what it loads, by the paths of their addresses."""

    def read(name: str, kind: str, **headers: str) -> ServedFile:
        return ServedFile((SOURCES / name).read_bytes(), f"{kind}; charset=utf-8", headers)

    return {
        "/organiser": read("organiser.html", "text/html", **{POLICY: PAGE_POLICY, "Cache-Control": "no-store"}),
        **{f"/page/{name}": read(name, "text/javascript") for name in SCRIPTS},
        "/page/organiser.css": read("organiser.css", "text/css"),
    }
