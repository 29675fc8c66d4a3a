"""What a template shows is text, whatever it holds, and a part that is missing is an error.

Parts of a page are put into one file, whatever is in them.
"""

import base64
import gzip

import jinja2
import pytest

from launch.pages import templates
from launch.pages.templates import embed_packed, format_policy, join_scripts, protect_script


@pytest.fixture
def render(monkeypatch, tmp_path):
    """(kind, template, **parts) -> the text that it makes."""
    monkeypatch.setattr(templates, "FOLDER", tmp_path)
    templates._open_environment.cache_clear()

    def render(kind, source, **parts):
        (tmp_path / f"page.{kind}.j2").write_text(source)
        return templates.render(f"page.{kind}.j2", **parts)

    yield render
    templates._open_environment.cache_clear()


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("html", "&lt;b&gt;|\x1b{{ x }}"),
        ("md", "&lt;b&gt;\\|\\\\u001b{{ x }}"),
        ("txt", "<b>|\\u001b{{ x }}"),
    ],
)
def test_text_is_escaped_by_the_kind_of_the_template(render, kind, shown):
    assert render(kind, "{{ text }} {{ count|number }}\n", text="<b>|\x1b{{ x }}", count=1234) == f"{shown} 1,234\n"
    macro = "{% macro show(text) %}{{ text }}{% endmacro %}{{ show(text) }}"
    assert render(kind, macro, text="<b>|\x1b{{ x }}") == shown  # once


def test_what_is_missing_is_an_error_and_json_cannot_end_its_element(render):
    with pytest.raises(jinja2.UndefinedError, match="'text' is undefined"):
        render("md", "{{ text }}")
    assert render("html", "{{ x|tojson }}", x=["</script>", "a & b"]) == '["\\u003c/script\\u003e", "a \\u0026 b"]'
    with pytest.raises(ValueError, match="not JSON compliant"):
        render("html", "{{ x|tojson }}", x=float("nan"))


def test_scripts_are_joined_without_imports_and_exports(tmp_path):
    (tmp_path / "a.js").write_text("// First.\n\nexport const one = 1;\n")
    (tmp_path / "b.js").write_text('// Second.\n\nimport { one } from "./a.js";\n\nconst two = 2 * one;\n')
    assert (
        join_scripts(tmp_path, ("a.js", "b.js"))
        == "// First.\n\nconst one = 1;\n\n// Second.\n\n\nconst two = 2 * one;\n"
    )


def test_scripts_cannot_end_their_element():
    assert protect_script('"</script>" < 1') == '"\\x3c/script>" < 1'


def test_what_is_packed_is_unpacked():
    element = embed_packed("data", b"content")
    assert element.startswith('<script type="application/octet-stream" id="data">')
    assert gzip.decompress(base64.b64decode(element.split(">")[1].split("<")[0])) == b"content"


def test_a_policy_names_scripts_by_their_digests():
    digest = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"  # of the empty text, as known from elsewhere
    closed = "default-src 'none'; form-action 'none'; base-uri 'none'; img-src data: blob:"
    assert format_policy([""], "'none'") == f"{closed}; style-src 'none'; script-src {digest}"
    assert format_policy([""], "'none'", "'wasm-unsafe-eval'").endswith(f"script-src 'wasm-unsafe-eval' {digest}")
