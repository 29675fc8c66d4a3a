"""The pages in docs/results/ are short, their numbers are of their tables, and their links lead somewhere."""

import csv
import pathlib
import re

import pytest

from reproductions.engine.judge import VERDICTS
from reproductions.engine.page import compose_page, fill
from reproductions.engine.tables import Table
from reproductions.registry import PAPERS
from reproductions.report import compose_overview, summarize

DOCS = pathlib.Path(__file__).parents[1] / "docs"
RESULTS = DOCS / "results"
OVERVIEW = DOCS / "results.md"
PAGES = sorted(RESULTS.glob("*.md"))
FROZEN = {"fedsikd_published_code", "fedsikd_published_code_rows", "async_first_runs"}  # of studies made once
NOTES = {f"{name}_notes" for name in ("fedsikd", "async", "amfl_p", "fedcd")}
MOST_ARCHIVES_BYTES = 3_000_000


def read_tables(name):
    """The committed tables of a paper in the order in which its page links them."""
    order = re.findall(rf"\]\({name}_(\w+)\.csv\)", (RESULTS / f"{name}.md").read_text().split("- Tables: ")[1])
    tables = {}
    for table in order:
        with open(RESULTS / f"{name}_{table}.csv", newline="", encoding="utf-8") as file:
            columns, *rows = csv.reader(file)
        tables[table] = Table(columns, rows)
    return tables


TABLES = {name: read_tables(name) for name in PAPERS}


def test_every_table_is_of_a_page():
    made = {f"{name}_{table}" for name, tables in TABLES.items() for table in tables}
    assert {path.stem for path in RESULTS.glob("*.csv")} == made | FROZEN | NOTES


def test_the_overview_is_that_of_the_committed_tables():
    assert OVERVIEW.read_text(encoding="utf-8") == compose_overview(
        [(paper, TABLES[name]) for name, paper in PAPERS.items()]
    )
    assert len(OVERVIEW.read_text(encoding="utf-8").splitlines()) <= 150


def test_the_readme_says_what_the_overview_begins_with():
    said = [summarize([(paper, TABLES[name]) for name, paper in PAPERS.items()])]
    pages = {name: paper.page for name, paper in PAPERS.items() if "readme" in paper.page}
    said += [fill(page["readme"], page, TABLES[name]) for name, page in pages.items()]
    readme = " ".join((DOCS.parent / "README.md").read_text(encoding="utf-8").split())
    assert not [sentence for sentence in said if sentence.rstrip(".") not in readme]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_is_short(path):
    most = 300 if path.name == "league.md" else 60  # a table a problem
    assert len(path.read_text(encoding="utf-8").splitlines()) <= most


@pytest.mark.parametrize("name", [name for name, tables in TABLES.items() if "claims" in tables])
def test_every_verdict_is_known(name):
    claims = TABLES[name]["claims"]
    places = [list(claims.columns).index(preset) for preset in PAPERS[name].presets]
    assert {row[place] for row in claims.rows for place in places} <= set(VERDICTS)


@pytest.mark.parametrize("name", PAPERS)
def test_every_number_of_a_page_s_words_is_of_its_tables(name):
    """None is typed but those that the paper prints: what stands in braces is found, and has been run."""
    page = PAPERS[name].page
    words = " ".join([page["use_it"], *(each["value"] for each in page["key"])])
    assert set(re.findall(r"{(\w+)}", words)) <= set(page["numbers"])
    text = compose_page(PAPERS[name], TABLES[name])
    assert "not run" not in text.split("**Use it?**")[1].split("<details>")[0]


def test_the_kept_runs_are_small():
    assert sum(path.stat().st_size for path in RESULTS.glob("*.zip")) < MOST_ARCHIVES_BYTES
