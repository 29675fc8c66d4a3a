"""The pages in docs/results/ are short, their numbers are of their tables, and their links lead somewhere."""

import csv
import pathlib
import re

import pytest

from reproductions.engine.judge import VERDICTS
from reproductions.engine.own_runs import ABSENT, tabulate_commands
from reproductions.engine.page import fill, tabulate_shown
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
MOST_LINES, MOST_WORDS_OF_A_SENTENCE = 64, 45


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
    """What is folded does not count."""
    text = re.sub(r"<details[ >].*?</details>\n*", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(text.splitlines()) <= MOST_LINES


@pytest.mark.parametrize("name", PAPERS)
def test_a_page_opens_with_two_plain_sentences(name):
    """Without intervals and deviations, and each short enough to be read once."""
    plain = fill(PAPERS[name].page["plain"], PAPERS[name].page, TABLES[name])
    sentences = re.split(r"(?<=[.?]) (?=[A-Z])", plain)
    assert len(sentences) == 2 and not re.search(r"[±\[\]]", plain)
    assert max(len(sentence.split()) for sentence in sentences) <= MOST_WORDS_OF_A_SENTENCE
    assert (RESULTS / f"{name}.md").read_text(encoding="utf-8").split("\n\n")[1] == f"**In short.** {plain}"


@pytest.mark.parametrize("name", [name for name, tables in TABLES.items() if "claims" in tables])
def test_a_page_names_its_paper_as_it_is_to_be_cited(name):
    authors, title, rest = PAPERS[name].page["paper"].split("*")
    cited = (DOCS.parent / "CITATION.cff").read_text(encoding="utf-8").split("- type: ")
    (reference,) = [each for each in cited if title in each]
    family_names = re.findall("family-names: (.+)", reference)
    assert re.split(", | and ", authors.removesuffix(", ")) == family_names and re.fullmatch(r", 20\d\d", rest)


@pytest.mark.parametrize("name", [name for name, tables in TABLES.items() if "claims" in tables])
def test_what_fails_though_its_interval_holds_0_says_what_is_claimed(name):
    """Such a claim has a bar above 0, as "exceeding by 25%"."""
    for row in tabulate_shown(PAPERS[name], TABLES[name]).records:
        ends = re.search(r"\[(-?[\d.]+), \+", row["interval"])
        if row["verdict"].startswith("**not reproduced**") and ends and float(ends[1]) < 0:
            assert re.search(r"\d", row["verdict"]), row


def test_the_overview_begins_with_when_to_use_what():
    """So that a reader of the README comes to it in two clicks: the README links to it."""
    lines = [line for line in OVERVIEW.read_text(encoding="utf-8").splitlines() if line]
    assert lines[2] == "## Use it when" and [line.split("](")[0][3:] for line in lines[3 : 3 + len(PAPERS)]] == [
        paper.page["title"].partition(":")[0] for paper in PAPERS.values()
    ]
    assert "(docs/results.md#use-it-when)" in (DOCS.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAPERS)
def test_each_row_that_can_be_run_again_has_kept_runs(name):
    rows = tabulate_commands(PAPERS[name].page["rows"], TABLES[name]["experiments"], "").rows
    assert rows and not [row for row in rows if ABSENT in row]


@pytest.mark.parametrize("name", [name for name, tables in TABLES.items() if "claims" in tables])
def test_every_verdict_is_known(name):
    claims = TABLES[name]["claims"]
    places = [list(claims.columns).index(preset) for preset in PAPERS[name].presets]
    assert {row[place] for row in claims.rows for place in places} <= set(VERDICTS)


@pytest.mark.parametrize("name", PAPERS)
def test_every_number_of_a_page_s_words_is_of_its_tables(name):
    """None is typed but those that the paper prints: what stands in braces is found, and has been run."""
    page = PAPERS[name].page
    words = " ".join([page["plain"], page["use_when"], *page["evidence"], *(each["value"] for each in page["key"])])
    assert set(re.findall(r"{(\w+)}", words)) <= set(page["numbers"])
    assert "not run" not in fill(words, page, TABLES[name])


def test_the_kept_runs_are_small():
    assert sum(path.stat().st_size for path in RESULTS.glob("*.zip")) < MOST_ARCHIVES_BYTES
