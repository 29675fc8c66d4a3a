"""What the site does to the pages of docs/: it adds those that are made from code, and points links at the site.

Pages are written for a reader of the repository, too. So they link to code, which the site does not hold: there such a
link becomes the file's path.
"""

import pathlib
import re
import sys

from mkdocs.structure.files import File

SITE = pathlib.Path(__file__).parent
sys.path[:0] = [str(SITE), str(SITE.parents[1])]

import api_reference  # noqa: E402
import flag_reference  # noqa: E402

GENERATED = {"flags.md": flag_reference.build_page, "api.md": api_reference.build_page}
OUTSIDE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)\s]*)\)")


def on_config(config):
    """Lists the pages of results, which are generated, too."""
    [results] = [part["Results"] for part in config.nav if "Results" in part]
    results += sorted(f"results/{path.name}" for path in (SITE.parent / "results").glob("*.md"))
    return config


def on_files(files, config):
    """Adds the generated pages."""
    for path, build_page in GENERATED.items():
        files.append(File.generated(config, path, content=build_page()))
    return files


def name_outside(match: re.Match) -> str:
    """A link to a file outside of docs/ as its text and the file's path."""
    text, path = match[1], match[2].partition("#")[0].lstrip("./")
    return f"`{path}`" if text.strip("`") in path else f"{text} (`{path}`)"


def on_page_markdown(markdown, page, **_):
    """Replaces links that lead out of docs/, those of pages in folders below it as well."""
    depth = page.file.src_uri.count("/")

    def replace(match):
        return name_outside(match) if match[2].count("../") > depth else match[0]

    return OUTSIDE.sub(replace, markdown)
