"""Writes a table into a store: looks through it, decides what each column becomes, and encodes it piece by piece."""

from collections import Counter

import numpy as np

from datasets.client_source import TEST, TRAIN
from datasets.data_notes import note_layout
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat
from datasets.example_store import LEFT_OUT, SPLIT_ORDER, Named, StoreWriter
from datasets.layouts import FEATURES, TOKENS, resolve_layout
from datasets.names import check_names
from datasets.npz import convert_examples
from datasets.spellings import describe_joined, find_kept
from datasets.stored_source import Description
from datasets.tables.features import (
    INDEX,
    MOST_CATEGORIES,
    Feature,
    choose_features,
    describe_features,
    list_groups,
    note_features,
)
from datasets.tables.labels import choose_labels
from datasets.tables.missing import DROP, MEDIAN, check_missing, count_filled, note_missing
from datasets.tables.number_forms import describe_forms, note_numbers, scan_numbers
from datasets.tables.roles import Roles
from datasets.tables.scan import (
    ColumnScan,
    TableScan,
    ignore_test_weights,
    read_row_times,
    read_row_weights,
    read_splits,
)
from datasets.tables.table import Table

MOST_MEDIAN_VALUES = 2**22  # that a median is taken of; of more, evenly spaced ones
NUMBERS = "numbers"  # the key of the forms of columns in `Description.more`


def write_table(table: Table, roles: Roles, options: DatasetOptions, writer: StoreWriter) -> Description:
    """Fills a store, and describes its rows.

    `more` is the layout of blocks. With windows, rows that are left out keep their place.

    Raises:
      DatasetError: a value is of no use; it names the file and the place.
    """
    most = MOST_CATEGORIES[INDEX if options.join_spellings else options.categories]  # before spellings are joined
    table, scan, forms = scan_numbers(table.keep_small(), roles, options, most)
    check_missing(table, roles, scan, options)
    labels = choose_labels(table, roles, scan, options)
    features = () if roles.block else choose_features(table, roles, scan, options)
    kept_clients = join_clients(table, roles) if options.join_spellings else {}
    layout = resolve_layout(options.layout, scan.block_shape, scan.block_dtype == "uint8") if roles.block else ""
    medians = _Medians(features if options.missing == MEDIAN else (), scan)
    num_dropped = 0
    for read in table.read((*roles.used, roles.block) if roles.block else roles.used):
        splits = read_splits(read, roles)
        piece = ignore_test_weights(read, roles, splits == SPLIT_ORDER.index(TEST))
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
        medians.add(x[(splits == SPLIT_ORDER.index(TRAIN)) & ~is_dropped])
        splits[is_dropped] = SPLIT_ORDER.index(LEFT_OUT)
        kept = np.arange(piece.num_rows) if options.window else np.flatnonzero(~is_dropped)
        times = np.nan_to_num(read_row_times(piece, roles, scan.time_form))[kept] if roles.time else None
        weights = read_row_weights(piece, roles)[kept] if roles.weight else None
        clients: str | Named = kept_clients.get(piece.client, piece.client)
        if roles.client:
            codes, names = piece.cells[roles.client].list_texts()
            used, codes = np.unique(codes[kept], return_inverse=True)
            clients = Named(codes, [kept_clients.get(names[code], names[code]) for code in used])
            check_names(table.path, "client", clients.names)
        writer.append(x[kept], y[kept], clients, splits[kept], times, weights)
    medians.fill(writer)
    groups = list_groups(features)
    return Description(
        ExampleFormat(
            x.shape[1:],
            x.dtype.name,
            labels.class_names,
            labels=labels.format,
            takes_tokens=layout == TOKENS,
            are_features=not roles.block or layout == FEATURES,
            feature_names=tuple(name for feature in features for name in feature.names),
            categories=tuple(place for group in groups for place in group.places),
            groups=groups,
        ),
        has_clients=bool(roles.client) or table.has_clients,
        is_ordered_by_time=bool(roles.time),
        num_dropped=num_dropped,
        reading="; ".join(
            filter(
                None,
                (
                    labels.reading,
                    describe_joined("clients", kept_clients),
                    describe_features(features),
                    describe_forms(forms),
                    scan.time_form.reading,
                ),
            )
        ),
        notes=(
            *labels.notes,
            *(note_layout(options.layout, scan.block_shape, scan.block_dtype == "uint8") if roles.block else ()),
            *note_missing(roles, scan, options),
            *note_numbers(roles, scan, forms, options),
            *note_features(roles, scan, features, options.missing_words),
            *scan.time_form.notes,
        ),
        filled=count_filled(scan, features) if options.missing == MEDIAN else {},
        more={"layout": layout, NUMBERS: {name: list(form) for name, form in forms.items()}},
    )


def join_clients(table: Table, roles: Roles) -> dict[str, str]:
    """Each client that is another one but for its spelling, and the one whose name is kept; reads the table once."""
    counts: Counter[str] = Counter()
    for piece in table.read((roles.client,) if roles.client else roles.labels):
        if not roles.client:
            counts[piece.client] += piece.num_rows
            continue
        codes, names = piece.cells[roles.client].list_texts()
        found = np.bincount(codes, minlength=len(names))
        counts.update({names[code]: int(found[code]) for code in np.flatnonzero(found)})
    return find_kept(list(counts), counts)


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
