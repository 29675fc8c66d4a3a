"""What each column of a table is predicted from: its kind, and what its values become.

Values that are missing are refused, left out or filled in, and said, so that a word is not lost unseen.
"""

import itertools
import math
import shlex
from collections.abc import Mapping
from typing import NamedTuple, NoReturn

import numpy as np

from datasets.dataset import DatasetOptions
from datasets.errors import Checks, DatasetError
from datasets.example_format import CategoryGroup
from datasets.names import check_names, describe_joined, find_joined, note_alike
from datasets.options import split_names
from datasets.tables.cells import DATE, STRING, TEXT, Cells, read_number
from datasets.tables.profile import NUMBER, tell_kind
from datasets.tables.scan import ColumnScan, TableScan, count_as_missing, is_free_text, is_text_column
from datasets.tables.sentences import advise_sentences, holds_sentences
from datasets.tables.table import (
    MOST_LISTED,
    Roles,
    Table,
    count_rows,
    drop,
    leave_out,
    list_names,
    name_locations,
)
from datasets.tables.written_numbers import is_odd, read_written

ONE_HOT, INDEX = "one_hot", "index"
MOST_CATEGORIES = {ONE_HOT: 100, INDEX: 10_000}
_FAR = 10  # times the largest number, from which on another one may stand for no value
_MOST_RARE = 20  # categories of a table that is too small to tell free text from others
_WRITE_NUMBERS = "write numbers alone, in one unit, and not as text"


