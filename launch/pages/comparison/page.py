"""Writes the page: one HTML file with the runs' numbers, the scripts that show them and Plotly, that loads nothing.

Plotly comes from its Python package, of which nothing but the script is used. It is packed, which leaves 2 of its 5 MB.
The sources of the page are in `web/`. Imports no TensorFlow.
"""

import base64
import importlib.metadata
import importlib.util
import json
import pathlib
import re
from collections.abc import Mapping
from typing import Any

from files.writing import write_text
from launch.console.shown_text import escape_hidden
from launch.pages.comparison.collection import Collected
from launch.pages.comparison.content import Details, build_content, choose_detailed_runs, read_details
from launch.pages.templates import embed_packed, format_policy, join_scripts, protect_script, render
from launch.settings.errors import FlagError

SOURCES = pathlib.Path(__file__).with_name("web")
# Each may use those before it.
SCRIPTS = (
    *("numbers.js", "statistics.js", "groups.js", "trivial.js", "table.js", "filters.js", "charts.js", "legend.js"),
    *("words.js", "baselines.js", "answer.js", "differences.js", "sections.js", "details.js", "main.js"),
)
MARK = '<meta name="generator" content="launch.compare">'  # by which a page of ours is known
PLOTLY, PLOTLY_SCRIPT = "plotly", "package_data/plotly.min.js"
LICENCES = ("licenses/LICENSE.txt", "LICENSE.txt")
# Where Plotly would send a chart; the page passes no such address either (`charts.js`).
CLOUD = re.compile(r'https?://(?:cloud|chart-studio|api)\.(?:plot\.ly|plotly\.com)[^"\']*')
# Plotly sets styles while it draws.
STYLES = "'unsafe-inline'"


def find_plotly() -> pathlib.Path | None:
    """Plotly's script in its Python package, which is not imported; None if it is not installed."""
    spec = importlib.util.find_spec(PLOTLY)
    folders = spec.submodule_search_locations if spec else None
    path = pathlib.Path(folders[0]) / PLOTLY_SCRIPT if folders else None
    return path if path and path.is_file() else None


def check_plotly() -> pathlib.Path:
    """Plotly's script. Raises FlagError if it is missing."""
    path = find_plotly()
    if path is None:
        raise FlagError("Plotly, which draws the charts of the page, is missing; type: make setup")
    return path


def read_plotly(path: pathlib.Path) -> str:
    """Plotly's script without the addresses of its cloud, so that it knows nowhere to send a chart to."""
    return CLOUD.sub("", path.read_text(encoding="utf-8"))


def write_comparison(collected: Collected, output: pathlib.Path, details: str = "") -> None:
    """Writes the page of several runs.

    Args:
      collected: the runs.
      output: its file; it is replaced.
      details: pattern of the runs whose plots and events are inlined, see `choose_detailed_runs`.

    Raises:
      FlagError: Plotly is missing, or no run is called as `details` says.
      OSError: a file cannot be read or written.
    """
    library = check_plotly()
    chosen = choose_detailed_runs(collected.runs, details)
    inlined = read_details(collected.runs, chosen)
    count = len(collected.runs)
    title = f"{count} runs compared" if count > 1 else collected.runs[0].heading or collected.runs[0].name
    write_text(output, assemble_page(title, build_content(collected, inlined, output), inlined, library))


def assemble_page(title: str, content: Mapping[str, Any], details: Mapping[int, Details], library: pathlib.Path) -> str:
    """The page's HTML. Its policy lets a browser run the scripts in it, known by their digests, and load nothing.

    Args:
      title: heading of the page.
      content: what its scripts read; JSON.
      details: pictures of some runs, by the run's index.
      library: Plotly's script.
    """
    script = f"\n{protect_script(join_scripts(SOURCES, SCRIPTS))}\n"
    plotly = read_plotly(library)
    packed = json.dumps(content, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    pictures = [
        f'<script type="text/plain" id="picture-{i}-{number}">{base64.b64encode(png).decode()}</script>'
        for i, inlined in details.items()
        for number, png in enumerate(inlined.pictures.values())
    ]
    try:
        package = importlib.metadata.distribution(PLOTLY)
        licence = next(filter(None, map(package.read_text, LICENCES)), "MIT")
    except importlib.metadata.PackageNotFoundError:
        licence = "MIT"
    return render(
        "pages/comparison/web/page.html.j2",
        title=escape_hidden(title),
        mark=MARK,
        policy=format_policy([plotly, script], STYLES),
        style=f"\n{(SOURCES / 'page.css').read_text(encoding='utf-8')}",
        # A file's name that is not UTF-8 would break all of the data.
        assets=[
            *pictures,
            embed_packed("plotly", plotly.encode()),
            embed_packed("page-data", packed.encode("utf-8", "replace")),
        ],
        licence=licence,
        script=script,
    )


def is_our_page(path: pathlib.Path) -> bool:
    """Whether a file is a page that this module wrote. Raises OSError if it cannot be read."""
    with path.open("rb") as file:
        return MARK.encode() in file.read(4096)
