"""The scripts of the pages: joined in an order that works, small, described, and right in their own tests."""

import pathlib
import re
import shutil
import subprocess

import pytest

from launch.pages.comparison import page
from launch.pages.templates import join_scripts
from launch.tflite import web_page

PAGES = {
    "compare": (page.SOURCES, page.SCRIPTS),
    "drawn": (web_page.SOURCES, web_page.SCRIPTS),
    "text": (web_page.SOURCES, web_page.TEXT_SCRIPTS),
    "words": (web_page.SOURCES, web_page.WORDS_SCRIPTS),
}
OWN_TESTS = sorted(pathlib.Path(__file__).parents[1].glob("**/web/*.test.mjs"))


@pytest.fixture(scope="module")
def run_node():
    """(arguments) -> what Node.js, which runs the pages' scripts here, prints."""
    node = shutil.which("node")
    if not node:
        pytest.skip("Node.js is not installed")

    def run(*arguments):
        ended = subprocess.run([node, *map(str, arguments)], capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    return run


@pytest.mark.parametrize("name", PAGES)
def test_joined_scripts_are_javascript_in_which_each_knows_those_it_uses(run_node, tmp_path, name):
    sources, scripts = PAGES[name]
    for place, script in enumerate(scripts):
        used = re.findall(r'from "\./(\w+\.js)"', (sources / script).read_text())
        assert set(used) <= set(scripts[:place]), script
    joined = join_scripts(sources, scripts)
    assert not re.search(r"^(import|export)\b", joined, flags=re.MULTILINE)
    declared = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", joined, flags=re.MULTILINE)
    assert len(declared) == len(set(declared))
    (tmp_path / "page.mjs").write_text(f"const LiteRT = {{}};\n{joined}")
    run_node("--check", tmp_path / "page.mjs")


def test_every_script_is_in_a_page_small_and_described():
    used = {sources / name for sources, scripts in PAGES.values() for name in scripts}
    assert used == {*page.SOURCES.glob("*.js"), *web_page.SOURCES.glob("*.js")}
    for path in used:
        lines = path.read_text().splitlines()
        assert lines[0].startswith("// ") and len(lines) <= 250, path.name
        assert all(len(line) <= 140 for line in lines), path.name


def test_maths_of_the_pages(run_node):
    printed = run_node("--test", *OWN_TESTS)
    assert int(re.search(r"^# pass (\d+)", printed, flags=re.MULTILINE)[1]) >= len(OWN_TESTS) > 7
