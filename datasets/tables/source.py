"""A table becomes a source of clients: looked through once, written into a store, from which clients are read.

With `--window`, so many rows of one client one after the other, with no gap between them, are an example.
"""

import dataclasses
import itertools
import os
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from datasets.arrays import convert_examples
from datasets.client_source import TEST, ClientSource, SourceWeights
from datasets.data_notes import note_layout
from datasets.dataset import DatasetOptions, refuse_options
from datasets.errors import Checks, DatasetError
from datasets.example_format import LABEL_KINDS, ExampleFormat
from datasets.file_formats import FileFormat, name_data
from datasets.layouts import FEATURES, TOKENS, resolve_layout
from datasets.names import check_names, describe_joined, find_joined
from datasets.options import AUTO, DEFAULT_MISSING_WORDS, FALSE_TRUE, KEEP, NUMBER, ImageOptions, TextOptions
from datasets.stored_source import (
    LEFT_OUT,
    SPLIT_ORDER,
    Description,
    ExampleStore,
    GroupedExamples,
    Named,
    Reading,
    StoreWriter,
    open_store,
    scale_source,
    serve,
)
from datasets.tables.features import (
    DROP,
    INDEX,
    MEDIAN,
    MOST_CATEGORIES,
    Feature,
    check_missing,
    choose_features,
    describe_features,
    list_groups,
    note_features,
    note_missing,
)
from datasets.tables.labels import choose_labels, guess_table_task
from datasets.tables.number_styles import NumberStyle, note_numbers, scan_numbers
from datasets.tables.scan import (
    MOST_DIFFERENT,
    TableScan,
    ignore_test_weights,
    read_row_times,
    read_row_weights,
    read_splits,
    scan_table,
)
from datasets.tables.sentences import VERSION as SENTENCES_VERSION
from datasets.tables.sentences import read_words
from datasets.tables.table import Piece, Roles, Table, choose_roles, count_rows, list_names
from datasets.tables.truths import find_truths, read_truths
from files.digests import compute_source_digest

GAP = 3.0  # times the usual step of a client's rows: a longer one is a gap


class Windows(NamedTuple):
    """Where windows are.

    Attributes:
      order: rows by client and by time, int64 (rows,).
      starts: of each window, index into `order` of its first row, int64 (windows,); by client and part, then by time.
      clients: whose each is, int64 (windows,).
      splits: in which part it is, uint8 (windows,).
      num_gaps: rows of a client that come too long after the one before.
    """

    order: np.ndarray
    starts: np.ndarray
    clients: np.ndarray
    splits: np.ndarray
    num_gaps: int


