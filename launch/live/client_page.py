"""The participant's page: a browser that takes part in a live run.

Its modules lie in `web/`, and beside the page of `launch.export`, whose drawing board it has. They are served as they
are, with LiteRT.js as `make web` puts it; what is packed of that is kept beside it. Its policy lets a browser run these
scripts and speak to this server, and nothing else.
"""

import gzip
import json
import math
import pathlib
import re
from collections.abc import Mapping
from typing import Any

from datasets.drawn_images import describe_image
from datasets.federated_data import FederatedData
from files.writing import write_whole
from launch.live.offers import Offer
from launch.live.served import POLICY, ServedFile
from models.litert_js import (
    BUILDS,
    LIBRARY,
    PACKAGES,
    RUNTIME,
    USED_NAMES,
    is_there,
    read_version,
    read_wanted_version,
    strip_library,
)

SOURCES = pathlib.Path(__file__).with_name("web")
FOLDERS = (SOURCES, PACKAGES.parent)  # of equal names the first one's
PATH = "/page/"
PAGE, ABOUT, LITERT = "client.html", "about.json", "litert.js"
BEGINNINGS = ("main.js", "worker.js")  # which import the others
STYLES = ("page.css", "client.css", "ways.css")
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".txt": "text/plain; charset=utf-8",
}
ICON, LICENCE = "client.svg", "apache-2.0.txt"
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; "
    "worker-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'"
)
ONLY_NEWEST = {"Cache-Control": "no-cache", POLICY: CONTENT_POLICY}
# Its address has its version.
FOR_LONG = {"Cache-Control": "private, max-age=604800, immutable", POLICY: CONTENT_POLICY}
_IMPORT = re.compile(r'\bfrom "\./([\w.-]+)"')
_WITHOUT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Live run</title>
<p>This server has no page that trains: whoever runs it types <code>make web</code> once (it needs Node.js), and starts
it again. Until then Python takes part: <code>python join.py &lt;link&gt;</code> (<a href="/join.py">join.py</a>).</p>
"""


def has_page() -> bool:
    """Whether LiteRT.js is there, without which there is no page."""
    return is_there(RUNTIME)


def describe_run(
    offer: Offer, data: FederatedData, columns: str | None, deadline_s: float, is_private: bool = False
) -> dict[str, Any]:
    """What the page says of a run before anybody joins, JSON.

    Args:
      offer: what clients are told who join.
      data: the federation, or a stand-in of as many clients where people bring their own examples.
      columns: the digest of the description of people's own examples; None: the server deals them.
      deadline_s: of a round.
      is_private: whether noise is added to the sum of what clients send.
    """
    counts = [client.num_train for client in data.clients]
    return {
        "name": offer.name,
        "rounds": offer.rounds,
        "deals": columns is None,
        "columns": columns,
        "private": is_private,
        "examples": [min(counts), max(counts)],
        "fileBytes": len(offer.file.content),
        "modelBytes": sum(4 * math.prod(shape) for shape in offer.file.shapes),
        "deadlineS": deadline_s,
        "image": describe_image(data),
        "scale": data.format.preprocessing.scale,
        "offset": data.format.preprocessing.offset,
    }


def pack_page(about: Mapping[str, Any]) -> dict[str, ServedFile]:
    """The files of the page, by path; without LiteRT.js a page of a line that says what to do.

    Args:
      about: what it says of the run before anybody joins, for anybody to read; JSON.
    """
    if not has_page():
        return {"/": ServedFile(_WITHOUT.encode(), TYPES[".html"], {POLICY: "default-src 'none'"})}
    files = {"/": _serve(_find(PAGE).read_bytes(), PAGE)}
    for name in (*find_modules(), *STYLES, ICON, LICENCE):
        files[PATH + name] = _serve(_find(name).read_bytes(), name)
    content = {**about, "runtime": read_version(RUNTIME), "runtimeBytes": 0}
    library = strip_library((RUNTIME / LIBRARY).read_text(encoding="utf-8"))
    files[PATH + LITERT] = _serve(f"{library}\nexport {{ {', '.join(USED_NAMES)} }};\n".encode(), LITERT)
    for build, stem in BUILDS.items():
        script = (RUNTIME / "wasm" / f"{stem}.js").read_bytes() + b"\nexport default ModuleFactory;\n"
        name = f"litert_{build}"
        files[f"{PATH}{name}.js"] = _serve(gzip.compress(script, mtime=0), f"{name}.js", is_packed=True)
        packed = _read_packed(RUNTIME / "wasm" / f"{stem}.wasm")
        files[f"{PATH}{name}.wasm"] = _serve(packed, f"{name}.wasm", is_packed=True)
        content["runtimeBytes"] = max(content["runtimeBytes"], len(packed))
    text = json.dumps(content, allow_nan=False)
    return files | {PATH + ABOUT: _serve(text.encode(), ABOUT)}


def find_modules() -> list[str]:
    """The names of the modules that the page loads, one by the imports of another."""
    found = list(BEGINNINGS)
    for name in found:
        imported = _IMPORT.findall(_find(name).read_text(encoding="utf-8"))
        found += [each for each in dict.fromkeys(imported) if each not in (*found, LITERT)]
    return found


def say_missing() -> str:
    """What whoever runs the server reads where there is no page."""
    return f"no page that trains, since LiteRT.js {read_wanted_version()} is missing: make web fetches it"


def _find(name: str) -> pathlib.Path:
    return next(folder / name for folder in FOLDERS if (folder / name).is_file())


def _serve(content: bytes, name: str, is_packed: bool = False) -> ServedFile:
    headers = {**FOR_LONG, "Content-Encoding": "gzip"} if is_packed else ONLY_NEWEST
    return ServedFile(content, TYPES[pathlib.PurePath(name).suffix], headers)


def _read_packed(path: pathlib.Path) -> bytes:
    """A file by gzip, which is kept beside it, since packing takes a second."""
    packed = path.with_name(f"{path.name}.gz")
    if not packed.is_file() or packed.stat().st_mtime < path.stat().st_mtime:
        content = gzip.compress(path.read_bytes(), mtime=0)
        try:
            write_whole(packed, content)
        except OSError:  # a folder of others
            return content
    return packed.read_bytes()
