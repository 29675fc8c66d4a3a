"""The report of a paper: its claims, its tables, and the page of these.

The page has at most 60 lines outside of its folded parts: two plain sentences, when to use the method, what the paper
prints beside ours, one figure, the claims, and the numbers behind it all.

What a page says in words stands in the paper's `page.toml`, and nothing else is written by hand. Numbers in it are
names in braces, each a cell of one of the tables that are made from the runs:

    title = "The paper: Tables 1 and 2"
    paper = "Authors, *Title*, year"  # if it is of one
    plain = "Two sentences without statistics: {ours} %."
    use_when = "it fits. Otherwise use FedAvg."  # goes on after "Use it when"
    about = "What the paper claims, in a line."  # if there is more to say before the claims, or the tables
    figure = "figure.png"         # if there is one
    evidence = ["A sentence with {gain} points.", "Another one."]
    readme = "A sentence of the README, {gain}"  # if there is one
    notes = ["Lines for the folded part."]
    tables = ["targets"]          # shown whole, for pages without claims
    commands = ["python -m ..."]
    rows = [{ row = "AMFL-P, tuned", experiments = "amfl_p/start_*_medium" }]  # what a reader can run again

    beside = "Table 1"            # heading of what is printed beside ours, which `Paper.beside` makes
    beside_note = "How to read it."
    shown_runs = "tuned"          # to which runs claims are put, unless a row says so
    shown = [                     # claims that the page shows, in their order, by words of one claim alone
        { claim = "AMFL-P is ahead", runs = "printed", why = "One line." },
    ]

    [numbers]                     # table, the cells that find its row, column; of the cell, a part, see PARTS
    gain = { table = "further", row = { comparison = "AMFL-P above FedAvg" }, column = "numbers", part = "interval" }
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from launch.runs.columns import TEST_ACCURACY, TEST_LOSS
from launch.runs.run_records import RunRecord
from launch.settings.errors import FlagError
from reproductions.engine.claim_rows import Claim, ask_printed_tables
from reproductions.engine.collection import WORDS, PrintedValue, SeedResults, read_toml
from reproductions.engine.comparisons import Lookup
from reproductions.engine.judge import (
    BY_CONSTRUCTION,
    COUNTED_WITH,
    NOT_COMPARABLE,
    NOT_RUN,
    count_verdicts,
    decide_all,
    decide_further,
    find_first_alike,
    list_counted,
)
from reproductions.engine.own_runs import ABSENT, EXPERIMENTS, tabulate_commands, tabulate_experiments
from reproductions.engine.paper import Paper, describe_revisions
from reproductions.engine.tables import Report, Section, Table, format_table, tabulate_legend

PAGE_FILE = "page.toml"
INTERVAL = re.compile(r"([+-]?[\d.]+ )?\[[^\]]+\]")
LIST = re.compile(r"^(?:(\d+ of \d+) comparisons ([^:]*)|all (\d+) comparisons[^:]*, the closest): ")
RESULT = re.compile(r"(?<= )(?:\d[\d.]*|never)(?=[ ,]|$)")  # of a comparison: a word that is a number
OUTCOMES = {"on the other side": "fail", "fail": "fail", "open": "open"}
WITHOUT_INTERVAL = re.compile(r"(.*): (\d+ of \d+ seeds on .*|[^:]* in all \d+ seeds|\d+ seeds?)")


class PageError(ValueError):
    """A `page.toml` that names what is not there."""


def compose_page(paper: Paper, tables: Mapping[str, Table], remarks: Sequence[str] = ()) -> str:
    """The page as Markdown.

    Args:
      paper: whose.
      tables: by the names of their CSV files.
      remarks: sentences on single runs.

    Raises:
      PageError: `page.toml` names a claim, an experiment or a column that there is not.
    """
    page = paper.page

    def say(name: str) -> list[str]:
        return [fill(page[name], page, tables)] if name in page else []

    cited = [f"Paper: [{page['paper']}](../references.md)"] if "paper" in page else []
    title = "\n".join([f"# {page['title']}", *cited])
    blocks = [title, f"**In short.** {say('plain')[0]}", f"**Use it when** {say('use_when')[0]}"]
    if paper.beside:
        blocks += [f"## {page['beside']}", format_table(paper.beside(tables)), *say("beside_note")]
    # A link to itself opens it in full size.
    figure = [f"[![{page['title']}]({page['figure']})]({page['figure']})"] if paper.draw else []
    if "claims" in tables:
        blocks += [*figure, "## Claims", *say("about"), *show_claims(paper, tables)]
    else:
        blocks += [*say("about"), *(show_table(tables[name]) for name in page.get("tables", ())), *figure]
    blocks += paper.further_blocks(tables)
    evidence = [f"- {fill(each, page, tables)}" for each in page["evidence"]]
    blocks += ["## The numbers behind it", "\n".join(evidence), *fold_runs(paper, tables, remarks)]
    return "\n\n".join(blocks) + "\n"


def fold(title: str, *blocks: str) -> str:
    """Blocks of Markdown that are shown at a click; without the attribute the site would leave them as they are."""
    return "\n\n".join([f'<details markdown="1"><summary>{title}</summary>', *blocks, "</details>"])


def fold_runs(paper: Paper, tables: Mapping[str, Table], remarks: Sequence[str]) -> list[str]:
    """The folded parts: what a reader can run again; then notes, tables and the command that makes the page."""
    page, archive = paper.page, f"docs/results/{paper.name}.zip"
    blocks = []
    if EXPERIMENTS in tables and page.get("rows"):
        try:
            commands = tabulate_commands(page["rows"], tables[EXPERIMENTS], archive)
        except FlagError as error:
            raise PageError(f"{PAGE_FILE}: {error}") from None
        blocks.append(fold("Run it yourself", format_table(commands), WORDS["run_again"]))
    lines = [f"- {fill(note, page, tables)}" for note in page.get("notes", ())] + [f"- {each}" for each in remarks]
    files = ", ".join(f"[{name.replace('_', ' ')}]({paper.name}_{name}.csv)" for name in tables)
    lines.append(f"- Tables: {files}; [kept runs]({paper.name}.zip). What each table shows is in `legend`.")
    places = f"--runs_dir={archive} --output=docs/results{' --figure' if paper.draw else ''}"
    commands = [*page.get("commands", ()), f"python -m launch.report --tables={paper.name} {places}"]
    blocks.append(fold("Runs, tables and commands", "\n".join(lines), "\n".join(["```sh", *commands, "```"])))
    return blocks


def show_claims(paper: Paper, tables: Mapping[str, Table]) -> list[str]:
    """The claims that the page shows, what the words of their table mean, and how many have which verdict."""
    claims = tables["claims"]
    shown = len({entry["claim"] for entry in paper.page["shown"]})
    counted = len(list_counted(claims, list(paper.presets)))
    number = "all" if shown == counted else f"{shown} of the {counted}"
    below = WORDS["shown"].format(number=number, claims=f"{paper.name}_claims.csv")
    counts = fold("How many claims have which verdict", format_table(count_verdicts(claims, paper.presets)))
    return [format_table(tabulate_shown(paper, tables)), below, counts]


def tabulate_shown(paper: Paper, tables: Mapping[str, Table]) -> Table:
    """The claims that the page shows: the paper's words, its numbers, ours, the interval, the verdict and why.

    Ours are of the runs that most rows are about; another row says of which.
    """
    rows, usual = [], paper.page.get("shown_runs")
    for entry in paper.page["shown"]:
        runs = entry.get("runs", usual)
        found = [row for row in tables["claims"].records if entry["claim"] in row["claim"]]
        if len(found) != 1 or runs not in paper.presets:
            raise PageError(f"{PAGE_FILE}: {entry['claim']!r} with {runs}: {len(found)} claims, not one")
        (row,) = found
        numbers = row[f"{runs}_numbers"]
        # What runs do not decide has its reason there, which `why` says in short; measures may follow.
        if row[runs] in (BY_CONSTRUCTION, NOT_COMPARABLE):
            numbers = numbers.partition("; ")[2] if INTERVAL.search(numbers) else ""
        ours, interval = split_numbers(numbers)
        # Where what decides ours is not printed, what decides by the paper's own tables, which names itself.
        printed = row[f"{runs}_printed"] or " ".join(filter(None, split_numbers(row["printed_tables_numbers"])))
        if runs != usual:
            ours = f"*{paper.presets[runs]}*: {ours}".removesuffix(": ")
        why = "" if row[runs] == NOT_RUN else f": {fill(entry['why'], paper.page, tables)}"
        rows.append([row["claim"], printed, ours, interval, f"**{row[runs]}**{why}"])
    return Table(["claim", "printed", paper.presets.get(usual, "ours"), "interval", "verdict"], rows)


def split_numbers(numbers: str) -> tuple[str, str]:
    """The first comparison that decides a claim: what is compared; and its interval, or what decides without one.

    How many comparisons there are stands first in `numbers`, and in short last in the interval.

    >>> split_numbers("2 of 2 comparisons open: A 1 %, B 2 % (MNIST): -1.00 [-2.00, +0.50], n = 3; more")
    ('A 1 %, B 2 % (MNIST)', '-1.00 [-2.00, +0.50], n = 3 (2 of 2 open)')
    """
    listed = LIST.match(numbers)
    share = ""
    if listed:
        part, outcome, everything = listed.groups()
        share = f" (closest of {everything})" if everything else f" ({part} {OUTCOMES.get(outcome, outcome)})"
    first = numbers[listed.end() :] if listed else numbers
    match = INTERVAL.search(first)
    if match is None:
        first = first.split("; ")[0]
        without = WITHOUT_INTERVAL.fullmatch(first)
        before, decides = without.groups() if without else (first, "")
        return before, f"{decides}{share}".strip()
    before = re.sub(r"(: (?:\w+; )?(?:mean )?|; (?:mean )?|: )$", "", first[: match.start()])
    seeds = re.match(r", n = \d+", first[match.end() :])
    return before, match[0] + (seeds[0] if seeds else "") + share


def find_printed(claim: Claim, lookup: Lookup, numbers: str) -> str:
    """What the paper prints of the comparison that stands first in ours; "" where a number of it is not printed.

    What stands in brackets tells where it is made, so that numbers there are none of its results.
    """
    ours = mask_results(split_numbers(numbers)[0])
    whole = (each for each in claim.conditions if None not in map(lookup, each.cells))
    return next((text for each in whole if mask_results(text := each.describe(lookup)) == ours), "")


def mask_results(text: str) -> str:
    """A comparison without its results, to tell whether another is of the same."""
    return "".join(part if part.startswith("(") else RESULT.sub("#", part) for part in re.split(r"(\([^)]*\))", text))


def fill(text: str, page: Mapping[str, Any], tables: Mapping[str, Table]) -> str:
    """A text of `page.toml` with its numbers."""
    return re.sub(r"{(\w+)}", lambda match: look_up(match[1], page, tables), text)


def look_up(name: str, page: Mapping[str, Any], tables: Mapping[str, Table]) -> str:
    """The cell that a name of `[numbers]` stands for; "not run" if its table or row is not there.

    Raises:
      PageError: there is no such name, or several rows fit.
    """
    try:
        wanted = page["numbers"][name]
    except KeyError:
        raise PageError(f"{PAGE_FILE}: {{{name}}} is not among its [numbers]") from None
    table = tables.get(wanted["table"], Table([], []))
    if table.columns and (unknown := {wanted["column"], *wanted["row"]} - set(table.columns)):
        raise PageError(f"{PAGE_FILE}: {{{name}}}: no column {', '.join(sorted(unknown))} in {wanted['table']}")
    rows = [row for row in table.records if all(cell in row[column] for column, cell in wanted["row"].items())]
    # Words that are a whole cell may be a part of other cells, too; then the whole one is meant.
    exact = [row for row in rows if all(row[column] == cell for column, cell in wanted["row"].items())]
    rows = exact or rows
    if len(rows) > 1:
        raise PageError(f"{PAGE_FILE}: {len(rows)} rows of {wanted['table']} fit {{{name}}}, not one")
    cell = rows[0][wanted["column"]] if rows else ABSENT
    return PARTS[wanted["part"]](cell) if "part" in wanted and cell != ABSENT else cell


def find_mean(cell: str) -> str:
    """A number without deviation, or difference in brackets."""
    return re.split(r" [±(]", cell)[0]


def find_interval(cell: str) -> str:
    """The difference and its interval; the whole cell where there is none."""
    match = INTERVAL.search(cell)
    return match[0] if match else cell


def round_plainly(cell: str, factor: int = 1) -> str:
    """Its number without decimals; 86.50 as 86.5, since it may have been 86.496; the cell where it holds none."""
    try:
        number = factor * float(find_mean(cell))
    except ValueError:
        return cell or ABSENT
    return str(number if number % 1 == 0.5 else math.floor(number + 0.5))


PARTS = {
    "mean": find_mean,
    "interval": find_interval,
    "whole": round_plainly,  # for a plain sentence
    "percent": lambda cell: round_plainly(cell, 100),  # of a share
    "sentence": lambda cell: cell.partition(". ")[0].removesuffix(".") + ".",  # the first
}


def show_table(table: Table) -> str:
    """A whole table as Markdown, its names in words."""
    columns, *rows = ([cell.replace("_", " ") for cell in row] for row in (table.columns, *table.rows))
    return format_table(Table(columns, rows)) if rows else ABSENT


def compose_report(
    paper: Paper,
    tables: Mapping[str, Section],
    runs: Sequence[RunRecord],
    results: SeedResults,
    printed: Sequence[PrintedValue] = (),
    **numbers: object,
) -> Report:
    """The report: claims, further comparisons, the paper's tables, where settings come from, and the page of these.

    Args:
      paper: whose.
      tables: the paper's tables by the names of their CSV files.
      runs: the runs that count.
      results: our numbers by preset, cell and seed.
      printed: the numbers that the paper prints.
      numbers: what the legend of `tables.toml` says as `{name}`.
    """
    sections = dict(tables)
    if paper.claims:
        sections["claims"] = Section("Verdicts", build_verdicts(paper.claims, printed, results, list(paper.presets)))
    shown = paper.further_presets or paper.presets
    labels = {name: label for name, label in paper.presets.items() if name in shown}
    if further := build_further(paper.further, results, labels):
        sections["further"] = further
    sections[EXPERIMENTS] = Section("Kept runs by experiment", tabulate_experiments(runs), WORDS["experiments"])
    csv_tables = {name: section.table for name, section in sections.items()}
    if paper.experiments:
        csv_tables["settings"] = paper.settings
    words = read_toml(paper.path.name, "tables.toml")
    texts = {"all": words["legend"].format(**numbers), "runs": words.get("presets", "")}
    texts["revisions"] = describe_revisions(runs)
    csv_tables["legend"] = tabulate_legend(texts, sections)
    return Report(compose_page(paper, csv_tables, list_remarks(runs)), csv_tables, runs)


def build_verdicts(
    claims: Sequence[Claim], printed: Sequence[PrintedValue], results: SeedResults, presets: Sequence[str]
) -> Table:
    """A row a claim: its rule, its verdict by the printed tables and by each kind of runs, and the numbers that decide.

    A claim that puts a comparison of an earlier one beside another number names that one, with which it is counted.

    Args:
      claims: those of a paper.
      printed: the numbers that it prints.
      results: ours, by preset.
      presets: the kinds of runs that have columns.
    """
    columns = ["section", "claim", "rule", COUNTED_WITH, "printed_tables", "printed_tables_numbers"]
    columns += [f"{preset}{part}" for preset in presets for part in ("", "_numbers", "_printed")]
    paper = {value.cell: value.value for value in printed}
    decided = [decide_all(claims, results[preset], preset) for preset in presets]
    rows = [
        [claim.section, claim.text, claim.rule, first, *ask_printed_tables(claim, paper.get)]
        + [text for each in of_claim for text in (*each, find_printed(claim, paper.get, each.numbers))]
        for claim, first, *of_claim in zip(claims, find_first_alike(claims), *decided, strict=True)
    ]
    return Table(columns, rows)


def build_further(claims: Sequence[Claim], results: SeedResults, labels: Mapping[str, str]) -> Section | None:
    """Our further comparisons, a family a preset, by what each is called; None if none was run."""
    columns = ["runs", "comparison", "verdict", "p (Holm)", "numbers"]
    rows, left = [], {}
    for preset, label in labels.items() if claims else ():
        decided = [each for each in decide_further(claims, results[preset]) if each.numbers]
        rows += [[label, each.claim.text, each.verdict, format_p_value(each.p_value), each.numbers] for each in decided]
        left[label] = len(claims) - len(decided)
    texts = [WORDS["further"]]
    if not_run := ", ".join(f"{number} of {len(claims)} ({label})" for label, number in left.items() if number):
        texts.append(f"Planned and not run yet: {not_run}. When they are, the p-values of their family can grow.")
    return Section("Our further comparisons", Table(columns, rows), "\n\n".join(texts)) if rows else None


def format_p_value(p_value: float | None) -> str:
    """Four decimals, or that it is less; "" without one."""
    return "" if p_value is None else "< 0.0001" if p_value < 0.0001 else f"{p_value:.4f}"


def list_remarks(runs: Sequence[RunRecord]) -> list[str]:
    """A sentence for each; [] if there is nothing to say."""
    return [*_name_subsets(runs), *_name_diverged(runs)]


def _name_subsets(runs: Sequence[RunRecord]) -> list[str]:
    subsets = sorted({(run.flags["dataset"], run.dataset) for run in runs if run.dataset != run.flags["dataset"]})
    return [
        f"Not on the whole data set: {sum(run.dataset == subset for run in runs)} of the runs with `--dataset={name}` "
        f"had {subset}."
        for name, subset in subsets
    ]


def _name_diverged(runs: Sequence[RunRecord]) -> list[str]:
    """Runs that have a loss that is no finite number."""
    lines = []
    for run in runs:
        evaluated = {number: row for number, row in run.rounds.items() if TEST_ACCURACY in row}
        if lost := [number for number, row in evaluated.items() if not math.isfinite(row.get(TEST_LOSS, math.nan))]:
            lines.append(
                f"Diverged: {run.experiment}, seed {run.flags['seed']}: the test loss is no finite number in "
                f"{len(lost)} of {len(run.rounds)} rounds, first in round {min(lost)}. All its accuracies count."
            )
    return lines
