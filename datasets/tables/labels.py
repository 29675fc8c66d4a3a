"""The labels of a table: which task its label columns are for, and what each value becomes."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_format import (
    CLASSIFICATION,
    LABEL_KINDS,
    MULTI_LABEL,
    NEXT_TOKEN,
    REGRESSION,
    LabelFormat,
)
from datasets.names import check_names, describe_joined, find_joined, sort_key
from datasets.npz_labels import guess_task
from datasets.options import WRITTEN
from datasets.tables.cells import BOOLEAN_WORDS, TEXT, Cells, read_number
from datasets.tables.scan import MOST_DIFFERENT, ColumnScan, TableScan, count_as_missing, is_text_column
from datasets.tables.table import Roles, Table, count_rows

_RENAME = "or name another column by --label_column"


class TableLabels(NamedTuple):
    """How labels of a table are read.

    Attributes:
      format: what they are; a regression's offset and scale are not known yet.
      class_names: one a label; of multi_label and of a regression of several, the columns; of one number, none.
      numbers: of classes, the number that stands for each, in order; () if texts do.
      index_by_text: of classes, the class of each text that stands for one, several where their spellings are
        joined; empty if numbers do.
      reading: the task in words, and why, if it is not classification; else "".
      notes: what may have been meant otherwise.
    """

    format: LabelFormat
    class_names: tuple[str, ...]
    numbers: tuple[float, ...] = ()
    index_by_text: Mapping[str, int] = {}
    reading: str = ""
    notes: tuple[str, ...] = ()

    def encode(self, cells: list[Cells]) -> np.ndarray:
        """Labels as they are stored, shape (rows, ...); of rows that lack one it is 0.

        Args:
          cells: of each label column.
        """
        if self.format.is_by_class and len(cells) > 1:
            return np.argmax(np.stack([each.numbers for each in cells], axis=1) == 1, axis=1).astype(self.format.dtype)
        if self.index_by_text:
            codes, texts = cells[0].list_texts()
            return np.array([self.index_by_text.get(text, 0) for text in texts], self.format.dtype)[codes]
        if self.format.is_by_class:
            found = np.searchsorted(np.array(self.numbers), np.nan_to_num(cells[0].numbers))
            # A label that is missing is 0 here, which may be above all classes.
            return np.minimum(found, len(self.numbers) - 1).astype(self.format.dtype)
        columns = [np.nan_to_num(each.numbers).astype(self.format.dtype) for each in cells]
        return np.stack(columns, axis=1) if self.format.shape else columns[0]


def choose_labels(table: Table, roles: Roles, scan: TableScan, options: DatasetOptions) -> TableLabels:
    """What the label columns are.

    Args:
      table: what was read.
      roles: of its columns.
      scan: of the whole table.
      options: `task`, "" to tell it from the values, and how texts become classes.

    Raises:
      DatasetError: the values do not fit the task, or are of no use as labels.
    """
    task, reason = options.task, ""
    if not task:
        task, reason = guess_table_task(roles, scan)
    if task == NEXT_TOKEN:
        raise DatasetError(f"{table.path}: task={task} is for text, expected another for a label in a column")
    needs_numbers = task in (REGRESSION, MULTI_LABEL) or len(roles.labels) > 1
    for name in roles.labels:
        column = scan.columns[name]
        if column.first_text and (needs_numbers or not is_text_column(column)):
            text, where = column.first_text
            what = "the name of the column again; take that line out" if text == name else "a number as in other rows"
            raise DatasetError(
                f"{where}: label column {name!r} has {text!r}, expected {what}, {_RENAME}",
                count_as_missing(column),
            )
        if column.first_endless:
            value, where = column.first_endless
            raise DatasetError(f"{where}: label column {name!r} has {value}, expected a finite number")
    reading = (
        "" if task == CLASSIFICATION else f"task {LABEL_KINDS[task].title}" + (f", since {reason}" if reason else "")
    )
    if len(roles.labels) == 1 and task == MULTI_LABEL:
        raise DatasetError(
            f"{table.path}: --task={task} needs several columns of 0 and 1, expected --label_column=<a,b,...>"
        )
    if len(roles.labels) > 1:
        labels = _choose_several(table, roles, scan, task)
    elif task == REGRESSION:
        labels = TableLabels(LabelFormat(REGRESSION, (), 1), ())
    else:
        labels = _choose_classes(table, roles.labels[0], scan.columns[roles.labels[0]], task, options)
    if labels.format.is_by_class:
        labels.format.check_names(f"{table.path}: label column {roles.labels[0]!r}", labels.class_names)
    mixed = [
        f"the labels in {name} are numbers, but yes or no, true or false, stands among them in "
        f"{count_rows(column.num_booleans)}, which is taken as 1 or 0"
        for name, column in scan.columns.items()
        if name in roles.labels and not labels.index_by_text and column.kind == TEXT
        if column.num_numbers and column.num_booleans
    ]
    return labels._replace(reading="; ".join(filter(None, (reading, labels.reading))), notes=(*labels.notes, *mixed))


def guess_table_task(roles: Roles, scan: TableScan) -> tuple[str, str]:
    """(task, what tells it) from what was found in the label columns."""
    if len(roles.labels) > 1:
        if scan.most_ones < 0 or any(is_text_column(scan.columns[name]) for name in roles.labels):
            return REGRESSION, "several columns are to be predicted"
        if (scan.most_ones, scan.fewest_ones) == (1, 1):
            return CLASSIFICATION, ""
        return MULTI_LABEL, "several columns of 0 and 1 are to be predicted"
    column = scan.columns[roles.labels[0]]
    if is_text_column(column) or not column.num_numbers:
        return CLASSIFICATION, ""
    if column.numbers is None:
        kind = "whole" if column.is_whole else "float"
        return REGRESSION, f"{roles.labels[0]} has more than {MOST_DIFFERENT:,} different {kind} numbers"
    task, reason = guess_task(np.array(sorted(column.numbers)))
    # The reason is in words for an array, which is called y.
    return task, reason.replace("y has", f"{roles.labels[0]} has", 1)


def _choose_several(table: Table, roles: Roles, scan: TableScan, task: str) -> TableLabels:
    names, count = roles.labels, len(roles.labels)
    if task == REGRESSION:
        return TableLabels(LabelFormat(REGRESSION, (count,), count), names)
    if scan.most_ones < 0:
        raise DatasetError(
            f"{table.path}: label columns {', '.join(names)} hold other numbers than 0 and 1, expected these for "
            f"--task={task}; --task={REGRESSION} predicts numbers"
        )
    if task == MULTI_LABEL:
        return TableLabels(LabelFormat(MULTI_LABEL, (count,), count), names)
    if (scan.most_ones, scan.fewest_ones) != (1, 1):
        raise DatasetError(
            f"{table.path}: label columns {', '.join(names)} have rows with {scan.fewest_ones} to {scan.most_ones} "
            f"ones, expected one in each for --task={task}; --task={MULTI_LABEL} predicts several"
        )
    return TableLabels(LabelFormat(task), names)


def _choose_classes(table: Table, name: str, column: ColumnScan, task: str, options: DatasetOptions) -> TableLabels:
    given = table.class_names.get(name, ())
    values = column.texts if is_text_column(column) else column.numbers
    if values is None:
        raise DatasetError(
            f"{table.path}: label column {name!r} has more than {MOST_DIFFERENT:,} different values, expected classes; "
            f"give --task={REGRESSION} for measurements, {_RENAME}",
            {} if is_text_column(column) else {"task": REGRESSION},
        )
    if is_text_column(column):
        check_names(f"{table.path}: label column {name!r}", "class", sorted(values))
        joined = find_joined(list(values), values) if options.join_spellings else {}
        texts = tuple(text for text in column.sort_texts() if text not in joined)
        order = {text: index for index, text in enumerate(texts)}
        index_by_text = {text: order[joined.get(text, text)] for text in values}
        return TableLabels(LabelFormat(task), texts, index_by_text=index_by_text, reading=describe_joined(name, joined))
    # Yes and no among numbers are 1 and 0.
    numbers = sorted(values | ({0.0, 1.0} if column.num_booleans else set()))
    if max(abs(numbers[0]), abs(numbers[-1])) >= 2**53:
        raise DatasetError(
            f"{table.path}: label column {name!r} holds whole numbers from 2**53 on, such as {numbers[-1]:.0f}, "
            f"of which neighbours could not be told apart; expected names of classes: write them as texts, {_RENAME}"
        )
    if given:
        if not column.is_whole or numbers[0] < 0 or numbers[-1] >= len(given):
            raise DatasetError(
                f"{table.path}: label column {name!r} holds {numbers[0]:g}..{numbers[-1]:g}, expected "
                f"0..{len(given) - 1} for its {len(given)} names; -1 stands for examples without a label, "
                f"which cannot be learned from"
            )
        return TableLabels(LabelFormat(task), given, numbers=tuple(map(float, range(len(given)))))
    if not column.is_whole:
        raise DatasetError(
            f"{table.path}: label column {name!r} holds numbers that are not whole, expected classes for "
            f"--task={task}; give --task={REGRESSION}, {_RENAME}",
            {"task": REGRESSION},
        )
    is_truth = column.num_booleans and set(numbers) <= {0.0, 1.0}
    if is_truth and column.kind == TEXT and column.texts and options.truth_names == WRITTEN:
        return _choose_truths(name, column.texts, task)
    names = ("false", "true") if is_truth else tuple(f"{number:.0f}" for number in numbers)
    notes = ()
    if not np.array_equal(numbers, np.arange(len(numbers))):
        notes = (
            f"the labels in {name} are {numbers[0]:.0f}..{numbers[-1]:.0f}, {len(numbers)} different numbers; each is "
            f"a class, and its number the name; if they are measurements, give --task={REGRESSION}",
        )
    return TableLabels(LabelFormat(task), names, numbers=tuple(numbers), notes=notes)


def _choose_truths(name: str, counts: Counter[str], task: str) -> TableLabels:
    """Two classes, false before true, whatever words are written for them; the most frequent words are their names."""
    # A comma may be the decimal mark of the file.
    truths = {text: BOOLEAN_WORDS.get(text.lower(), read_number(text.strip().replace(",", "."))) for text in counts}
    groups = [
        sorted(
            (text for text, truth in truths.items() if truth == each),
            key=lambda text: (text.lower() not in BOOLEAN_WORDS, -counts[text], sort_key(text)),
        )
        for each in sorted(set(truths.values()))
    ]
    names = tuple(group[0] for group in groups)
    index_by_text = {text: index for index, group in enumerate(groups) for text in group}
    notes = tuple(
        f"the labels in {name} are written in several ways: "
        + " = ".join(f"{text!r} ({counts[text]:,})" for text in group)
        + f"; all are taken as {group[0]!r}"
        for group in groups
        if len(group) > 1
    )
    return TableLabels(LabelFormat(task), names, index_by_text=index_by_text, notes=notes)
