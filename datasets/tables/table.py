"""A table, as its reader hands it over: columns by name, in pieces, each piece of one file."""

import dataclasses
import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from datasets.client_source import TEST, TRAIN, VALIDATION
from datasets.errors import DatasetError
from datasets.names import name_some
from datasets.tables.cells import Cells

# What parts of data are called, in names of files and folders and in columns.
SPLIT_NAMES = {
    **dict.fromkeys(("train", "training"), TRAIN),
    **dict.fromkeys(("test", "testing", "heldout"), TEST),
    **dict.fromkeys(("validation", "valid", "val", "dev"), VALIDATION),
}
MOST_KEPT_BYTES = 2**28  # of a table that is read twice
MOST_LISTED = 12


class ClientFile(NamedTuple):
    """A file of a folder, by what its name and its folders say.

    Attributes:
      path: of it.
      client: whose rows are in it; "" if the names do not say.
      split: which of these.
      is_own_name: whether `client` is the name of the file itself, which a column that names clients outweighs.
    """

    path: str
    client: str
    split: str
    is_own_name: bool = False


class Place(NamedTuple):
    """A row of a file. Where that is, in words, is looked for only when it is told, as the text of this.

    Attributes:
      name_rows: (rows of the file, from 0) -> row -> the file and the place in it, in words.
      row: of the file.
    """

    name_rows: Callable[[Collection[int]], Mapping[int, str]]
    row: int

    def __str__(self):
        return self.name_rows({self.row})[self.row]


def name_places(places: Iterable[Place]) -> list[str]:
    """The texts of several places, for which each file is gone through once."""
    places = list(places)
    rows: dict[Callable, set[int]] = {}
    for place in places:
        rows.setdefault(place.name_rows, set()).add(place.row)
    names = {name_rows: name_rows(found) for name_rows, found in rows.items()}
    return [names[place.name_rows][place.row] for place in places]


class Piece(NamedTuple):
    """Rows of one file.

    Attributes:
      cells: by the name of the column.
      client: whose they are, if the file says so; "" if a column does, or nothing.
      split: which they are, unless a column says so.
      name_rows: see `Place`.
      first_row: of the file.
    """

    cells: Mapping[str, Cells]
    client: str
    split: str
    name_rows: Callable[[Collection[int]], Mapping[int, str]]
    first_row: int

    @property
    def num_rows(self) -> int:
        """How many."""
        return len(next(iter(self.cells.values())).is_missing)

    def locate(self, row: int) -> Place:
        """The place of a row of the piece, from 0."""
        return Place(self.name_rows, self.first_row + row)


@dataclasses.dataclass(frozen=True)
class Table:
    """A table that is read in pieces, as often as wanted.

    Attributes:
      path: of the file or folder, for messages.
      paths: its files, for the digest, in a fixed order.
      columns: names in the order of the file, all different.
      blocks: those of them that hold arrays or images.
      read: (names of columns) -> its pieces in the order of the file, with at least these columns.
      form: in words, such as "comma-separated, UTF-8".
      class_names: of columns whose numbers the file gives names.
      has_clients: whether pieces say whose they are.
      ordered: of texts that the file puts in an order of its own.
    """

    path: str
    paths: tuple[str, ...]
    columns: tuple[str, ...]
    read: Callable[[tuple[str, ...]], Iterator[Piece]]
    form: str
    blocks: tuple[str, ...] = ()
    class_names: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    has_clients: bool = False
    ordered: tuple[str, ...] = ()

    def keep_small(self) -> "Table":
        """The same table, whose pieces stay in memory for another reading of the same columns if they are few."""
        kept: dict[tuple[str, ...], list[Piece]] = {}

        def read(names: tuple[str, ...]) -> Iterator[Piece]:
            if names in kept:
                yield from kept[names]
                return
            pieces, num_bytes = [], 0
            for piece in self.read(names):
                num_bytes += sum(cells.num_bytes for cells in piece.cells.values())
                if num_bytes <= MOST_KEPT_BYTES:
                    pieces.append(piece)
                yield piece
            if num_bytes <= MOST_KEPT_BYTES:
                kept[names] = pieces

        return dataclasses.replace(self, read=read)


def find_column(table: Table, name: str, flag: str) -> str:
    """The column of this name; spelled in other letters, it is found where only one is.

    Raises:
      DatasetError: there is none.
    """
    if name in table.columns:
        return name
    alike = [column for column in table.columns if simplify(column) == simplify(name)]
    if len(alike) == 1:
        return alike[0]
    near = difflib.get_close_matches(name, table.columns, n=1) or difflib.get_close_matches(
        name.lower(), [column.lower() for column in table.columns], n=1
    )
    hint = f"; did you mean {near[0]}?" if near else ""
    raise DatasetError(f"{table.path}: {flag}={name}: no such column, it has {list_names(table.columns)}{hint}")


def simplify(name: str) -> str:
    """A column's name without what people spell differently: case, blanks, hyphens and underscores."""
    return re.sub(r"[\W_]+", "", name.lower())


def count_rows(number: int) -> str:
    """So many rows, in words."""
    return "1 row" if number == 1 else f"{number:,} rows"


def list_names(names: tuple[str, ...] | list[str]) -> str:
    """The first names of a list, and how many more there are."""
    return name_some(names, MOST_LISTED)
