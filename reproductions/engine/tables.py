"""Tables of reports: the runs as one pandas frame, how a cell of some of its rows looks, and tables as Markdown.

A frame has a row a run. A group of runs is a part of it, and what runs of the same seed are compared by is a series by
seed, so that pandas pairs them.

What a reader needs beside a table is in the paper's `tables.toml`: `legend` for all, a heading and a note for each. A
note has its numbers as `{name}`.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, NamedTuple

import pandas as pd

from launch.pages.comparison.seed_statistics import compare_by_seed, compute_deviation, compute_mean
from launch.runs.columns import TEST_ACCURACY
from launch.runs.run_records import RunRecord
from reproductions.engine.collection import PERCENT_METRICS, PRESETS, Place, SeedResults, read_toml


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
    """A table as Markdown, in which a mean and its deviation stay on one line."""
    lines = [table.columns, ["---"] * len(table.columns), *table.rows]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def spread(table: Table, keys: Sequence[str], column: str, value: str, names: Mapping[str, str]) -> Table:
    """A table turned: a row for each of its places, and a column for each name of one of its columns.

    Args:
      table: any.
      keys: its columns that tell a place.
      column: whose cells become columns.
      value: the column of the cells.
      names: the new columns, by cells of `column`; rows with others are left out, and what is missing is empty.
    """
    places: dict[tuple[str, ...], dict[str, str]] = {}
    for record in table.records:
        if record[column] in names:
            place = tuple(record[key] for key in keys)
            places.setdefault(place, {})[names[record[column]]] = record[value]
    columns = list(dict.fromkeys(names.values()))
    rows = [[*place, *(cells.get(name, "") for name in columns)] for place, cells in places.items()]
    return Table([*keys, *columns], rows)


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


EXPERIMENT, SEED = "experiment", "seed"


def make_frame(
    runs: Iterable[RunRecord], measure: Callable[[RunRecord], Mapping[str, Any]], columns: Iterable[str] = ()
) -> pd.DataFrame:
    """A row for each run in which something is measured: its experiment, its seed, and what `measure` finds.

    Args:
      runs: any, each experiment and seed once.
      measure: run -> what is measured in it, by name.
      columns: names that the frame has even where no run has them.
    """
    rows = [{EXPERIMENT: run.experiment, SEED: run.flags[SEED], **found} for run in runs if (found := measure(run))]
    # Columns that no run has are there as well, so that tables of no runs need no code of their own.
    found = dict.fromkeys((EXPERIMENT, SEED, *columns, *(name for row in rows for name in row)))
    return pd.DataFrame(rows, columns=list(found))


def select(frame: pd.DataFrame, **values: str) -> pd.DataFrame:
    """The rows that have these values, by column."""
    return frame[(frame[list(values)] == pd.Series(values)).all(axis=1)]


def make_table(frame: pd.DataFrame) -> Table:
    """A frame of cells that are text already."""
    return Table(list(frame.columns), frame.astype(str).to_numpy().tolist())


def list_results(frame: pd.DataFrame, round_num: int, presets: Iterable[str] = PRESETS) -> SeedResults:
    """The numbers of a frame as results after a round, by preset, cell and seed.

    Args:
      frame: a row a run, with the columns of a `Place`; each further column of numbers is a metric.
      round_num: of the cells.
      presets: that the results have even without runs.
    """
    results: SeedResults = {preset: {} for preset in presets}
    metrics = frame.select_dtypes("number").columns.difference([SEED, *Place._fields], sort=False)
    for place, runs in frame.groupby(list(Place._fields)):
        for metric, values in runs.set_index(SEED)[metrics].items():
            if by_seed := values.dropna().to_dict():
                results[place[0]][Place(*place).make_cell(metric, round_num)] = by_seed
    return results


def show(values: Iterable[float], metric: str = TEST_ACCURACY, absent: str = "not run") -> str:
    """Mean and deviation over the seeds, accuracies in per cent: "74.12 ± 1.03"; NaN and None were not measured."""
    return format_measured(metric, [value for value in values if pd.notna(value)], absent)


def show_range(numbers: Iterable[float]) -> str:
    """The smallest and the largest: "3 to 5", "3" if they are the same, "" without any."""
    ordered = sorted(numbers)
    return " to ".join(f"{number:g}" for number in dict.fromkeys((ordered[0], ordered[-1]))) if ordered else ""


def count(*results: Sized) -> str:
    """How many seeds results have; those without any do not count."""
    return show_range(filter(None, map(len, results))) or "0"


def show_difference(first: pd.Series, second: pd.Series) -> list[str]:
    """The first minus the second in points, how many seeds have both, and win, tie or loss."""
    difference = compare_by_seed(first, second)
    return [difference.format(), *([str(difference.count), difference.verdict] if difference.count else ["", ""])]


def cross(*axes: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """(names, titles) of each combination of the axes, the first outermost."""
    for items in itertools.product(*(axis.items() for axis in axes)):
        names, titles = zip(*items, strict=True)
        yield names, list(titles)


def describe(paper: str, tables: Mapping[str, Table], **numbers: object) -> dict[str, Section]:
    """Tables with their headings and notes, by name.

    Args:
      paper: its folder.
      tables: by name.
      numbers: what the notes say as `{name}`.
    """
    texts = {name: read_toml(paper, "tables.toml")[name] for name in tables}
    notes = {name: each.get("note", "").strip().format(**numbers) for name, each in texts.items()}
    return {name: Section(texts[name]["heading"], table, notes[name]) for name, table in tables.items()}