def cut_windows(
    clients: np.ndarray, splits: np.ndarray, times: np.ndarray | None, length: int, step: int, left_out: int
) -> Windows:
    """Finds all windows that lie within one client, one part and a stretch without a gap.

    A stretch begins anew where the client or the part changes, after a row that is left out, and after a gap.

    Args:
      clients: whose each row is, int64 (rows,).
      splits: its part, uint8 (rows,).
      times: of each row; None if they are in the order of the file, which then has no gaps.
      length: rows of a window, at least 1.
      step: rows from one start to the next, at least 1.
      left_out: the part whose rows are in no window.
    """
    # Both are stable: rows of one time stay in the order of the file.
    order = np.argsort(clients, kind="stable") if times is None else np.lexsort((times, clients))
    client, split = clients[order], splits[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (client[1:] != client[:-1]) | (split[1:] != split[:-1])
    num_gaps = 0
    if times is not None:
        is_gap = _find_gaps(client, times[order])
        num_gaps = int(is_gap.sum())
        begins |= is_gap
    firsts = np.flatnonzero(begins)
    lengths = np.diff(np.append(firsts, len(order)))
    counts = np.where(split[firsts] == left_out, 0, np.maximum(0, (lengths - length) // step + 1))
    stretch = np.repeat(np.arange(len(firsts)), counts)
    within = np.arange(len(stretch)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = firsts[stretch] + within * step
    # The stretches lie in the order of the rows; a client's windows of one part must lie side by side.
    by_part = np.lexsort((starts, split[starts], client[starts]))
    starts = starts[by_part]
    return Windows(order, starts, client[starts], split[starts], num_gaps)


def _find_gaps(client: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Which rows, by client and time, come more than `GAP` usual steps after the one before; bool (rows,)."""
    is_gap = np.zeros(len(times), bool)
    is_same = client[1:] == client[:-1]
    steps = np.diff(times)
    # The usual step of a client is the lower median of those above 0; NaN where there is none.
    is_step = is_same & (steps > 0)
    groups, values = client[1:][is_step], steps[is_step]
    values = values[np.lexsort((values, groups))]
    counts = np.bincount(groups, minlength=int(client.max(initial=-1)) + 1)
    usual, has = np.full(len(counts), np.nan), counts > 0
    usual[has] = values[(np.cumsum(counts) - counts + (counts - 1) // 2)[has]]
    with np.errstate(invalid="ignore"):
        is_gap[1:] = is_same & (steps > GAP * usual[client[1:]])
    return is_gap


NUMBERS, TRUTHS = "numbers", "truths"  # keys of `Description.more`: the styles of columns, and those of yes and no


def write_table(table: Table, roles: Roles, options: DatasetOptions, writer: StoreWriter) -> Description:
    """Fills a store, and describes its rows.

    `more` is the layout of blocks, how numbers are written in columns of text, and which columns say yes and no.

    Raises:
      DatasetError: a value is of no use; it names the file and the row.
    """
    table, scan, styles, truths = look_through(table.cache_small(), roles, options)
    checks = Checks()
    checks.run(check_missing, table, roles, scan, options)
    labels = checks.run(choose_labels, table, roles, scan, options)
    features = () if roles.block else checks.run(choose_features, table, roles, scan, options)
    checks.end()
    joined = join_clients(table, roles) if options.join_spellings else {}
    layout = resolve_layout(options.layout, scan.block_shape, scan.block_dtype == "uint8") if roles.block else ""
    words = read_words(table, roles, options, joined) if roles.text else None
    if words:
        table, scan.block_shape, layout = words.encode_table(table), (words.length,), TOKENS
    num_dropped = 0
    for read in table.read((*roles.used, roles.block) if roles.block else roles.used):
        splits = read_splits(read, roles)
        piece = ignore_test_weights(read, roles, splits == SPLIT_ORDER.index(TEST))
        # All rows become examples, also those to drop, so that indices fit; they are picked below.
        x = _encode_examples(piece, roles.block, scan.block_shape, layout, features)
        y = labels.encode([piece.cells[name] for name in roles.labels])
        is_dropped = np.zeros(piece.num_rows, bool)
        for name in filter(None, (*roles.used, roles.text)) if options.missing == DROP else ():
            is_dropped |= piece.cells[name].is_missing
        num_dropped += int(is_dropped.sum())
        splits[is_dropped] = SPLIT_ORDER.index(LEFT_OUT)
        # A window must not reach over a row that was dropped, so that this one stays between the others.
        rows = np.arange(piece.num_rows) if options.window else np.flatnonzero(~is_dropped)
        # A time is missing only in a row that is dropped; NaN has no order.
        times = np.nan_to_num(read_row_times(piece, roles, scan.time_style))[rows] if roles.time else None
        weights = read_row_weights(piece, roles)[rows] if roles.weight else None
        if roles.client:
            codes, names = piece.cells[roles.client].list_texts()
            # Names of rows that were dropped alone must not become clients.
            used, codes = np.unique(codes[rows], return_inverse=True)
            clients = Named(codes, [joined.get(names[code], names[code]) for code in used])
            check_names(table.path, "client", clients.names)
        else:
            clients = joined.get(piece.client, piece.client)
        writer.append(x[rows], y[rows], clients, splits[rows], times, weights)
    gaps = {each.column: scan.columns[each.column].num_missing for each in features if options.missing == MEDIAN}
    filled = {column: count for column, count in gaps.items() if count}
    if filled:
        writer.fill_medians(_find_fills(features, filled, scan))
    groups = list_groups(features)
    numbers = [f"{name}: {style.sample} read as {style.read_text(style.sample):.12g}" for name, style in styles.items()]
    readings = (labels.reading, describe_joined("clients", joined), describe_features(features), list_names(numbers))
    readings = (words.reading, *readings) if words else readings
    return Description(
        ExampleFormat(
            x.shape[1:],
            x.dtype.name,
            labels.class_names,
            labels=labels.format,
            takes_tokens=layout == TOKENS,
            are_features=not roles.block or layout == FEATURES,
            feature_names=tuple(name for feature in features for name in feature.names),
            categories=tuple(at for group in groups for at in group.places),
            groups=groups,
            text=words.format if words else None,
        ),
        has_clients=bool(roles.client) or table.has_clients,
        is_ordered_by_time=bool(roles.time),
        num_dropped=num_dropped,
        reading="; ".join(filter(None, (*readings, scan.time_style.reading))),
        notes=(*labels.notes, *(words.notes if words else ()), *_note_columns(roles, scan, styles, features, options)),
        filled=filled,
        more={"layout": layout, NUMBERS: {name: list(style) for name, style in styles.items()}, TRUTHS: truths},
    )


def _note_columns(
    roles: Roles,
    scan: TableScan,
    styles: Mapping[str, NumberStyle],
    features: tuple[Feature, ...],
    options: DatasetOptions,
) -> tuple[str, ...]:
    """A line each for what columns hold that may be meant otherwise."""
    return (
        *(note_layout(options.layout, scan.block_shape, scan.block_dtype == "uint8") if roles.block else ()),
        *note_missing(roles, scan, scan.columns, options),
        *note_numbers(roles, scan, styles, options),
        *note_features(roles, scan, features, options.missing_words),
        *scan.time_style.notes,
    )


def look_through(
    table: Table, roles: Roles, options: DatasetOptions
) -> tuple[Table, TableScan, dict[str, NumberStyle], list[str]]:
    """The table with all numbers read, what is in it, the styles of numbers, and the columns of yes and no.

    Raises:
      DatasetError: reading fails, or a column has numbers that can mean different things.
    """
    most = MOST_CATEGORIES[INDEX if options.join_spellings else options.categories]  # before spellings are joined
    table, scan, styles = scan_numbers(table, roles, options, most)
    if truths := find_truths(roles, scan):
        table = read_truths(table, truths)
        scan = scan_table(table, roles, most, options.date_form)
    return table, scan, styles, truths


def _encode_examples(
    piece: Piece, block: str, shape: tuple[int, ...], layout: str, features: tuple[Feature, ...]
) -> np.ndarray:
    """The examples of a piece, shape (rows, ...): the column `block`, arrays of this shape, or the features."""
    if not block:
        return np.concatenate([feature.encode(piece.cells[feature.column]) for feature in features], axis=1)[..., None]
    values = piece.cells[block].values
    if values.shape[1:] != shape:
        raise DatasetError(
            f"{piece.locate(0)}: column {block!r} has examples of shape {values.shape[1:]}, expected {shape} as the "
            f"first has; images are brought to one size by --image_size"
        )
    return convert_examples(str(piece.locate(0)), block, values, layout)


def _find_fills(features: tuple[Feature, ...], filled: Mapping[str, int], scan: TableScan) -> dict[int, bool]:
    """Index of each number among the features that is filled in, see `StoreWriter.fill_medians`."""
    fills, start = {}, 0
    for feature in features:
        # A category that is missing became the most frequent one already, and between 0 and 1 is no truth value.
        if feature.column in filled and not feature.categories:
            fills[start] = scan.columns[feature.column].num_booleans > 0
        start += len(feature.names)
    return fills


def join_clients(table: Table, roles: Roles) -> dict[str, str]:
    """Each client that is another one but for its spelling, and the one whose name both get; reads the table once."""
    counts: Counter[str] = Counter()
    for piece in table.read((roles.client,) if roles.client else roles.labels):
        if not roles.client:
            counts[piece.client] += piece.num_rows
            continue
        codes, names = piece.cells[roles.client].list_texts()
        found = np.bincount(codes, minlength=len(names))
        counts.update({names[code]: int(found[code]) for code in np.flatnonzero(found)})
    return find_joined(list(counts), counts)


VERSION = 1  # of how a table is read; another makes new stores, and other data
STORE_VERSION = 4  # another makes new stores alone; of data that are read as before, the digest is the same


def open_table(table: Table, options: DatasetOptions) -> ClientSource:
    """The clients of a table.

    Raises:
      DatasetError: its columns or values are of no use; one line that names the file and the row.
    """
    roles = choose_roles(table, options)
    refused = () if roles.text else (TextOptions,)
    refuse_options(table.path, "a table", options, *refused, *(() if roles.block else (ImageOptions,)))
    if options.window and roles.block:
        what = "sentences" if roles.text else "arrays"
        raise DatasetError(
            f"{table.path}: window={options.window} is for columns of numbers, {roles.block} holds {what}"
        )
    if options.date_form not in (AUTO, NUMBER) and not roles.time:
        raise DatasetError(
            f"{table.path}: date_form={options.date_form}: no column orders the rows; name it by --time_column, or "
            f"leave --date_form out"
        )
    if roles.text and options.layout not in (AUTO, TOKENS):
        raise DatasetError(f"{table.path}: layout={options.layout}: does nothing with --text_column; leave it out")
    if not roles.block and options.layout not in (AUTO, FEATURES):
        raise DatasetError(
            f"{table.path}: layout={options.layout}: the columns of a table are features, expected no --layout; "
            f"--window makes sequences of rows"
        )
    reading = Reading(
        name_data(table.path),
        table.path,
        table.paths,
        _identify_reading(table, roles, options),
        lambda writer: write_table(table, roles, options, writer),
        STORE_VERSION,
    )
    store, description, digest = open_store(reading)
    if numbers := description.more[NUMBERS]:  # data that an earlier version read as categories are others
        digest = compute_source_digest((), [digest, numbers])
    if truths := description.more[TRUTHS]:
        digest = compute_source_digest((), [digest, {TRUTHS: truths}])
    source = serve(reading.name, store, description, digest)
    if roles.weight:
        source = dataclasses.replace(source, weights=SourceWeights(roles.weight, store.read_weights))
    source = dataclasses.replace(source, reading=_describe_columns(table, roles, description.reading))
    source = _cut(source, store, options, table.path) if options.window else source
    layout = FEATURES if source.format.are_features else description.more["layout"] or AUTO
    return scale_source(source, options.scale, layout)


def _identify_reading(table: Table, roles: Roles, options: DatasetOptions) -> list:
    """What decides, beside the bytes of the files, which examples they become; as earlier versions listed it."""
    names = [os.path.relpath(path, table.path) for path in table.paths]
    # A set has no order, which a digest needs.
    columns = {**dataclasses.asdict(roles), "guessed": sorted(roles.guessed)}
    for name in ("weight", "text"):  # as before there were such columns
        if not columns[name]:
            del columns[name]
    asked = [options.missing, options.categories, options.layout, options.task or "", options.image_size]
    asked += [options.image_colour, bool(options.window)]
    # What earlier versions did has the digest that they gave it.
    before = {"missing_words": DEFAULT_MISSING_WORDS, "join_spellings": False, "truth_names": FALSE_TRUE}
    before |= {"date_form": NUMBER} if roles.time else {}
    asked += [[name, value] for name in before if (value := getattr(options, name)) != before[name]]
    asked += [] if options.decimal_mark == AUTO else [options.decimal_mark]
    asked += [[SENTENCES_VERSION, options.vocabulary_size, options.sequence_length]] if roles.text else []
    # Only where there is such a column: stores of an earlier version have its texts by the alphabet.
    ordered = [name for name in table.ordered if name in (*roles.labels, *roles.features)]
    asked += [{"ordered": ordered}] if ordered else []
    has_names = len(names) > 1 or table.has_clients
    return [VERSION, table.dialect, names if has_names else [], sorted(table.class_names.items()), columns, *asked]


def choose_table_partition(table: Table, options: DatasetOptions) -> str:
    """The default of `--partition`: "natural" for named clients, "iid" for labels that are no classes; else ""."""
    roles = choose_roles(table, options)
    if roles.client or table.has_clients:
        return "natural"
    task = options.task
    if not task:
        # The default of a flag must not cost a reading of the whole table.
        head = dataclasses.replace(table, read=lambda names: itertools.islice(table.read(names), 1))
        scan = scan_table(
            head, dataclasses.replace(roles, client="", features=(), time="", test="", block="", weight="")
        )
        if any(column.has_written for column in scan.columns.values()):  # other values and columns decide what it says
            _, scan, _ = scan_numbers(table, roles, options, MOST_DIFFERENT)
        task = guess_table_task(roles, scan)[0]
    return "" if LABEL_KINDS[task].is_by_class else "iid"


def make_table_format(
    title: str, recognise: Callable[[str], bool], make_table: Callable[[str, DatasetOptions], Table], rank: int
) -> FileFormat:
    """A format of tables; see `FileFormat`.

    Args:
      title: in words.
      recognise: (path) -> whether it is in this format.
      make_table: (path, options) -> what is there. It raises DatasetError.
      rank: of the format.
    """
    return FileFormat(
        title,
        recognise,
        lambda path, options: open_table(make_table(path, options), options),
        lambda path, options: choose_table_partition(make_table(path, options), options),
        rank,
        make_table,
    )


def _cut(source: ClientSource, store: ExampleStore, options: DatasetOptions, path: str) -> ClientSource:
    """Windows of the rows instead of these."""
    length, step = options.window, options.window_step or options.window
    windows = cut_windows(store.clients, store.splits, store.times, length, step, SPLIT_ORDER.index(LEFT_OUT))
    if not len(windows.starts):
        raise DatasetError(f"{path}: window={length}: no client has so many rows without a gap, expected fewer")
    noun = "window" if len(windows.starts) == 1 else "windows"
    text = f"{len(windows.starts):,} {noun} of {count_rows(length)}, one every {step:,}, labelled as their last row"
    if windows.num_gaps:
        noun = "gap" if windows.num_gaps == 1 else "gaps"
        text += f"; none crosses one of {windows.num_gaps:,} {noun} (more than {GAP:g} times a client's usual step)"
    # Of windows that share rows, how many after one do so with it.
    overlap, notes = -(-length // step) - 1, []
    if overlap and options.shared_rows == KEEP:
        notes.append(
            "windows overlap, so that the first of a client's test part share rows with the last before it; "
            f"--window_step={length} makes them apart"
        )
        overlap = 0
    elif overlap:
        count = "1 window" if overlap == 1 else f"{overlap:,} windows"
        text += (
            f"; where a client's parts are cut, {count} before the cut left out, for rows shared with those after it"
        )
    last = windows.order[windows.starts + length - 1]

    def read_x(chosen: np.ndarray) -> np.ndarray:
        rows = windows.order[windows.starts[chosen][:, np.newaxis] + np.arange(length)]
        return store.x[rows][..., 0]

    weights = None if store.weights is None else store.weights[last]
    num_clients = len(store.client_names)
    examples = GroupedExamples(read_x, store.y[last], weights, windows.clients, windows.splits, num_clients)
    rows, num_features = source.format, store.x.shape[1]
    # Of one channel a name would be taken for that of one of so many features.
    names = rows.feature_names if num_features > 1 else ()
    example_format = dataclasses.replace(
        rows,
        input_shape=(length, num_features),
        are_features=False,
        feature_names=names,
        categories=rows.categories if num_features > 1 else tuple(range(length)) * bool(rows.categories),
        has_whole_steps=True,  # a client with too few rows has no window
    )
    return dataclasses.replace(
        source,
        format=example_format,
        num_examples=examples.num_examples,
        read=examples.read,
        weights=source.weights and source.weights._replace(read=examples.read_weights),
        # As before windows were left out, where none is.
        digest=compute_source_digest((), [source.digest, length, step, *([overlap] if overlap else [])]),
        is_ordered_by_time=True,
        reading=f"{source.reading}; {text}",
        notes=(*source.notes, *notes),
        overlap=overlap,
        count_labels=source.count_labels and (lambda: examples.count_labels(len(rows.class_names))),
    )


def _describe_columns(table: Table, roles: Roles, rest: str) -> str:
    def name(role: str, columns: str) -> str:
        return f"{columns} (by its name)" if role in roles.guessed else columns

    parts = [f"table, {table.dialect}: label {name('label', list_names(roles.labels))}"]
    clients = f"client {name('client', roles.client)}" if roles.client else "no clients"
    parts.append("a file a client" if table.has_clients and not roles.client else clients)
    parts += [f"ordered by {name('time', roles.time)}"] if roles.time else []
    parts += [f"test rows by {name('test', roles.test)}"] if roles.test else []
    parts += [f"train examples weighted by {roles.weight}"] if roles.weight else []
    return "; " + "; ".join(filter(None, (", ".join(parts), rest)))
