"""Reports as Markdown and as CSV tables: how a table, a result and a claim look in them."""

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from launch.comparison.seed_statistics import compute_deviation, compute_mean
from launch.runs.run_records import RunRecord
from reproductions.engine.collection import PERCENT_METRICS


class Table(NamedTuple):
    """Columns and rows of formatted cells."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def records(self) -> list[dict[str, str]]:
        """The rows, each {column: cell}."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class Section(NamedTuple):
    """A table, its heading, and how it is read."""

    heading: str
    table: Table
    note: str = ""


class Report(NamedTuple):
    """A finished report: Markdown, the CSV tables by name, the runs that it counts, and a line for others of its."""

    markdown: str
    tables: Mapping[str, Table]
    runs: Sequence[RunRecord]
    left_out: Sequence[str] = ()


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
    rows = [[about, "", text] for about, text in texts.items() if text]
    rows += [[name, section.heading, section.note] for name, section in sections.items()]
    return Table(["about", "heading", "how to read it"], [[" ".join(cell.split()) for cell in row] for row in rows])


def format_measured(metric: str, values: Collection[float], absent: str = "not run") -> str:
    """Mean and sample deviation of values, one a seed: "74.12 ± 1.03" in the table's units; `absent` without any."""
    if not values:
        return absent
    mean, deviation = compute_mean(values), compute_deviation(values)
    if math.isinf(mean):
        return "not reached by all"
    factor = 100 if metric in PERCENT_METRICS else 1
    spread = "" if deviation is None else f" ± {factor * deviation:.2f}"
    return f"{factor * mean:.2f}{spread}"


def format_rounds(rounds: Collection[float], last_round: int) -> str:
    """Rounds of several seeds, infinite in a run that does not get there: "5.00 ± 0.00", "median 5; > 50 in 2 of 5".

    Args:
      rounds: of at least one seed.
      last_round: where the runs ended.
    """
    late = sum(map(math.isinf, rounds))
    if not late:
        return format_measured("rounds", rounds)
    never = f"> {last_round} in {late} of {len(rounds)}"
    median = statistics.median(rounds)
    return never if math.isinf(median) else f"median {median:g}; {never}"
