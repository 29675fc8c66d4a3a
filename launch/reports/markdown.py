"""Reports as Markdown and as CSV tables: how a table, a result and a claim look in them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from launch.reports.claims import Judgement, say_ours, say_printed
from launch.reports.collection import PERCENT_METRICS, Measured
from launch.runs.run_records import RunRecord


class Table(NamedTuple):
    """Columns and rows of formatted cells."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class Section(NamedTuple):
    """A table under a heading, "" for none; `text` is how Markdown shows it if not as a table."""

    heading: str
    table: Table
    text: str = ""


class Report(NamedTuple):
    """A finished report: Markdown, the CSV tables by name, and the runs that it counts."""

    markdown: str
    tables: Mapping[str, Table]
    runs: Sequence[RunRecord]


def join_blocks(blocks: Iterable[str]) -> str:
    """Blocks of Markdown with empty lines between them."""
    return "\n\n".join(blocks)


def format_table(table: Table) -> str:
    """A table as Markdown."""
    lines = [table.columns, ["---"] * len(table.columns), *table.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def format_sections(sections: Iterable[Section], level: int = 2) -> list[str]:
    """Blocks of Markdown, the headings of the level given."""
    blocks = []
    for heading, table, text in sections:
        blocks += [f"{'#' * level} {heading}"] if heading else []
        blocks.append(text or format_table(table))
    return blocks


def format_measured(metric: str, measured: Measured | None, absent: str = "not run") -> str:
    """ "74.12 ± 1.03" in the units of the table, `absent` for None."""
    if measured is None:
        return absent
    factor = 100 if metric in PERCENT_METRICS else 1
    spread = "" if measured.deviation is None else f" ± {factor * measured.deviation:.2f}"
    return f"{factor * measured.mean:.2f}{spread}"


def format_claims(judgements: Sequence[Judgement]) -> str:
    """The claims as Markdown: a table of verdicts, then the numbers that decide."""
    rows = [
        [str(number), claim.section, claim.text, say_printed(printed), say_ours(ours), say_ours(tuned)]
        for number, (claim, printed, ours, tuned) in enumerate(judgements, 1)
    ]
    verdicts = format_table(Table(["", "section", "claim", "printed tables", "ours", "ours, tuned"], rows))
    lines = [verdicts, "", "How each is decided, and the numbers that decide it:", ""]
    for number, (claim, *outcomes) in enumerate(judgements, 1):
        lines.append(f"{number}. {claim.text}. *Rule:* {claim.rule}.")
        for source, outcome in zip(("Printed tables", "Ours", "Ours, tuned"), outcomes, strict=True):
            if outcome is not None and outcome.numbers:
                lines.append(f"   - {source}: {outcome.numbers}.")
    return "\n".join(lines) + "\n"


def tabulate_claims(judgements: Sequence[Judgement]) -> Table:
    """The claims as a CSV table."""
    columns = ["section", "claim", "rule", "printed_tables", "ours", "ours_numbers", "tuned", "tuned_numbers"]
    rows = []
    for claim, printed, ours, tuned in judgements:
        numbers = "" if tuned is None else tuned.numbers
        verdicts = [say_printed(printed), say_ours(ours), ours.numbers, say_ours(tuned), numbers]
        rows.append([claim.section, claim.text, claim.rule, *verdicts])
    return Table(columns, rows)
