"""Reports as Markdown and as CSV tables: how a table, a result and a claim look in them."""

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from launch.papers.engine.collection import PERCENT_METRICS, Measured, summarize
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
    """A finished report: Markdown, the CSV tables by name, the runs that it counts, and a line for others of its."""

    markdown: str
    tables: Mapping[str, Table]
    runs: Sequence[RunRecord]
    left_out: Sequence[str] = ()


def join_blocks(blocks: Iterable[str]) -> str:
    """Blocks of Markdown with empty lines between them."""
    return "\n\n".join(blocks)


def format_table(table: Table) -> str:
    """A table as Markdown."""
    lines = [table.columns, ["---"] * len(table.columns), *table.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def tabulate_legend(texts: Mapping[str, str], sections: Mapping[str, Section]) -> Table:
    """What each table of a report shows and how it is read: a row a table, and first what concerns them all.

    Args:
      texts: what concerns all, by what it is about; empty ones are left out.
      sections: the tables by name.
    """
    rows = [[about, "", unwrap(text)] for about, text in texts.items() if text]
    for name, section in sections.items():
        # What stands beside a table in Markdown, without tables, headings and pictures.
        lines = [line for line in section.text.splitlines() if not line.startswith(("|", "![", "#", "**"))]
        rows.append([name, section.heading, unwrap("\n".join(lines))])
    return Table(["about", "heading", "how to read it"], rows)


def unwrap(text: str) -> str:
    """Text on one line."""
    return " ".join(text.split())


def format_measured(metric: str, measured: Measured | None, absent: str = "not run") -> str:
    """ "74.12 ± 1.03" in the units of the table, `absent` for None."""
    if measured is None:
        return absent
    if math.isinf(measured.mean):
        return "not reached by all"
    factor = 100 if metric in PERCENT_METRICS else 1
    spread = "" if measured.deviation is None else f" ± {factor * measured.deviation:.2f}"
    return f"{factor * measured.mean:.2f}{spread}"


def format_seeds(seeds: Sequence[int]) -> str:
    """Seeds in ascending order: "10 to 12", "0, 2"."""
    is_row = list(seeds) == list(range(seeds[0], seeds[-1] + 1)) and len(seeds) > 1
    return f"{seeds[0]} to {seeds[-1]}" if is_row else ", ".join(map(str, seeds))


def format_rounds(rounds: Collection[float], last_round: int) -> str:
    """Rounds of several seeds, infinite in a run that does not get there: "5.00 ± 0.00", "median 5; > 50 in 2 of 5".

    Args:
      rounds: of at least one seed.
      last_round: where the runs ended.
    """
    late = sum(map(math.isinf, rounds))
    if not late:
        return format_measured("rounds", summarize(list(rounds)))
    never = f"> {last_round} in {late} of {len(rounds)}"
    median = statistics.median(rounds)
    return never if math.isinf(median) else f"median {median:g}; {never}"
