"""The page is one file that loads nothing, holds what it shows, and computes as Python does."""

import base64
import gzip
import html.parser
import json
import pathlib
import re
import shutil
import subprocess

import numpy as np
import pytest

from launch.pages.comparison import page
from launch.pages.comparison.collection import collect_runs
from launch.pages.comparison.seed_statistics import (
    average_repeats,
    compare_by_seed,
    compute_t_quantile,
    estimate_mean,
    subtract_by_seed,
)
from launch.pages.templates import compute_digest
from launch.runs.tables import write_table
from launch.settings.errors import FlagError

WEB_TESTS = pathlib.Path(__file__).with_name("web")
HOSTILE = "</script><script>alert(1)</script>"
# Draws each chart with a Plotly that notes what it is given.
DRAW_ALL = """
globalThis.document = {};
globalThis.getComputedStyle = () => ({ getPropertyValue: () => "" });
const given = [];
globalThis.Plotly = {
  react: (place, traces, layout, config) => { given.push({ traces, layout, config }); return Promise.resolve(); },
  relayout: () => {},
};
const { drawCurves, drawResults, drawDifference } = await import(CHARTS);
const point = { x: 1, round: 1, mean: 0.5, low: 0.4, high: 0.6, count: 2 };
const style = { color: "#0072B2", dash: "solid" };
const curve = { label: NAME, style, points: [point], runs: [{ name: NAME, points: [point] }] };
for (const clientWidth of [320, 1280]) {
  const place = { clientWidth };
  drawCurves(place, [{ ...curve, raw: [point] }, curve], { low: "low", high: "high", name: "band" }, NAME, NAME, true);
  drawResults(place, [{ label: NAME, style, summary: point, seeds: [0.5] }], NAME);
  drawDifference(place, [point], style.color, NAME);
}
console.log(JSON.stringify(given));
"""

# A document just large enough for a legend of two curves, the second with two traces.
SHOW_LEGEND = """
class Element {
  constructor() { this.attributes = {}; this.children = []; this.listeners = []; }
  setAttribute(name, value) { this.attributes[name] = value; }
  getAttribute(name) { return this.attributes[name]; }
  addEventListener(name, listener) { this.listeners.push(listener); }
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
}
globalThis.document = { createElement: () => new Element() };
const restyled = [];
globalThis.Plotly = { restyle: (chart, change, traces) => restyled.push([change, traces]) };
const { showLegend } = await import("FOLDER/legend.js");
const [place, alone, style] = [new Element(), new Element(), { color: "#0072B2", dash: "dash" }];
const chart = { data: ["0", "1", "1"].map((legendgroup) => ({ legendgroup })) };
showLegend(place, chart, [{ label: "<b>one", style }, { label: "two", style }], "algo");
showLegend(alone, chart, [{ label: "one", style }]);
const buttons = place.children.slice(1);
for (const times of [1, 2]) buttons[1].listeners[0]();
console.log(JSON.stringify([buttons.map((button) => button.children.at(-1)), restyled, alone.children.length]));
"""


class Elements(html.parser.HTMLParser):
    """All elements with their attributes, and the texts of scripts by their id, "" for the one without."""

    def __init__(self, text):
        super().__init__()
        self.found, self.scripts, self._script = [], {}, None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self._script = dict(attrs).get("id", "") if tag == "script" else None

    def handle_data(self, data):
        if self._script is not None:
            self.scripts[self._script] = self.scripts.get(self._script, "") + data

    def handle_endtag(self, tag):
        self._script = None

    def unpack(self, name):
        return gzip.decompress(base64.b64decode(self.scripts[name])).decode()


@pytest.fixture(scope="module")
def plotly(tmp_path_factory):
    """A stand-in for Plotly's script, so that the tests are quick."""
    path = tmp_path_factory.mktemp("plotly") / "plotly.min.js"
    path.write_text("globalThis.Plotly = {};")
    return path


@pytest.fixture
def write_page(monkeypatch, plotly, tmp_path):
    """(folder of runs, ...) -> the page's elements."""
    monkeypatch.setattr(page, "find_plotly", lambda: plotly)

    def write(folder, details=""):
        path = tmp_path / "compare.html"
        page.write_comparison(collect_runs([str(folder)]), path, details)
        return Elements(path.read_text(encoding="utf-8"))

    return write


