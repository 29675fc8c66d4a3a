"""A table, as its reader hands it over: columns by name, in pieces, each of one file; and what each column is for.

A column says whose a row is, what is predicted, from what, when, or which rows are the test. Flags say which; what they
leave open is guessed from names that mean one thing, and refused where two columns could be it.
"""

import dataclasses
import difflib
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from datasets.client_source import TEST, TRAIN, VALIDATION
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.names import check_names, name_some, shorten
from datasets.options import quote_name, split_names
from datasets.tables.cells import Cells

# What parts of data are called, in names of files and folders and in columns.
SPLIT_NAMES = {
    **dict.fromkeys(("train", "training"), TRAIN),
    **dict.fromkeys(("test", "testing", "heldout"), TEST),
    **dict.fromkeys(("validation", "valid", "val", "dev"), VALIDATION),
}
MOST_CACHED_BYTES = 2**28  # of a table that is read twice
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


class Location(NamedTuple):
    """A row of a file. Where that is, in words, is looked for only when an error says it, as the text of this.

    Attributes:
      name_rows: (rows of the file, from 0) -> row -> the file and the line or row, in words.
      row: of the file.
    """

    name_rows: Callable[[Collection[int]], Mapping[int, str]]
    row: int

    def __str__(self):
        return self.name_rows({self.row})[self.row]


def name_locations(locations: Iterable[Location]) -> list[str]:
    """The texts of several locations, for which each file is gone through once."""
    locations = list(locations)
    # To find a line, a file of text is read again from its start.
    rows: dict[Callable, set[int]] = {}
    for location in locations:
        rows.setdefault(location.name_rows, set()).add(location.row)
    names = {name_rows: name_rows(found) for name_rows, found in rows.items()}
    return [names[location.name_rows][location.row] for location in locations]


class Sighting(NamedTuple):
    """A value that an error or a note names: its first characters as they are written, and where it stands."""

    text: str
    where: Location


