"""Columns of yes and no, or true and false, in files that say that they are text: 1 and 0, as in a CSV."""

import dataclasses
from collections.abc import Collection, Iterator

import numpy as np

from datasets.tables.cells import BOOLEAN_WORDS, STRING, TEXT, Cells
from datasets.tables.scan import TableScan
from datasets.tables.table import Piece, Roles, Table


def find_truths(roles: Roles, scan: TableScan) -> list[str]:
    """The features of typed text that hold nothing but words for yes and no."""
    texts = {
        name: column.texts
        for name, column in scan.columns.items()
        if name in roles.features and column.kind == STRING and column.texts
    }
    return [name for name, found in texts.items() if all(text.strip().lower() in BOOLEAN_WORDS for text in found)]


def read_truths(table: Table, names: Collection[str]) -> Table:
    """The same table, in which these columns are truth values."""

    def read(wanted: tuple[str, ...]) -> Iterator[Piece]:
        for piece in table.read(wanted):
            truths = {name: _read(piece.cells[name]) for name in names if name in piece.cells}
            yield piece._replace(cells={**piece.cells, **truths})

    return dataclasses.replace(table, read=read)


def _read(cells: Cells) -> Cells:
    codes, texts = cells.list_texts()
    numbers = np.array([BOOLEAN_WORDS.get(text.strip().lower(), np.nan) for text in texts])[codes]
    return dataclasses.replace(cells, kind=TEXT, numbers=numbers, is_boolean=~cells.is_missing, order=())
