"""Puts a page's scripts, styles and contents into one HTML file that loads nothing. Imports no TensorFlow."""

import base64
import gzip
import hashlib
import pathlib
import re
from collections.abc import Iterable, Sequence


def join_scripts(folder: pathlib.Path, names: Sequence[str]) -> str:
    """Our modules as one: without the imports from each other, and without the word export."""
    parts = []
    for name in names:
        text = (folder / name).read_text(encoding="utf-8")
        text = re.sub(r'^import \{[^}]*\} from "\./[\w]+\.js";$\n', "", text, flags=re.MULTILINE)
        parts.append(re.sub(r"^export ", "", text, flags=re.MULTILINE))
    return "\n".join(parts)


def compute_digest(text: str) -> str:
    """What a Content-Security-Policy calls a script or style with this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def format_policy(scripts: Iterable[str], style_sources: str, further_scripts: str = "") -> str:
    """A Content-Security-Policy: pictures of the page itself, these scripts, no request and no form to anywhere.

    Args:
      scripts: their texts, known by their digests.
      style_sources: what may be a style, as CSP has it.
      further_scripts: what else may run, as CSP has it.
    """
    allowed = " ".join([*filter(None, [further_scripts]), *map(compute_digest, scripts)])
    closed = "default-src 'none'; form-action 'none'; base-uri 'none'"  # the first does not cover the others
    return f"{closed}; img-src data: blob:; style-src {style_sources}; script-src {allowed}"


def protect_script(script: str) -> str:
    """A script that cannot end its element, nor open a comment in it: that text stands in strings or comments."""
    return re.sub(r"<(?=/script|script|!--)", r"\\x3c", script, flags=re.IGNORECASE)


def embed_packed(name: str, content: bytes, level: int = 9) -> str:
    """An element of the page that holds `content`, gzip in base64, for its scripts to unpack."""
    packed = base64.b64encode(gzip.compress(content, level, mtime=0)).decode()
    return f'<script type="application/octet-stream" id="{name}">{packed}</script>'