@pytest.fixture(scope="module")
def run_node(tmp_path_factory):
    """(path or text of a script, what it reads) -> what Node.js, which runs the page's scripts here, prints as JSON."""
    found = shutil.which("node")
    if not found:
        pytest.skip("Node.js is not installed, which runs the page's scripts here")

    def run(script, given=""):
        if isinstance(script, str):
            path = tmp_path_factory.mktemp("scripts") / "script.mjs"
            path.write_text(script)
        else:
            path = script
        ended = subprocess.run([found, str(path)], input=given, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    return run


def test_the_page_holds_its_runs_and_loads_nothing(write_page, write_sweep, plotly, tmp_path):
    elements = write_page(write_sweep([1, 2], [0, 1]))
    assert not [
        attributes for _, attributes in elements.found if "src" in attributes or attributes.get("rel") == "stylesheet"
    ]
    policy = next(attributes["content"] for _, attributes in elements.found if "http-equiv" in attributes)
    assert policy.startswith("default-src 'none'; form-action 'none'; base-uri 'none'; img-src data: blob:;")
    assert "connect-src" not in policy and "unsafe-eval" not in policy
    for script in (plotly.read_text(), elements.scripts[""]):
        assert compute_digest(script) in policy
    content = json.loads(elements.unpack("page-data"))
    assert [run["flags"]["temperature"] for run in content["runs"]] == [1, 1, 2, 2]
    assert base64.b64decode(elements.scripts["picture-3-0"]).endswith(b"of this run")
    assert page.is_our_page(tmp_path / "compare.html")


def test_the_same_runs_give_the_same_bytes(write_page, write_sweep, tmp_path):
    folder, path = write_sweep([1], [0]), tmp_path / "compare.html"
    write_page(folder)
    first = path.read_bytes()
    write_page(folder)
    assert path.read_bytes() == first


def test_hostile_names_stay_text(write_page, write_sweep):
    folder = write_sweep([1], [0])
    run_dir = folder / "T1" / "fedsikd_mnist_alpha0.1" / "seed_0"
    hostile = [[HOSTILE, "1", HOSTILE, "0.5"]]
    write_table(run_dir / "clients.csv", ["client", "num_train", "model", "accuracy"], hostile)
    (run_dir / "plots" / "<b>&.png").write_bytes(HOSTILE.encode())
    run_dir.rename(run_dir.with_name("<script>alert(1)<"))
    elements = write_page(folder)
    assert set(elements.scripts) == {"", "plotly", "page-data", "picture-0-0", "picture-0-1"}
    assert json.loads(elements.unpack("page-data"))["runs"][0]["clients"]["client"] == [HOSTILE]


def test_the_page_names_the_licence_of_its_charts(write_page, write_sweep, tmp_path):
    write_page(write_sweep([1], [3]))
    text = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert "Plotly" in text[text.index("Text of the licence") :] and "MIT" in text


def test_without_plotly_one_line_says_what_to_type(monkeypatch, write_sweep, tmp_path):
    monkeypatch.setattr(page, "PLOTLY", "no_such_package_of_plotly")
    with pytest.raises(FlagError, match=r"Plotly.* is missing; type: make setup"):
        page.write_comparison(collect_runs([str(write_sweep([1], [0]))]), tmp_path / "compare.html")


def test_no_chart_is_sent_anywhere_and_no_name_is_html_in_it(run_node):
    charts = json.dumps((page.SOURCES / "charts.js").as_uri())
    drawn = run_node(DRAW_ALL.replace("CHARTS", charts).replace("NAME", json.dumps("<b onclick=1>x</b>")))
    assert len(drawn) == 6
    wanted = {"plotlyServerURL": ""}
    wanted |= dict.fromkeys(("displaylogo", "showLink", "sendData", "showSendToCloud", "showEditInChartStudio"), False)
    for chart in drawn:
        assert wanted.items() <= chart["config"].items()
        removed = set(chart["config"]["modeBarButtonsToRemove"])
        assert {"sendChartToCloud", "sendDataToCloud", "editInChartStudio"} <= removed
        assert "<b" not in json.dumps([chart["traces"], chart["layout"]])


def test_the_legend_lies_beside_the_charts(run_node):
    """Names wrap as text, whatever the width; a click hides the traces of a curve, and a second one shows them."""
    names, restyled, alone = run_node(SHOW_LEGEND.replace("FOLDER", page.SOURCES.as_uri()))
    assert names == ["<b>one", "two"] and alone == 0
    assert restyled == [[{"visible": False}, [1, 2]], [{"visible": True}, [1, 2]]]


def test_plotly_knows_no_address_of_its_cloud(tmp_path):
    pytest.importorskip("plotly", reason="an environment of before Plotly")
    before, after = page.check_plotly().read_text(encoding="utf-8"), page.read_plotly(page.check_plotly())
    assert "plotly.js" in before[:100] and re.search(r'plotlyServerURL:\{valType:"string",dflt:""\}', after)
    assert "cloud.plotly.com" not in after and len(before) - len(after) < 200
    script = tmp_path / "plotly.min.js"
    addresses = ("https://chart-studio.plotly.com", "https://api.plot.ly/v2/x", "https://cloud.plotly.com/new")
    script.write_text("a('{}', '{}', \"{}\")".format(*addresses))
    assert page.read_plotly(script) == "a('', '', \"\")"


def test_a_page_of_many_runs_is_small(write_page, tmp_path):
    """30 of 500 runs of 100 rounds, ten columns of random digits each, whose share of 20 MB without Plotly is 1 MB."""
    rng = np.random.default_rng(0)
    for number in range(30):
        run_dir = tmp_path / "runs" / f"run_{number}"
        rows = np.column_stack([np.arange(1, 101), rng.random((100, 10))])
        cells = [[f"{cell:.6g}" for cell in row] for row in rows]
        write_table(run_dir / "metrics.csv", ["round", "test_accuracy", *(f"column_{i}" for i in range(9))], cells)
        (run_dir / "config.json").write_text(
            json.dumps({"flags": {"algo": "fedavg", "dataset": "digits", "seed": number}})
        )
        (run_dir / "summary.json").write_text("{}")
    write_page(tmp_path / "runs")
    assert (tmp_path / "compare.html").stat().st_size < 30 / 500 * 18e6


def draw_tables(rng):
    """Pairs of groups, each rows of (seed, share), and the bounds of the shares, at which some intervals are cut.

    Groups lack some of the twelve seeds, and have others twice.
    """
    for bounds in [(0, 1), (None, None), (0, None)] * 10:
        sizes = rng.integers(1, 13, 2)
        yield [np.column_stack([rng.choice(12, size), rng.random(size)]).tolist() for size in sizes], bounds
    ones, nearly = ([(seed, share + seed * 1e-12) for seed in range(5)] for share in (1.0, 0.7))
    wide = [(0, 0.1), (4, 0.9)]
    for pair in ([ones, nearly], [nearly, nearly], [ones[:1], ones], [ones[:2], ones[2:]], [nearly, wide]):
        yield pair, (0, 1)


def test_statistics_are_those_of_python(run_node):
    """The page's own arithmetic against SciPy's: means and intervals of groups, and their paired differences."""
    tables = list(draw_tables(np.random.default_rng(1)))
    given = json.dumps([tables, [compute_t_quantile(degrees) for degrees in range(1, 12)]])
    computed = run_node(WEB_TESTS / "estimate.mjs", given)
    for (groups, bounds), (of_groups, pairs, of_pairs) in zip(tables, computed, strict=True):
        first, second = map(average_repeats, groups)
        expected = [estimate_mean(group.values(), bounds=bounds) for group in (first, second)]
        assert of_groups == [pytest.approx(list(each), rel=1e-9) for each in expected]
        assert dict(pairs) == pytest.approx(subtract_by_seed(first, second), abs=1e-12)
        assert of_pairs == pytest.approx(list(compare_by_seed(first, second)[:4]), rel=1e-9, abs=1e-12)
