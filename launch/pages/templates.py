"""Pages and reports from templates, which lie beside the modules that fill them. Imports no TensorFlow.

What a template shows is text of users and of their files, so it is escaped by the kind of the template, as its name
ends: HTML; Markdown, in which it is a line or a cell; or text for a terminal. What is markup already is a `Markup`.
"""

import functools
import pathlib
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