class Feature(NamedTuple):
    """A column that is predicted from.

    Attributes:
      column: its name.
      categories: the texts that it can have, in order; () for numbers and truth values.
      is_one_hot: whether each category is a feature of its own, 1 where it is and 0 elsewhere; else their index is one.
      most_frequent: index of the most frequent category of the train part.
      joined: the category of each text that is another spelling of one.
    """

    column: str
    categories: tuple[str, ...] = ()
    is_one_hot: bool = False
    most_frequent: int = 0
    joined: Mapping[str, str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Of the features that it becomes."""
        return tuple(f"{self.column}={each}" for each in self.categories) if self.is_one_hot else (self.column,)

    def encode(self, cells: Cells) -> np.ndarray:
        """Float32, shape (rows, features); NaN for a number that is missing.

        A category that is missing becomes the most frequent one.
        """
        if not self.categories:
            return cells.numbers.astype(np.float32)[:, np.newaxis]
        order = {text: index for index, text in enumerate(self.categories)}
        order |= {text: order[keeper] for text, keeper in self.joined.items()}
        codes, texts = cells.list_texts()
        found = np.array([order.get(text, self.most_frequent) for text in texts], np.int64)[codes]
        if not self.is_one_hot:
            return found.astype(np.float32)[:, np.newaxis]
        return (found[:, np.newaxis] == np.arange(len(self.categories))).astype(np.float32)


def choose_features(table: Table, roles: Roles, scan: TableScan, options: DatasetOptions) -> tuple[Feature, ...]:
    """What each column becomes.

    Args:
      table: what was read.
      roles: of its columns.
      scan: of the whole table.
      options: `categories`, and whether spellings are joined.

    Raises:
      DatasetError: dates, texts among numbers, too many categories, or a number that float32 cannot hold.
    """
    checks = Checks()
    # What a person may want of sentences: beside numbers to leave them out, else to train on them.
    is_text_table = not any(tell_kind(scan.columns[name]) == NUMBER for name in roles.features)
    chosen = [
        checks.run(_choose_feature, table, name, scan.columns[name], options, is_text_table) for name in roles.features
    ]
    checks.end()
    return tuple(chosen)


def _choose_feature(
    table: Table, name: str, column: ColumnScan, options: DatasetOptions, is_text_table: bool
) -> Feature:
    most = MOST_CATEGORIES[options.categories]
    if column.num_missing == column.num_rows:
        raise DatasetError(
            f"{table.path}: column {name!r} has no value in any row, expected some; {leave_out(name)}", drop(name)
        )
    if column.kind == DATE or column.num_dates > 0.5 * max(1, column.num_texts):
        value, where = column.first_text or column.first_number
        raise DatasetError(
            f"{where}: column {name!r} holds dates ({value!r}), which are no feature; give "
            f"--time_column={name} to order a client's rows by it, or {leave_out(name)}",
            drop(name),
        )
    if column.first_endless:
        text, where = column.first_endless
        raise DatasetError(
            f"{where}: column {name!r} has {text}, expected a finite number, of at most 3.4e38", drop(name)
        )
    if not column.num_texts and column.kind != STRING:
        return Feature(name)
    text, where = column.first_text
    # A few texts among numbers are mistakes, and no categories.
    if not is_text_column(column) or (column.texts is None and column.num_numbers > column.num_texts):
        if text == name:
            raise DatasetError(
                f"{where}: the names of the columns stand here again, expected values; take the line out"
            )
        raise DatasetError(
            f"{where}: column {name!r} has {text!r}, expected a number as in other rows; leave the field empty if "
            f"the value is missing, or {leave_out(name)}",
            count_as_missing(column) or drop(name),
        )
    if holds_sentences(column):
        raise DatasetError(
            f"{where}: column {name!r} holds sentences ({text!r}), which are no categories; "
            f"{advise_sentences(name)}, or {leave_out(name)}",
            {"text_column": name} if is_text_table else drop(name),
        )
    joined = find_joined(list(column.texts or ()), column.texts or {}) if options.join_spellings else {}
    if column.texts is None or len(column.texts) - len(joined) > most:
        _refuse_categories(table, name, column, options)
    check_names(f"{table.path}: column {name!r}", "category", sorted(column.texts))
    counts = {text: 0 for text in column.sort_texts() if text not in joined}
    for text, count in column.texts.items():
        counts[joined.get(text, text)] += count
    # The first by name where several are as frequent, so that the order of the file does not matter.
    texts = tuple(counts)
    frequent = max(range(len(texts)), key=lambda at: (counts[texts[at]], -at))
    return Feature(name, texts, options.categories == ONE_HOT, frequent, joined)


def _refuse_categories(table: Table, name: str, column: ColumnScan, options: DatasetOptions) -> NoReturn:
    """Raises DatasetError: the texts of a column are too many for categories."""
    text, is_one_hot = column.first_text.text, options.categories == ONE_HOT
    found = f"{table.path}: column {name!r} has more than {MOST_CATEGORIES[options.categories]:,} different texts"
    found += f", such as {text!r}"
    if column.has_written or read_written(text) or is_odd(text):
        raise DatasetError(
            f"{found}, some of them numbers or ranges; {_WRITE_NUMBERS}, or {leave_out(name)}", drop(name)
        )
    if is_free_text(column):
        raise DatasetError(
            f"{found}: free text, names or ids, which are no categories; {leave_out(name)}, or make numbers of it",
            drop(name),
        )
    way = f"give --categories={INDEX} for up to {MOST_CATEGORIES[INDEX]:,}, or " * is_one_hot
    raise DatasetError(f"{found}, expected fewer categories; {way}{leave_out(name)}", drop(name))


def list_groups(features: tuple[Feature, ...]) -> tuple[CategoryGroup, ...]:
    """The columns of categories, with the indices of what they become; a row has one of the values each."""
    ends = itertools.accumulate(len(feature.names) for feature in features)
    return tuple(
        CategoryGroup(
            feature.column, tuple(range(end - len(feature.names), end)), feature.categories, not feature.is_one_hot
        )
        for feature, end in zip(features, ends, strict=True)
        if feature.categories
    )


def describe_features(features: tuple[Feature, ...]) -> str:
    """What columns of texts become, in words; "" if there are none."""
    of_texts, parts = [each for each in features if each.categories], []
    if of_texts:
        # All of them become the same, as `--categories` has it.
        what = "a feature for each category" if of_texts[0].is_one_hot else "the index of its category"
        parts.append(f"text as {what}: " + ", ".join(f"{each.column} ({len(each.categories)})" for each in of_texts))
    parts += [describe_joined(each.column, each.joined) for each in features if each.joined]
    return "; ".join(parts)


def note_features(roles: Roles, scan: TableScan, features: tuple[Feature, ...], missing_words: str) -> tuple[str, ...]:
    """A line each for columns that say nothing, or whose values may say something else; the words are the option's."""
    notes = []
    for feature in features:
        column, leave = scan.columns[feature.column], leave_out(feature.column)
        # Where these name a word among numbers, nothing more general is said of the numbers.
        of_words = _note_words(feature, column, missing_words)
        # Of many categories, one that is a bound or a range says that numbers were meant.
        odd = filter(is_odd, feature.categories) if len(feature.categories) > _MOST_RARE else ()
        is_constant = not column.num_booleans and column.lowest == column.highest
        is_constant = len(feature.categories) == 1 if feature.categories else is_constant
        if is_constant and scan.num_rows > 1:
            value = feature.categories[0] if feature.categories else f"{column.lowest:g}"
            notes.append(f"column {feature.column} is {value} in every row, which tells nothing; {leave}")
        elif not of_words and (number := next(itertools.chain(filter(read_written, feature.categories), odd), "")):
            notes.append(
                f"column {feature.column} holds text, numbers such as {number!r} too: each is a category; "
                f"{_WRITE_NUMBERS} if they are measurements"
            )
        elif len(feature.categories) > _MOST_RARE and is_free_text(column):
            notes.append(
                f"column {feature.column} has another text in nearly each row, free text, names or ids, which tells "
                f"nothing of new ones; {leave}"
            )
        elif not feature.categories and column.is_row_number and scan.num_rows > 2:
            notes.append(f"column {feature.column} counts the rows, which tells nothing of new ones; {leave}")
        elif not feature.categories and column.are_dates and column.num_numbers > 1:
            notes.append(
                f"the numbers of {feature.column} are dates, such as {column.first_number.text}, whose differences are "
                f"no days; write days or years as numbers, or {leave}"
            )
        notes += of_words
    if roles.block and roles.left_out:
        many = len(roles.left_out) > 1
        notes.append(f"column{'s' * many} {list_names(roles.left_out)} {'are' if many else 'is'} not used")
    elif roles.left_out:
        notes += [
            f"column {name or 'without a name'} is the index that pandas writes, and is left out"
            for name in roles.left_out
        ]
    return tuple(notes)


def _note_words(feature: Feature, column: ColumnScan, missing_words: str) -> list[str]:
    """What of a column's values may be meant otherwise."""
    notes, name = [], feature.column

    def name_missing(value: str) -> str:
        words = shlex.quote(",".join(filter(None, (missing_words, value))))
        return f"if it stands for a missing value, give --missing_words={words}"

    if feature.categories:
        counts = column.texts + column.test_texts
        notes += note_alike(f"categories of {name}", sorted(set(counts) - set(feature.joined)), counts, "rows")
        words = [
            text
            for text in column.texts
            if not any(math.isfinite(read_number(text.strip(), has_comma)) for has_comma in (False, True))
        ]
        num_decimals = sum("." in text or "," in text for text in column.texts)  # of text, 1 and 2 may be codes
        are_numbers = column.num_numbers > 1 if column.kind == TEXT else num_decimals > len(column.texts) / 2
        if len(words) == 1 and are_numbers and len(column.texts) > 3:
            notes.append(
                f"the numbers of {name} are categories, since {words[0]!r} stands among them in "
                f"{count_rows(counts[words[0]])}; {name_missing(words[0])}"
            )
        return notes
    if column.num_booleans and column.num_numbers and not 0 <= column.lowest <= column.highest <= 1:
        notes.append(
            f"among the numbers in {name} stands yes or no, true or false, in {count_rows(column.num_booleans)}, "
            f"which is taken as 1 or 0"
        )
    if len(column.placeholders) == 1 and np.isfinite(column.lowest_other):
        ((value, count),) = column.placeholders.items()
        lowest, highest = column.lowest_other, column.highest_other
        beside = f"never else {f'below {min(lowest, 0):g}' if value < 0 else f'above {highest:g}'}"
        is_far = count > 1 and abs(value) > _FAR * max(-lowest, highest)
        if is_far or (value < 0 <= lowest):
            notes.append(f"{name} is {value:.0f} in {count_rows(count)}, and {beside}; {name_missing(f'{value:.0f}')}")
    return notes


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
    words = "".join(f"; {each}" for each in note_missing(roles, scan, found, options))
    if missing == DROP:
        counts = [f"{name} {column.num_missing:,}" for name, column in found.items()]
        emptiest = max(found, key=lambda name: found[name].num_missing)
        raise DatasetError(
            f"{table.path}: each of the {scan.num_rows:,} rows lacks a value ({list_names(counts)}), so that "
            f"--missing=drop leaves none; leave such columns out by --drop_columns{words}",
            drop(emptiest) if emptiest in roles.features else {},
        )
    # To find a line, its file is read again: only for those that are listed.
    shown = dict(list(found.items())[:MOST_LISTED])
    rows = dict(zip(shown, name_locations(column.first_missing for column in shown.values()), strict=True))
    counts = [f"{name} {column.num_missing:,} ({rows.get(name)})" for name, column in found.items()]
    ways = "--missing=drop leaves such rows out"
    if missing == REFUSE and not set(found) & {roles.client, *roles.labels, roles.time, roles.weight}:
        ways = f"--missing=median fills them, {ways}"
    raise DatasetError(
        f"{table.path}: missing values, by column with the first place, of {count_rows(scan.num_rows)}: "
        f"{list_names(counts)}; expected none; {ways}{words}",
        {"missing": MEDIAN if MEDIAN in ways else DROP},
    )


def note_missing(
    roles: Roles, scan: TableScan, columns: Mapping[str, ColumnScan], options: DatasetOptions
) -> list[str]:
    """A line for each of `columns` in which a word that may be a value, of a class, client or category, is missing."""
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
