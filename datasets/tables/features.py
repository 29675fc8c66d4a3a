"""The features of a table: which kind each column is, and what its values become."""

from typing import NamedTuple

import numpy as np

from datasets.errors import DatasetError
from datasets.names import check_names
from datasets.tables.cells import DATE, STRING, Cells
from datasets.tables.roles import Roles
from datasets.tables.scan import TableScan, is_text_column
from datasets.tables.table import Table

ONE_HOT, INDEX = "one_hot", "index"
MOST_CATEGORIES = {ONE_HOT: 100, INDEX: 10_000}
_LEAVE_OUT = "leave the column out by --feature_columns"


class Feature(NamedTuple):
    """A column that is predicted from.

    Attributes:
      column: its name.
      categories: the texts that it can have, in order; () for numbers and truth values.
      is_one_hot: whether each category is a feature of its own, 1 where it is and 0 elsewhere; else their index is one.
      most_frequent: index of the most frequent category of the train part.
    """

    column: str
    categories: tuple[str, ...] = ()
    is_one_hot: bool = False
    most_frequent: int = 0

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
        codes, texts = cells.list_texts()
        found = np.array([order.get(text, self.most_frequent) for text in texts], np.int64)[codes]
        if not self.is_one_hot:
            return found.astype(np.float32)[:, np.newaxis]
        return (found[:, np.newaxis] == np.arange(len(self.categories))).astype(np.float32)


def choose_features(table: Table, roles: Roles, scan: TableScan, categories: str) -> tuple[Feature, ...]:
    """What each column becomes.

    Args:
      table: what was read.
      roles: of its columns.
      scan: of the whole table.
      categories: "one_hot" or "index".

    Raises:
      DatasetError: dates, texts among numbers, too many categories, or a number that float32 cannot hold.
    """
    most, chosen = MOST_CATEGORIES[categories], []
    for name in roles.features:
        column = scan.columns[name]
        if column.num_missing == column.num_rows:
            raise DatasetError(f"{table.path}: column {name!r} has no value in any row, expected some; {_LEAVE_OUT}")
        text, where = column.first_text
        if column.form == DATE or column.num_dates > 0.5 * max(1, column.num_texts):
            value, where = column.first_text if where else column.first_number
            raise DatasetError(
                f"{where or table.path}: column {name!r} holds dates ({value!r}), which are no feature; give "
                f"--time_column={name} to order a client's rows by it, or {_LEAVE_OUT}"
            )
        if column.first_endless[1]:
            raise DatasetError(
                f"{column.first_endless[1]}: column {name!r} has {column.first_endless[0]}, expected a finite number, "
                f"of at most 3.4e38"
            )
        if not column.num_texts and column.form != STRING:
            chosen.append(Feature(name))
            continue
        if not is_text_column(column) or (column.texts is None and column.num_numbers > column.num_texts):
            if text == name:
                raise DatasetError(
                    f"{where}: the names of the columns stand here again, expected values; take the line out"
                )
            raise DatasetError(
                f"{where}: column {name!r} has {text!r}, expected a number as in other rows; leave the field empty if "
                f"the value is missing, or {_LEAVE_OUT}"
            )
        if column.texts is None:
            way = f"give --categories={INDEX} for up to {MOST_CATEGORIES[INDEX]:,}, or " * (categories == ONE_HOT)
            raise DatasetError(
                f"{table.path}: column {name!r} has more than {most:,} different texts, such as {text!r}, expected "
                f"fewer categories; {way}{_LEAVE_OUT}"
            )
        texts = column.sort_texts()
        check_names(f"{table.path}: column {name!r}", "category", texts)
        # The first by name where several are as frequent, so that the order of the file does not matter.
        frequent = max(range(len(texts)), key=lambda place: (column.texts[texts[place]], -place))
        chosen.append(Feature(name, texts, categories == ONE_HOT, frequent))
    return tuple(chosen)


def describe_features(features: tuple[Feature, ...]) -> str:
    """What columns of texts become, in words; "" if there are none."""
    one_hot = [f"{each.column} ({len(each.categories)})" for each in features if each.is_one_hot]
    indexed = [
        f"{each.column} ({len(each.categories)})" for each in features if each.categories and not each.is_one_hot
    ]
    parts = []
    if one_hot:
        parts.append(f"text as a feature for each category: {', '.join(one_hot)}")
    if indexed:
        parts.append(f"text as the index of its category: {', '.join(indexed)}")
    return "; ".join(parts)


def note_features(roles: Roles, scan: TableScan, features: tuple[Feature, ...]) -> tuple[str, ...]:
    """A line each for columns that say nothing."""
    notes = []
    for feature in features:
        column = scan.columns[feature.column]
        is_constant = not column.num_booleans and column.lowest == column.highest
        is_constant = len(feature.categories) == 1 if feature.categories else is_constant
        if is_constant and scan.num_rows > 1:
            value = feature.categories[0] if feature.categories else f"{column.lowest:g}"
            notes.append(f"column {feature.column} is {value} in every row, which tells nothing; {_LEAVE_OUT}")
        elif not feature.categories and column.is_row_number and scan.num_rows > 2:
            notes.append(f"column {feature.column} counts the rows, which tells nothing of new ones; {_LEAVE_OUT}")
    notes += [
        f"column {name} is not used"
        if roles.block
        else f"column {name or 'without a name'} is the index that pandas writes, and is left out"
        for name in roles.left_out
    ]
    return tuple(notes)
