"""What the site does to the pages of docs/: it adds those that are made from code, and points links at the site.

Pages are written for a reader of the repository, too. So they link to code, which the site does not hold: there such a
link becomes the file's path.
"""

import pathlib
import re
import sys

from mkdocs.structure.files import File

SITE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(SITE), str(SITE.parents[1])]

import api_reference  # noqa: E402
import flag_reference  # noqa: E402

DOCS = SITE.parent
GENERATED = {"flags.md": flag_reference.build_page, "api.md": api_reference.build_page}
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def on_config(config):
    """Lists the pages of results, which are generated, too."""
    [results] = [part["Results"] for part in config.nav if "Results" in part]
    results += sorted(f"results/{path.name}" for path in (DOCS / "results").glob("*.md"))
    return config


def on_files(files, config):
    """Adds the generated pages."""
    for path, build_page in GENERATED.items():
        files.append(File.generated(config, path, content=build_page()))
    return files


def is_held(target: pathlib.Path) -> bool:
    """Whether the site has the file: it lies in docs/, and is neither a folder nor an archive."""
    return target.is_relative_to(DOCS) and not target.is_dir() and target.suffix != ".zip"


def name_path(text: str, target: pathlib.Path) -> str:
    """A link to what the site does not hold, as its text and the path in the repository."""
    path = target.relative_to(DOCS.parent)
    return f"`{path}`" if text.strip("`") in str(path) else f"{text} (`{path}`)"


def on_page_markdown(markdown, page, **_):
    """Replaces links to what the site does not hold; results get the whole width, for their tables."""
    if page.file.src_uri.startswith("results"):
        page.meta["hide"] = ["toc"]
    folder = (DOCS / page.file.src_uri).parent

    def replace(match):
        target = (folder / match[2]).resolve()
        return match[0] if is_held(target) else name_path(match[1], target)

    return LINK.sub(replace, markdown)
