"""Writes a table into a store: looks through it, decides what each column becomes, and encodes it piece by piece."""

import numpy as np

from datasets.client_source import TRAIN
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat
from datasets.example_store import LEFT_OUT, SPLIT_ORDER, Named, StoreWriter
from datasets.layouts import FEATURES, TOKENS, resolve_layout
from datasets.names import check_names
from datasets.npz import convert_examples
from datasets.stored_source import Description
from datasets.tables.features import MOST_CATEGORIES, Feature, choose_features, describe_features, note_features
from datasets.tables.labels import choose_labels
from datasets.tables.roles import Roles
from datasets.tables.scan import ColumnScan, TableScan, read_row_times, read_splits, scan_table
from datasets.tables.table import MOST_LISTED, Table, list_names, name_places

MOST_MEDIAN_VALUES = 2**22  # that a median is taken of; of more, evenly spaced ones
REFUSE, MEDIAN, DROP = "refuse", "median", "drop"


def write_table(table: Table, roles: Roles, options: DatasetOptions, writer: StoreWriter) -> Description:
    """Fills a store, and describes its rows.

    `more` is the layout of blocks. With windows, rows that are left out keep their place.

    Raises:
      DatasetError: a value is of no use; it names the file and the place.
    """
    table = table.keep_small()
    scan = scan_table(table, roles, MOST_CATEGORIES[options.categories])
    _check_missing(table, roles, scan, options.missing)
    labels = choose_labels(table, roles, scan, options.task)
    features = () if roles.block else choose_features(table, roles, scan, options.categories)
    layout = resolve_layout(options.layout, scan.block_shape, scan.block_dtype == "uint8") if roles.block else ""
    medians = _Medians(features if options.missing == MEDIAN else (), scan)
    num_dropped = 0
    for piece in table.read((*roles.used, roles.block) if roles.block else roles.used):
        if roles.block:
            block = piece.cells[roles.block].values
            if block.shape[1:] != scan.block_shape:
                raise DatasetError(
                    f"{piece.locate(0)}: column {roles.block!r} has examples of shape {block.shape[1:]}, expected "
                    f"{scan.block_shape} as the first has; images are brought to one size by --image_size"
                )
            x = convert_examples(str(piece.locate(0)), roles.block, block, layout)
        else:
            x = np.concatenate([feature.encode(piece.cells[feature.column]) for feature in features], axis=1)[
                ..., np.newaxis
            ]
        y = labels.encode([piece.cells[name] for name in roles.labels])
        is_dropped = np.zeros(piece.num_rows, bool)
        for name in roles.used if options.missing == DROP else ():
            is_dropped |= piece.cells[name].is_missing
        num_dropped += int(is_dropped.sum())
        splits = read_splits(piece, roles)
        medians.add(x[(splits == SPLIT_ORDER.index(TRAIN)) & ~is_dropped])
        splits[is_dropped] = SPLIT_ORDER.index(LEFT_OUT)
        kept = np.arange(piece.num_rows) if options.window else np.flatnonzero(~is_dropped)
        times = np.nan_to_num(read_row_times(piece, roles))[kept] if roles.time else None
        clients: str | Named = piece.client
        if roles.client:
            codes, names = piece.cells[roles.client].list_texts()
            used, codes = np.unique(codes[kept], return_inverse=True)
            clients = Named(codes, [names[code] for code in used])
            check_names(table.path, "client", clients.names)
        writer.append(x[kept], y[kept], clients, splits[kept], times)
    medians.fill(writer)
    return Description(
        ExampleFormat(
            x.shape[1:],
            x.dtype.name,
            labels.class_names,
            labels=labels.format,
            takes_tokens=layout == TOKENS,
            are_features=not roles.block or layout == FEATURES,
            feature_names=tuple(name for feature in features for name in feature.names),
        ),
        has_clients=bool(roles.client) or table.has_clients,
        is_ordered_by_time=bool(roles.time),
        num_dropped=num_dropped,
        reading="; ".join(filter(None, (labels.reading, describe_features(features)))),
        notes=(*labels.notes, *note_features(roles, scan, features)),
        more={"layout": layout},
    )


def _check_missing(table: Table, roles: Roles, scan: TableScan, missing: str) -> None:
    found = {name: column for name, column in scan.columns.items() if column.num_missing}
    if missing == MEDIAN:
        needed = (roles.client, *roles.labels, roles.time)
        found = {name: column for name, column in found.items() if name in needed}
    if not found or (missing == DROP and scan.num_incomplete < scan.num_rows):
        return
    if missing == DROP:
        counts = [f"{name} {column.num_missing:,}" for name, column in found.items()]
        raise DatasetError(
            f"{table.path}: each of the {scan.num_rows:,} rows lacks a value ({list_names(counts)}), so that "
            f"--missing=drop leaves none; leave such columns out by --feature_columns"
        )
    shown = dict(list(found.items())[:MOST_LISTED])
    places = dict(zip(shown, name_places(column.first_missing for column in shown.values()), strict=True))
    counts = [f"{name} {column.num_missing:,} ({places.get(name)})" for name, column in found.items()]
    ways = "--missing=drop leaves such rows out"
    if missing == REFUSE and not set(found) & {roles.client, *roles.labels, roles.time}:
        ways = f"--missing=median fills them, {ways}"
    raise DatasetError(
        f"{table.path}: missing values, by column with the first place, of {scan.num_rows:,} rows: "
        f"{list_names(counts)}; expected none; {ways}"
    )


class _Medians:
    """Medians of the columns that lack values, over rows of the train part; of very many, over evenly spaced ones."""

    def __init__(self, features: tuple[Feature, ...], scan: TableScan):
        self._columns: list[ColumnScan | None] = []
        for feature in features:
            column = scan.columns[feature.column]
            is_filled = column.num_missing > 0 and not feature.categories
            self._columns += [column if is_filled else None] * len(feature.names)
        self._values: dict[int, list[np.ndarray]] = {at: [] for at, each in enumerate(self._columns) if each}
        self._counts = dict.fromkeys(self._values, 0)
        self._steps = dict.fromkeys(self._values, 1)

    def add(self, x: np.ndarray) -> None:
        """Takes rows of the train part, shape (rows, features, 1)."""
        for at, values in self._values.items():
            new = x[:, at, 0]
            new = new[~np.isnan(new)][:: self._steps[at]]
            values.append(new)
            self._counts[at] += len(new)
            if self._counts[at] > MOST_MEDIAN_VALUES:
                values[:] = [np.concatenate(values)[::2]]
                self._counts[at], self._steps[at] = len(values[0]), 2 * self._steps[at]

    def fill(self, writer: StoreWriter) -> None:
        """Puts the medians in the place of what is missing."""
        fills = np.full((len(self._columns), 1), np.nan, np.float32)
        for at, values in self._values.items():
            all_values = np.concatenate(values)
            median = np.median(all_values) if len(all_values) else 0.0
            fills[at] = np.floor(median) if self._columns[at].num_booleans else median
        if self._values:
            writer.fill_missing(fills)
