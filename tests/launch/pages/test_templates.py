"""What a template shows is text, whatever it holds, and a part that is missing is an error."""

import jinja2
import pytest

from launch.pages import templates


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
