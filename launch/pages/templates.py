"""Pages and reports from templates, which lie beside the modules that fill them. Imports no TensorFlow.

What a template shows is text of users and of their files, so it is escaped by the kind of the template, as its name
ends: HTML; Markdown, in which it is a line or a cell; or text for a terminal. What is markup already is a `Markup`.
"""

import base64
import functools
import gzip
import hashlib
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from launch.console.shown_text import escape_hidden, escape_markdown

if TYPE_CHECKING:
    import jinja2

FOLDER = pathlib.Path(__file__).parents[1]
ESCAPES = {"md": escape_markdown, "txt": escape_hidden}


def render(name: str, **parts: Any) -> str:
    """The text that a template makes of its parts.

    Args:
      name: of the template, in `launch`, such as "tflite/card.md.j2".
      parts: what it names. One that it names and that is not there is an error of jinja2.
    """
    return _open_environment(name.split(".")[-2]).get_template(name).render(parts)


@functools.cache
def _open_environment(kind: str) -> "jinja2.Environment":
    import jinja2
    from markupsafe import Markup

    # Automatic escaping is HTML's; by `finalize` another kind of text is escaped before.
    escape = ESCAPES.get(kind)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=escape and (lambda value: value if isinstance(value, Markup) else Markup(escape(str(value)))),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}  # which no browser reads
    environment.filters["number"] = lambda value, form=",": format(value, form)
    return environment


# Puts a page's scripts, styles and contents into one HTML file that loads nothing. Imports no TensorFlow.


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
