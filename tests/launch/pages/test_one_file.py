"""Parts of a page are put into one file, whatever is in them."""

import base64
import gzip

from launch.pages.templates import embed_packed, format_policy, join_scripts, protect_script


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
