"""Values of a table that are missing: refused, left out or filled in, and said, so that a word is not lost unseen."""

import shlex

from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.tables.features import Feature
from datasets.tables.options import split_names
from datasets.tables.roles import Roles
from datasets.tables.scan import ColumnScan, TableScan, is_text_column
from datasets.tables.table import MOST_LISTED, Table, count_rows, list_names, name_places

REFUSE, MEDIAN, DROP = "refuse", "median", "drop"
_MOST_WORDS = 5


def check_missing(table: Table, roles: Roles, scan: TableScan, options: DatasetOptions) -> None:
    """Raises DatasetError if values are missing that `--missing` neither fills in nor leaves out."""
    missing = options.missing
    found = {name: column for name, column in scan.columns.items() if column.num_missing}
    if missing == MEDIAN:
        needed = (roles.client, *roles.labels, roles.time, roles.weight)
        found = {name: column for name, column in found.items() if name in needed}
    if not found or (missing == DROP and scan.num_incomplete < scan.num_rows):
        return
    words = "".join(f"; {each}" for each in _explain_words(roles, scan, found, options))
    if missing == DROP:
        counts = [f"{name} {column.num_missing:,}" for name, column in found.items()]
        raise DatasetError(
            f"{table.path}: each of the {scan.num_rows:,} rows lacks a value ({list_names(counts)}), so that "
            f"--missing=drop leaves none; leave such columns out by --feature_columns{words}"
        )
    shown = dict(list(found.items())[:MOST_LISTED])
    places = dict(zip(shown, name_places(column.first_missing for column in shown.values()), strict=True))
    counts = [f"{name} {column.num_missing:,} ({places.get(name)})" for name, column in found.items()]
    ways = "--missing=drop leaves such rows out"
    if missing == REFUSE and not set(found) & {roles.client, *roles.labels, roles.time, roles.weight}:
        ways = f"--missing=median fills them, {ways}"
    raise DatasetError(
        f"{table.path}: missing values, by column with the first place, of {scan.num_rows:,} rows: "
        f"{list_names(counts)}; expected none; {ways}{words}"
    )


def note_missing(roles: Roles, scan: TableScan, options: DatasetOptions) -> tuple[str, ...]:
    """A line for each column in which a word that may be a value is taken as missing."""
    return tuple(_explain_words(roles, scan, scan.columns, options))


def _explain_words(roles: Roles, scan: TableScan, columns: dict[str, ColumnScan], options: DatasetOptions) -> list[str]:
    """What to do if a word in one of `columns` is a value: it can be one in classes, clients and categories."""
    lines = []
    for name, column in columns.items():
        words = column.missing_words.most_common(_MOST_WORDS)
        if not words or not (
            name in (roles.client, *roles.labels) or (name in roles.features and is_text_column(column))
        ):
            continue
        are_values = {word.lower() for word in column.missing_words}
        rest = ",".join(word for word in split_names(options.missing_words) if word.lower() not in are_values)
        found = ", ".join(f"{word!r} ({count_rows(count)})" for word, count in words)
        fix = f"give --missing_words={shlex.quote(rest)}"
        if of_numbers := _find_numbers(scan.columns, are_values):
            fix = f"write it there in another way, since {of_numbers} has it among numbers"
        lines.append(f"in column {name} {found} is taken as missing; if it is a value, {fix}")
    return lines


def _find_numbers(columns: dict[str, ColumnScan], words: set[str]) -> str:
    """A column of numbers in which some of the words, in small letters, are: there they are missing; "" for none."""
    for name, column in columns.items():
        if (
            column.num_numbers
            and not is_text_column(column)
            and words & {word.lower() for word in column.missing_words}
        ):
            return name
    return ""


def count_filled(scan: TableScan, features: tuple[Feature, ...]) -> dict[str, int]:
    """How many values of each column of features are filled in."""
    columns = {feature.column: scan.columns[feature.column] for feature in features}
    return {name: column.num_missing for name, column in columns.items() if column.num_missing}