class Piece(NamedTuple):
    """Rows of one file.

    Attributes:
      cells: by the name of the column.
      client: whose they are, if the file says so; "" if a column does, or nothing.
      split: which they are, unless a column says so.
      name_rows: see `Location`.
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

    def locate(self, row: int) -> Location:
        """Where a row of the piece is, counted, from 0."""
        return Location(self.name_rows, self.first_row + row)

    def find_first(self, cells: Cells, is_it: np.ndarray) -> Sighting | None:
        """The first of the values of a column that are it, bool, shape (rows,); None if none is."""
        if not is_it.any():
            return None
        row = int(np.argmax(is_it))
        return Sighting(shorten(cells.get_text(row)), self.locate(row))


@dataclasses.dataclass(frozen=True)
class Table:
    """A table that is read in pieces, as often as wanted.

    Attributes:
      path: of the file or folder, for messages.
      paths: its files, for the digest, in a fixed order.
      columns: names in the order of the file, all different.
      blocks: those of them that hold arrays or images.
      read: (names of columns) -> its pieces in the order of the file, with at least these columns.
      dialect: in words, such as "comma-separated, UTF-8".
      class_names: of columns whose numbers the file gives names.
      has_clients: whether pieces say whose they are.
      ordered: of texts that the file puts in an order of its own.
    """

    path: str
    paths: tuple[str, ...]
    columns: tuple[str, ...]
    read: Callable[[tuple[str, ...]], Iterator[Piece]]
    dialect: str
    blocks: tuple[str, ...] = ()
    class_names: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    has_clients: bool = False
    ordered: tuple[str, ...] = ()

    def cache_small(self) -> "Table":
        """The same table, whose pieces stay in memory for another reading of the same columns if they are few."""
        cached: dict[tuple[str, ...], list[Piece]] = {}

        def read(names: tuple[str, ...]) -> Iterator[Piece]:
            if names in cached:
                yield from cached[names]
                return
            pieces, num_bytes = [], 0
            for piece in self.read(names):
                num_bytes += sum(cells.num_bytes for cells in piece.cells.values())
                if num_bytes <= MOST_CACHED_BYTES:
                    pieces.append(piece)
                yield piece
            # Only here all pieces are there: who stops early caches nothing.
            if num_bytes <= MOST_CACHED_BYTES:
                cached[names] = pieces

        return dataclasses.replace(self, read=read)


def check_same_columns(path: str, columns: Sequence[str], names: Sequence[str], first_path: str) -> None:
    """Raises DatasetError if a file lacks a column that is read, which the first file of its table has."""
    if missing := [name for name in names if name not in columns]:
        raise DatasetError(
            f"{path}: column {missing[0]!r} is missing, which {first_path} has; it has {list_names(columns)}"
        )


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
    # First as it is spelled: of two columns that differ in case, the one that is meant is the nearer.
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


def drop(name: str) -> dict[str, str]:
    """The flag, as `DatasetError.fix` has it, without a column."""
    return {"drop_columns": quote_name(name)}


def leave_out(name: str) -> str:
    """How to do without a column, in words."""
    return f"leave the column out by {shlex.quote(f'--drop_columns={quote_name(name)}')}"


def list_names(names: Sequence[str]) -> str:
    """The first names of a list, and how many more there are."""
    return name_some(names, MOST_LISTED)


_KINDS_OF_CLIENTS = (
    *("client", "user", "subject", "participant", "person", "patient", "device", "owner", "writer", "speaker"),
    *("household", "hospital", "site", "station", "sensor", "customer", "driver", "volunteer", "partition"),
)
CLIENT_NAMES = frozenset(name for kind in _KINDS_OF_CLIENTS for name in (kind, f"{kind}id", f"{kind}name", f"{kind}no"))
LABEL_NAMES = frozenset({"label", "labels", "target", "targets", "y", "class", "classlabel", "outcome", "labelid"})
TIME_NAMES = frozenset({"time", "timestamp", "datetime", "date", "ts", "unixtime", "epochtime"})
TEST_NAMES = frozenset({"istest", "test", "split", "subset"})
# What pandas writes an index as: the first column of a text file, one of this name in parquet.
FIRST_INDEX_NAMES, INDEX_NAME = frozenset({"", "unnamed0"}), "__index_level_0__"


_SINGLE = ("client", "time", "test", "weight", "text")  # roles of one column each
NO_COLUMN = "none"  # as the name of a column: there is none, whatever its name


@dataclasses.dataclass(frozen=True)
class Roles:
    """The columns of a table by what they are for; "" is none.

    Attributes:
      client: says whose a row is.
      labels: what is predicted, one or several.
      features: what is predicted from, in the order of the file or of the flag.
      time: the order of a client's rows.
      test: which rows are for the test.
      weight: how much each row's loss counts in training; it is never guessed.
      block: the one feature that holds arrays or images, or sentences; then `features` is that alone.
      guessed: which of the roles were guessed from the names.
      left_out: columns that are nothing.
      text: the block whose sentences become words; it is never guessed.
    """

    client: str
    labels: tuple[str, ...]
    features: tuple[str, ...]
    time: str
    test: str
    block: str
    guessed: frozenset[str]
    left_out: tuple[str, ...] = ()
    weight: str = ""
    text: str = ""

    @property
    def used(self) -> tuple[str, ...]:
        """All columns that something is read from, blocks left out."""
        others = (self.client, *self.labels, self.time, self.test, self.weight, *self.features)
        return tuple(dict.fromkeys(name for name in others if name and name != self.block))


def choose_roles(table: Table, options: DatasetOptions) -> Roles:
    """What each column is for.

    Raises:
      DatasetError: a column that is named is not there, has two uses, or none is found for the label.
    """
    check_names(table.path, "column", table.columns)
    given: dict[str, tuple[str, ...]] = {}  # flag -> the columns that it names
    refused = set()
    taken: dict[str, str] = {}  # name of a column -> the flag or the role that it is taken by
    for flag in (*(f"{role}_column" for role in _SINGLE), "label_column", "feature_columns", "drop_columns"):
        value = getattr(options, flag) or ""
        names = split_names(value)
        if flag.removesuffix("_column") in _SINGLE:
            # A table may have a column of that name, which is then meant.
            is_refused = value == NO_COLUMN and value not in table.columns
            refused |= {flag} if is_refused else set()
            names = (value,) if value and not is_refused else ()
        given[flag] = tuple(find_column(table, name, flag) for name in names)
        for name in given[flag]:
            if name in taken:
                other = f"in --{taken[name]} and in --{flag}" if taken[name] != flag else f"twice in --{flag}"
                raise DatasetError(f"{table.path}: column {name!r} stands {other}, expected one use of it")
            taken[name] = flag
    guessed = {}
    for role, names in (("label", LABEL_NAMES), ("client", CLIENT_NAMES), ("time", TIME_NAMES), ("test", TEST_NAMES)):
        flag = f"{role}_column"
        # Files that say whose they are need no column for it.
        if given[flag] or flag in refused or (role == "client" and table.has_clients):
            continue
        found = [name for name in table.columns if simplify(name) in names and name not in taken]
        if len(found) > 1:
            raise DatasetError(
                f"{table.path}: columns {list_names(found)} could each be meant by --{flag}, expected one; name it "
                f"by --{flag}" + ("" if role == "label" else f", or give --{flag}={NO_COLUMN}"),
                {flag: quote_name(found[0]) if role == "label" else found[0]},
            )
        if found:
            guessed[role] = found[0]
            taken[found[0]] = role
        elif role in ("label", "client"):
            _refuse_dropped(table, given["drop_columns"], role, names)
    chosen = {role: next(iter(given[f"{role}_column"]), guessed.get(role, "")) for role in _SINGLE}
    labels = given["label_column"] or ((guessed["label"],) if "label" in guessed else ())
    if not labels:
        # Else the error would ask for a label that the table has.
        if simplify(chosen["weight"]) in LABEL_NAMES:
            raise DatasetError(
                f"{table.path}: column {chosen['weight']!r} stands in --weight_column and is the label by its name, "
                f"expected one use of it; name the label by --label_column"
            )
        raise DatasetError(
            f"{table.path}: no column is called label, target, y or class; say by --label_column which of its columns "
            f"is to be predicted: {list_names(table.columns)}",
            {"label_column": ""},
        )
    if chosen["weight"] in table.blocks:
        raise DatasetError(
            f"{table.path}: weight column {chosen['weight']!r} holds arrays or images, expected a number in each row; "
            f"name another by --weight_column"
        )
    dropped = given["drop_columns"]
    others = {*labels, *dropped, *filter(None, chosen.values())}
    if chosen["text"]:
        # Named beside the text, features are wanted that no model would get.
        if given["feature_columns"]:
            raise DatasetError(
                f"{table.path}: text_column={chosen['text']}: its words alone are predicted from, expected no "
                f"--feature_columns beside it; leave one of them out"
            )
        features, block = (chosen["text"],), chosen["text"]
        left_out = tuple(name for name in table.columns if name not in others)
    else:
        features, block, left_out = _choose_features(table, given["feature_columns"], others)
    if dropped:
        left_out = ()  # as where the same features are named, so that the data are the same
    return Roles(labels=labels, features=features, block=block, guessed=frozenset(guessed), left_out=left_out, **chosen)


def _refuse_dropped(table: Table, dropped: Sequence[str], role: str, names: Collection[str]) -> None:
    """Raises DatasetError if the only column that has this role by its name is dropped."""
    if found := [name for name in dropped if simplify(name) in names]:
        fix = (
            f"give --{role}_column={NO_COLUMN} for no clients" if role == "client" else "name another by --label_column"
        )
        raise DatasetError(
            f"{table.path}: column {found[0]!r} stands in --drop_columns and is the {role} by its name, expected one "
            f"use of it; {fix}"
        )


def names_clients(columns: tuple[str, ...], options: DatasetOptions) -> bool:
    """Whether a column says whose a row is, as the flag or the names of the columns have it."""
    if options.client_column:
        return options.client_column != NO_COLUMN
    return any(simplify(name) in CLIENT_NAMES for name in columns)


def _choose_features(
    table: Table, given: tuple[str, ...], others: set[str]
) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """(features, the one of them that is a block, columns left out)."""
    rest = given or tuple(name for name in table.columns if name not in others)
    blocks = [name for name in rest if name in table.blocks]
    if blocks:
        if len(blocks) > 1 or (given and len(given) > 1):
            raise DatasetError(
                f"{table.path}: columns {list_names(blocks)} hold arrays or images, expected one such column alone to "
                f"predict from; name it by --feature_columns",
                {"feature_columns": quote_name(blocks[0])},
            )
        return (blocks[0],), blocks[0], tuple(name for name in rest if name != blocks[0])
    # An index that pandas wrote counts the rows: as a feature it would tell the order of the file.
    indices = {INDEX_NAME, *(name for name in table.columns[:1] if simplify(name) in FIRST_INDEX_NAMES)}
    numbers = () if given else tuple(name for name in rest if name in indices)
    features = tuple(name for name in rest if name not in numbers)
    if not features:
        raise DatasetError(f"{table.path}: no column is left to predict from; it has {list_names(table.columns)}")
    return features, "", numbers
